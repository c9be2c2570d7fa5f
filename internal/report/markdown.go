package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/kvcanary/kvcanary/internal/prose"
)

// Markdown writes a run for a ticket: the verdict first, then evidence, then
// what was not covered. Nothing that a target wrote can become markup.
func Markdown(w io.Writer, run *Run) error {
	r := run.Result
	var b strings.Builder
	fmt.Fprintf(&b, "# kvcanary: %s\n\n", plainMarkdown(string(r.Verdict)))
	if r.Reason != "" {
		fmt.Fprintf(&b, "%s\n\n", plainMarkdown(r.Reason))
	}
	fmt.Fprintf(&b, "| | |\n|---|---|\n| target | %s, model %s |\n", code(r.Target.BaseURL), code(r.Target.Model))
	fmt.Fprintf(&b, "| when | %s to %s UTC |\n", r.Started.UTC().Format("2006-01-02 15:04:05"), r.Ended.UTC().Format("15:04:05"))
	fmt.Fprintf(&b, "| spent | %s, %s prompt and %s answer tokens |\n", prose.Plural(r.Spent.Exchanges, "exchange"), prose.Thousands(r.Spent.PromptTokens), prose.Thousands(r.Spent.CompletionTokens))
	fmt.Fprintf(&b, "| repeat | kvcanary %s, seed %d, key %s |\n", plainMarkdown(r.Version), r.Seed, code(r.KeyID))
	markdownFindings(&b, run)
	b.WriteString("\n## Covered\n\n| protocol | verdict | exchanges | served | refused | what it means |\n|---|---|---|---|---|---|\n")
	for _, p := range r.Protocols {
		means := p.Reason
		if means == "" && p.Bound != nil {
			means = Bound(p.Bound)
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %s |\n", plainMarkdown(p.Name), plainMarkdown(string(p.Verdict)), p.Exchanges, p.Served, p.Refused, plainMarkdown(means))
	}
	for _, c := range r.Choices {
		if !c.Runs {
			fmt.Fprintf(&b, "| %s | not run | | | | %s |\n", plainMarkdown(c.Protocol), plainMarkdown(c.Reason))
		}
	}
	fmt.Fprintf(&b, "\nControl:%s minted and never sent; %d came back.\n", fmt.Sprint(r.Controls.NeverSent, " canaries"), r.Controls.NeverSentHits)
	_, err := io.WriteString(w, b.String())
	return err
}

func markdownFindings(b *strings.Builder, run *Run) {
	r := run.Result
	if len(r.Findings) == 0 {
		return
	}
	b.WriteString("\n## Findings\n")
	for i, f := range r.Findings {
		if i == shown {
			fmt.Fprintf(b, "\nand %s more, in result.json\n", prose.Plural(len(r.Findings)-shown, "finding"))
			break
		}
		fmt.Fprintf(b, "\n**%s** in %s, exchange %d, tenant %s: %s\n", plainMarkdown(string(f.Kind)), plainMarkdown(f.Protocol), f.Exchange, code(f.Tenant), plainMarkdown(f.Explain))
		if text := quote(f.Evidence); text != "" {
			fmt.Fprintf(b, "\n> %s\n", code(text))
		}
		if a := run.aroundOf(f); a != nil && a.Show {
			fmt.Fprintf(b, "\n> %s **%s** %s\n\n%s\n", code(a.Before), code(a.Words), code(a.After), plainMarkdown(a.Shown()))
		} else if a != nil {
			fmt.Fprintf(b, "\n%s\n", plainMarkdown(a.Hidden()))
		}
		if id := requestID(run, f.Exchange); id != "" {
			fmt.Fprintf(b, "\nrequest id %s\n", code(id))
		}
	}
	for i, d := range r.Diagnosis {
		if i == 0 {
			b.WriteString("\n## What it looks like\n")
		}
		fmt.Fprintf(b, "\n**%s** (%.0f %%): %s\n\n", plainMarkdown(d.Fault), 100*d.Probability, plainMarkdown(d.Means))
		for _, c := range d.Check {
			fmt.Fprintf(b, "- %s\n", plainMarkdown(c))
		}
	}
}

// requestID is what the target called the request of an exchange.
func requestID(run *Run, seq int) string {
	for i := range run.Exchanges {
		if e := &run.Exchanges[i]; e.Seq == seq && e.Answer != nil {
			return e.Answer.ID
		}
	}
	return ""
}

// plainMarkdown escapes whatever could be markup.
func plainMarkdown(s string) string {
	return strings.NewReplacer("\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "<", "&lt;", ">", "&gt;", "|", "\\|", "#", "\\#", "!", "\\!", "@", "&#64;").
		Replace(prose.Printable(s))
}

// code writes text as code, which nothing in it can end.
func code(s string) string {
	s = strings.NewReplacer("`", "'", "|", "\\|", "<", "‹", ">", "›").Replace(prose.Printable(s))
	if s == "" {
		return "-"
	}
	return "`" + s + "`"
}
