// Package report renders a run for people and pipelines.
package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/prose"
)

const (
	columns  = 80
	shown    = 10 // findings shown one by one
	evidence = 14 // leaked words shown of one finding
)

// Text writes a result for a terminal: the verdict first, then the evidence,
// then what was and was not covered. At most 80 columns.
func Text(w io.Writer, r *campaign.Result) error {
	return writeText(w, r, func(oracle.Finding) *around { return nil })
}

// writeText is Text with what stands around the words of findings.
func writeText(w io.Writer, r *campaign.Result, about func(oracle.Finding) *around) error {
	var b strings.Builder
	fmt.Fprintf(&b, "verdict: %s\n", prose.Printable(string(r.Verdict)))
	if r.Reason != "" {
		paragraph(&b, "", r.Reason)
	}
	fmt.Fprintf(&b, "target:  %s, model %s\n", prose.Printable(r.Target.BaseURL), prose.Printable(r.Target.Model))
	findings(&b, r, about)
	diagnosis(&b, r.Diagnosis)
	b.WriteString("\n")
	for _, p := range r.Protocols {
		protocol(&b, p)
	}
	for _, c := range r.Choices {
		if !c.Runs {
			fmt.Fprintf(&b, "%-9s not run\n", prose.Printable(c.Protocol))
			paragraph(&b, "          ", c.Reason)
		}
	}
	b.WriteString("\n")
	limits(&b, r.Limits)
	fmt.Fprintf(&b, "spent:   %s in %s, %s prompt and %s answer tokens\n",
		prose.Plural(r.Spent.Exchanges, "exchange"), prose.Plural(r.Spent.Requests, "request"), prose.Thousands(r.Spent.PromptTokens), prose.Thousands(r.Spent.CompletionTokens))
	controls(&b, r.Controls)
	closing(&b, r)
	_, err := io.WriteString(w, b.String())
	return err
}

func findings(b *strings.Builder, r *campaign.Result, about func(oracle.Finding) *around) {
	for i, f := range r.Findings {
		if i == shown {
			fmt.Fprintf(b, "\n  and %s more; all of them are in the JSON\n", prose.Plural(len(r.Findings)-shown, "finding"))
			return
		}
		fmt.Fprintf(b, "\n%s: %s, exchange %d, tenant %s\n", strings.ToUpper(prose.Printable(string(f.Kind))), prose.Printable(f.Protocol), f.Exchange, prose.Printable(f.Tenant))
		paragraph(b, "  ", f.Explain)
		if text := quote(f.Evidence); text != "" {
			paragraph(b, "  > ", text)
		}
		if a := about(f); a != nil {
			a.text(b)
		}
	}
}

// quote is the evidence of a finding, cut: always words that kvcanary minted.
func quote(e oracle.Evidence) string {
	words := strings.Fields(prose.Printable(e.Text))
	if len(words) > evidence {
		return strings.Join(words[:evidence], " ") + " ..."
	}
	return strings.Join(words, " ")
}

func protocol(b *strings.Builder, p campaign.ProtocolResult) {
	fmt.Fprintf(b, "%-9s %-12s %d exchanges, %d served, %d refused; %s tokens, %.1f s\n",
		prose.Printable(p.Name), prose.Printable(string(p.Verdict)), p.Exchanges, p.Served, p.Refused, prose.Thousands(p.PromptTokens), p.Seconds)
	if p.Reason != "" {
		paragraph(b, "          ", p.Reason)
	}
	if p.Bound != nil {
		paragraph(b, "          ", Bound(p.Bound))
	}
}

// Bound says in one sentence what a clean verdict bounds.
func Bound(b *campaign.Bound) string {
	if b.Sensitivity == 0 {
		return "nothing is bounded: this protocol has no test whose power is known well enough"
	}
	return fmt.Sprintf("with %.0f %% confidence fewer than %s of such prompts leak (%s, power %.2f)",
		100*b.Confidence, percent(b.RateUpper), prose.Plural(b.N, "test"), b.Sensitivity)
}

