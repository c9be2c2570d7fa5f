package matrix

import (
	"fmt"
	"io"
	"strings"
)

// Text writes the table for a terminal, Markdown for a document: the same
// columns in the same order.
func (t *Table) Text(w io.Writer) error {
	if t.defended() {
		return write(w, t.grid(), "", "  ", "")
	}
	return write(w, t.rows(), "", "  ", "")
}

// Markdown writes the table as Markdown.
func (t *Table) Markdown(w io.Writer) error {
	if t.defended() {
		return write(w, t.grid(), "| ", " | ", " |")
	}
	return write(w, t.rows(), "| ", " | ", " |")
}

// rows has a cell a line; the first line names the columns.
func (t *Table) rows() [][]string {
	out := [][]string{{"fault", "probe", "trials", "found, % (95 %)", "leak proven, % (95 %)", "unsure", "requests", "tokens", "tokens until found (95 %)"}}
	for _, c := range t.Cells {
		trials := fmt.Sprint(c.Trials)
		if !c.Exact {
			trials = "~" + trials
		}
		out = append(out, []string{
			c.Fault, c.Probe, trials, c.Found.String(), c.Leak.String(), fmt.Sprint(c.Unsure),
			fmt.Sprint(c.Requests), fmt.Sprint(c.PromptTokens), c.Until.String(),
		})
	}
	return out
}

// write writes lines of equal width; in Markdown a rule goes under the first.
func write(w io.Writer, rows [][]string, left, between, right string) error {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, v := range row {
			width[i] = max(width[i], len(v))
		}
	}
	var b strings.Builder
	for n, row := range rows {
		if left == "" {
			for i, v := range row {
				row[i] = fmt.Sprintf("%-*s", width[i], v)
			}
		}
		b.WriteString(strings.TrimRight(left+strings.Join(row, between)+right, " ") + "\n")
		if n == 0 && left != "" {
			b.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
		}
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
