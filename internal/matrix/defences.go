package matrix

import (
	"fmt"
	"slices"

	"github.com/kvcanary/kvcanary/internal/diagnose"
	"github.com/kvcanary/kvcanary/internal/oracle"
)

// NoDefence is the line of an engine that has adopted none.
const NoDefence = "none"

// Verdict says what a defence does about a fault, as it is seen from outside:
// the words are those of `kvcanary verify model --table`.
type Verdict string

// The verdicts, worst first. A cell has the worst of its trials'.
const (
	Misses  Verdict = "misses"  // an answer came from what is another's
	Blunts  Verdict = "blunts"  // none did, but a prompt was answered that was not read as it was sent, or not the same each time
	Detects Verdict = "detects" // neither; a request ended with an error of the engine's
	Stops   Verdict = "stops"   // nothing wrong was seen
)

// crossing are the kinds of finding that prove that something of one request
// reached another. Contamination is none: what changed an answer is not seen.
var crossing = []oracle.Kind{oracle.Leak, oracle.Misroute, oracle.Sharing}

func (o *outcome) crossed() bool {
	return slices.ContainsFunc(o.kinds, func(k oracle.Kind) bool { return slices.Contains(crossing, k) })
}

func (o *outcome) verdict() Verdict {
	switch {
	case o.crossed():
		return Misses
	case len(o.kinds) > 0:
		return Blunts
	case o.failed > 0:
		return Detects
	}
	return Stops
}

// verdict is the worst of all trials'.
func verdict(made []*outcome) Verdict {
	for _, v := range []Verdict{Misses, Blunts, Detects} {
		if slices.ContainsFunc(made, func(o *outcome) bool { return o.verdict() == v }) {
			return v
		}
	}
	return Stops
}

// best is the probe to try a fault with: the one that has found it most often,
// by what is measured; one that meets most faults where none has.
func best(fault string, probes []Probe) Probe {
	for _, want := range []string{diagnose.Measured().Best(fault), "churn"} {
		if i := slices.IndexFunc(probes, func(p Probe) bool { return p.Name == want }); i >= 0 {
			return probes[i]
		}
	}
	return probes[0]
}

// defended says that the table is of defences.
func (t *Table) defended() bool { return len(t.Cells) > 0 && t.Cells[0].Defence != "" }

// grid has a defence a line and a fault a column: what the defence does about
// the fault. Empty is not measured.
func (t *Table) grid() [][]string {
	out := [][]string{{"defence"}}
	at := func(c *Cell) (line, column int) {
		fault := c.Fault + " (" + c.Probe + ")"
		column = slices.Index(out[0], fault)
		line = slices.IndexFunc(out, func(row []string) bool { return row[0] == c.Defence })
		if column < 0 {
			column, out[0] = len(out[0]), append(out[0], fault)
		}
		if line < 0 {
			line, out = len(out), append(out, []string{c.Defence})
		}
		return line, column
	}
	for i := range t.Cells {
		at(&t.Cells[i])
	}
	for i := range out {
		out[i] = append(out[i], make([]string, len(out[0])-len(out[i]))...)
	}
	for i := range t.Cells {
		line, column := at(&t.Cells[i])
		out[line][column] = t.Cells[i].verdict()
	}
	return out
}

// verdict is the verdict, with in how many trials it came to that unless it did in all.
func (c *Cell) verdict() string {
	n := c.Trials
	switch c.Verdict {
	case Misses:
		n = c.Crossed
	case Blunts:
		n = c.Found.Count
	case Detects:
		n = c.Failed
	}
	if n == c.Trials {
		return string(c.Verdict)
	}
	return fmt.Sprintf("%s %d/%d", c.Verdict, n, c.Trials)
}