func limits(b *strings.Builder, l campaign.Limits) {
	switch {
	case l.AcceptedMax == 0 && l.RejectedMin == 0:
		b.WriteString("limits:  none was found\n")
		return
	case l.RejectedMin == 0:
		fmt.Fprintf(b, "limits:  served up to %s tokens, refused none\n", prose.Thousands(l.AcceptedMax))
		return
	}
	how, about := l.Rejection, ""
	if how == "" {
		how = "not served whole"
	}
	if l.Estimated {
		about = "about "
	}
	paragraph(b, "", fmt.Sprintf("limits: served whole up to %s tokens; from %s%s on: %s",
		prose.Thousands(l.AcceptedMax), about, prose.Thousands(l.RejectedMin), how))
}

func controls(b *strings.Builder, c campaign.Controls) {
	if c.NeverSentHits > 0 {
		fmt.Fprintf(b, "controls: %d CANARIES THAT WERE NEVER SENT CAME BACK: the scanner or the run\nis broken, and no verdict may rest on it\n", c.NeverSentHits)
		return
	}
	fmt.Fprintf(b, "control: %d canaries minted and never sent, none came back\n", c.NeverSent)
}

// closing says what the verdict means and what to do next.
func closing(b *strings.Builder, r *campaign.Result) {
	b.WriteString("\n")
	switch r.Verdict {
	case campaign.Leak:
		paragraph(b, "", "Text planted in one exchange came out in another. Stop sending what must not be seen, keep the run directory, and report it to whoever runs the target before anybody else.")
	case campaign.Violation:
		if onlyTruncation(r.Findings) {
			paragraph(b, "", "No foreign text was seen, but long prompts are answered from a part of them, and nothing says so. Keep prompts within the limit above. On your own engine raise the context, or let it refuse what is too long; then run this again.")
			return
		}
		paragraph(b, "", "No foreign text was seen, but the target did not refuse where it had to. On your own engine make the pool at least as large as the context, or lower the context; then run this again.")
	case campaign.Clean:
		paragraph(b, "", "Nothing was found in this sample. That is no proof: what it bounds, if anything, stands at each protocol above.")
	default:
		if r.Reason == "interrupted" {
			paragraph(b, "", "Interrupted: what came back until then is kept and judged, and proves nothing either way.")
			return
		}
		paragraph(b, "", "Nothing is proven either way, because the run did not reach its coverage. Mend what is named above and run it again.")
	}
}

func onlyTruncation(findings []oracle.Finding) bool {
	return !slices.ContainsFunc(findings, func(f oracle.Finding) bool { return f.Kind != oracle.Truncation })
}

// Paragraph writes text wrapped at 80 columns, each line behind the indent.
func Paragraph(w io.Writer, indent, text string) error {
	var b strings.Builder
	paragraph(&b, indent, text)
	_, err := io.WriteString(w, b.String())
	return err
}

// paragraph wraps text at 80 columns, each line behind the indent.
func paragraph(b *strings.Builder, indent, text string) {
	line := indent
	for _, word := range strings.Fields(prose.Printable(text)) {
		if len(line) > len(indent) && len(line)+1+len(word) > columns {
			b.WriteString(line + "\n")
			line = indent
		}
		if line == indent && strings.HasPrefix(word, "::") {
			word = "\\" + word // at the start of a line a pipeline takes it for a command
		}
		if len(line) > len(indent) {
			line += " "
		}
		line += word
	}
	if len(line) > len(indent) {
		b.WriteString(line + "\n")
	}
}

func percent(rate float64) string {
	switch p := 100 * rate; {
	case p >= 10:
		return fmt.Sprintf("%.0f %%", p)
	case p >= 0.1:
		return fmt.Sprintf("%.1f %%", p)
	default:
		return fmt.Sprintf("%.3f %%", p)
	}
}
