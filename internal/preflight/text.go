package preflight

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/internal/prose"
)

// Text writes a report for a person: what failed, what is not known, how much
// passed, and one line that says it all, last.
func Text(w io.Writer, r *Report) error {
	var b strings.Builder
	for i := range r.Workers {
		worker(&b, &r.Workers[i])
	}
	for _, s := range []Severity{Error, Warning} {
		for _, x := range r.Results {
			if x.Severity == s && x.State == Fail {
				result(&b, &x, "FAIL")
			}
		}
	}
	var reports []string
	for _, x := range r.Results {
		id, report := strings.CutPrefix(x.Rule, "advisory/")
		switch {
		case x.State != Unknown || x.Severity == Note:
		case report && x.Severity == Warning:
			reports = append(reports, id)
		default:
			result(&b, &x, "?")
		}
	}
	if n := len(reports); n > 0 {
		fmt.Fprintf(&b, "\n? warning: %s may apply; give --manifest, or --format json for all of it\n  %s\n", prose.Plural(n, "public report"), strings.Join(slices.Compact(reports), ", "))
	}
	notes(&b, r)
	fmt.Fprintf(&b, "%d passed, %d failed, %d unknown, %d do not apply\n", r.Counts[Pass], r.Counts[Fail], r.Counts[Unknown], r.Counts[NotApplicable])
	fmt.Fprintf(&b, "verdict: %s: %s\n", r.Verdict, r.Summary)
	_, err := io.WriteString(w, b.String())
	return err
}

// notes names what is worth a test and no more.
func notes(b *strings.Builder, r *Report) {
	var ids []string
	for _, x := range r.Results {
		if x.Severity == Note && x.State == Fail && !slices.Contains(ids, x.Rule) {
			ids = append(ids, x.Rule)
		}
	}
	if len(ids) > 0 {
		fmt.Fprintf(b, "\nnote: worth a test: %s\n", strings.ReplaceAll(strings.Join(ids, ", "), "advisory/", ""))
	}
}

func worker(b *strings.Builder, w *Worker) {
	f := &w.Facts
	fmt.Fprintf(b, "%s", w.Name)
	if f.Engine != "" {
		fmt.Fprintf(b, ": %s %s", f.Engine, f.Version.Value)
	}
	if f.Role.Value != "" && f.Role.Value != "both" {
		fmt.Fprintf(b, ", %s", f.Role.Value)
	}
	fmt.Fprintln(b)
	for _, n := range []string{said("context", f.Context), said("pool", f.Pool), said("refuses from", f.MaxInput)} {
		if !strings.HasSuffix(n, "is not known") {
			fmt.Fprintf(b, "  %s\n", n)
		}
	}
}

func result(b *strings.Builder, x *Result, mark string) {
	fmt.Fprintf(b, "\n%s %s %s", mark, x.Severity, x.Rule)
	if x.Worker != "" {
		fmt.Fprintf(b, "  %s", x.Worker)
	}
	fmt.Fprintf(b, "\n  %s\n", x.Compared)
	if mark == "FAIL" {
		fmt.Fprintf(b, "  why: %s\n", x.Why)
	}
	if x.Fix != "" {
		fmt.Fprintf(b, "  fix: %s\n", x.Fix)
	}
	if mark == "FAIL" && len(x.Links) > 0 {
		fmt.Fprintf(b, "  see: %s\n", x.Links[0])
	}
}
