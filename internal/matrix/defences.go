package matrix

import (
	"fmt"
	"slices"
	"strings"

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
	Blunts  Verdict = "blunts"  // none did, but a prompt was answered that was not read as it was sent
	Detects Verdict = "detects" // neither; a request ended with an error of the engine's
	Stops   Verdict = "stops"   // nothing wrong was seen
)

// crossing are the kinds of finding that say that something of one request
// reached another.
var crossing = []oracle.Kind{oracle.Leak, oracle.Misroute, oracle.Contamination, oracle.Sharing}

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

// seenBy is the probe that finds a fault most often; docs/power.md has the figures.
var seenBy = map[string]string{
	"stale_reserve": "straddle",
	"late_write":    "churn",
	"stale_source":  "tenants",
	"early_publish": "prefix",
	"double_owner":  "churn",
	"dirty_slot":    "smoke",
	"thin_key":      "prefix",
	"shared_prefix": "prefix",
	"id_reuse":      "ids",
	"row_skew":      "tenants",
	"stream_desync": "churn",
	"answer_cache":  "prefix",
}

// best is the probe to try defences against a fault with.
func best(fault string, probes []Probe) Probe {
	name, _, _ := strings.Cut(fault, ":")
	for _, want := range []string{seenBy[name], "tenants"} {
		if i := slices.IndexFunc(probes, func(p Probe) bool { return p.Name == want }); i >= 0 {
			return probes[i]
		}
	}
	return probes[0]
}

// defended says that the table is of defences.
func (t *Table) defended() bool { return len(t.Cells) > 0 && t.Cells[0].Defence != "" }

// grid has a defence a line and a fault a column: what the defence does about
// the fault, and in how many trials something of one request reached another.
func (t *Table) grid() [][]string {
	out := [][]string{{"defence"}}
	column, line := map[string]int{}, map[string]int{}
	for _, c := range t.Cells {
		fault := c.Fault + " (" + c.Probe + ")"
		if column[fault] == 0 {
			column[fault] = len(out[0])
			out[0] = append(out[0], fault)
		}
	}
	for _, c := range t.Cells {
		if line[c.Defence] == 0 {
			line[c.Defence] = len(out)
			out = append(out, append([]string{c.Defence}, make([]string, len(column))...))
		}
		out[line[c.Defence]][column[c.Fault+" ("+c.Probe+")"]] = c.verdict()
	}
	return out
}

// verdict is the verdict with how many trials came to the like of it.
func (c *Cell) verdict() string {
	switch c.Verdict {
	case Misses:
		return fmt.Sprintf("%s %d/%d", c.Verdict, c.Crossed, c.Trials)
	case Detects:
		return fmt.Sprintf("%s %d/%d", c.Verdict, c.Failed, c.Trials)
	case Blunts:
		return fmt.Sprintf("%s %d/%d", c.Verdict, c.Found.Count, c.Trials)
	}
	return string(c.Verdict)
}
