package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/kvcanary/kvcanary/internal/prose"
)

// The limits of a step: annotations beyond them are dropped without a word.
const maxAnnotations = 10

// GitHub writes a run as workflow commands: an annotation for each finding, at
// most ten, and one line that says how many more there are. The step's summary
// is the Markdown report.
func GitHub(w io.Writer, run *Run) error {
	r := run.Result
	var b strings.Builder
	for i, f := range r.Findings {
		level := "error"
		for _, k := range kinds {
			if k.kind == f.Kind {
				level = k.level
			}
		}
		if i == maxAnnotations-1 && len(r.Findings) > maxAnnotations {
			fmt.Fprintf(&b, "::error title=kvcanary::%s\n", data(fmt.Sprintf("and %d more findings", len(r.Findings)-i)))
			break
		}
		fmt.Fprintf(&b, "::%s file=%s,line=%d,title=%s::%s\n", level, property(run.Place.File), max(run.Place.Line, 1), property("kvcanary "+string(f.Kind)), data(f.Explain))
	}
	if r.Reason != "" {
		fmt.Fprintf(&b, "::warning title=kvcanary::%s\n", data(r.Reason))
	}
	fmt.Fprintf(&b, "::notice title=kvcanary::%s\n", data(fmt.Sprintf("verdict %s: %s, %s", r.Verdict, prose.Plural(r.Spent.Exchanges, "exchange"), prose.Plural(len(r.Findings), "finding"))))
	_, err := io.WriteString(w, b.String())
	return err
}

// data escapes a message, property the value of a property as well.
func data(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(prose.Printable(s))
}

func property(s string) string { return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(data(s)) }
