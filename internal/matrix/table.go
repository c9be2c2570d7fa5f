package matrix

import (
	"fmt"
	"io"
	"strings"
)

// Text writes the table for a terminal, Markdown for a document: the same
// columns in the same order.
func (t *Table) Text(w io.Writer) error {
	return t.write(w, "%-28s %-16s %7s  %-22s %-22s %6s %9s %9s  %s\n", "")
}

// Markdown writes the table as Markdown.
func (t *Table) Markdown(w io.Writer) error {
	return t.write(w, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", "|---|---|---|---|---|---|---|---|---|\n")
}

func (t *Table) write(w io.Writer, row, rule string) error {
	var b strings.Builder
	fmt.Fprintf(&b, row, "fault", "probe", "trials", "found, % (95 %)", "leak proven, % (95 %)", "unsure", "requests", "tokens", "tokens until found (95 %)")
	b.WriteString(rule)
	for _, c := range t.Cells {
		fmt.Fprintf(&b, row, c.Fault, c.Probe, fmt.Sprint(c.Trials), c.Found, c.Leak, fmt.Sprint(c.Unsure),
			fmt.Sprint(c.Requests), fmt.Sprint(c.PromptTokens), c.Until)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// String is the rate in percent with its interval.
func (r Rate) String() string {
	return fmt.Sprintf("%.1f (%.1f to %.1f)", 100*r.Rate, 100*r.Lower, 100*r.Upper)
}

// String is the mean with its interval; a bound that does not exist is "no bound".
func (u Until) String() string {
	show := func(v *float64, none string) string {
		if v == nil {
			return none
		}
		return fmt.Sprintf("%.0f", *v)
	}
	if u.Mean == nil {
		return fmt.Sprintf("never found (more than %s)", show(u.Lower, "0"))
	}
	return fmt.Sprintf("%s (%s to %s)", show(u.Mean, ""), show(u.Lower, "0"), show(u.Upper, "no bound"))
}
