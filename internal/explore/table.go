package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// Verdict says what a defence does about a fault.
type Verdict string

// The verdicts, from best to worst.
const (
	Stops   Verdict = "stops"   // whatever happens, nothing wrong comes about that anybody could notice
	Detects Verdict = "detects" // something wrong comes about, and the request ends with an error
	Blunts  Verdict = "blunts"  // nobody gets what is another's, but an answer comes from pages that were not written for it
	Misses  Verdict = "misses"  // an answer comes from what is another's
)

// Cell is a defence against a fault: an engine that has the bug and adopts that
// one defence.
type Cell struct {
	Fault   string  `json:"fault"`
	Defence string  `json:"defence"`
	Verdict Verdict `json:"verdict"`
	Setup   string  `json:"setup"`
	States  int     `json:"states"`
	// Trace is a shortest way to what the verdict says; none if nothing happens.
	Trace *Counterexample `json:"trace,omitempty"`
}

// row is a defence of the table, column a fault.
type row struct {
	name string
	set  handoff.Defences
}

type column struct {
	name  string
	fault handoff.Faults
	setup string
}

var rows = []row{
	{"none", 0},
	{"checksum:sender", handoff.ChecksumSender},
	{"checksum:receiver", handoff.ChecksumReceiver},
	{"checksum_absent:skip", handoff.AbsentSkipped},
	{"checksum_absent:reject", handoff.AbsentRefused},
	{"tags:at_reserve", handoff.TagsAtReserve},
	{"tags:by_writer", handoff.TagsByWriter},
	{"coverage", handoff.Coverage},
	{"retire", handoff.Retire},
	{"zero_on_alloc", handoff.ZeroOnAlloc},
	{"generations", handoff.Generations},
	{"quiesce", handoff.QuiesceFirst},
	{"unique_ids", handoff.UniqueIDs},
}

var columns = []column{
	{"F1 stale_reserve", handoff.StaleReserve, "too-long"},
	{"F1 other_abort", handoff.OtherAbort, "flawed"},
	{"F2 late_write", handoff.LateWrite, "pair"},
	{"F3 stale_source", handoff.StaleSource, "pair"},
	{"F5 double_owner", handoff.DoubleOwner, "three-one-sided"},
	{"F9 id_reuse", handoff.IDReuse, "pair"},
}

// SetupsFor are the setups that show faults.
func SetupsFor(f handoff.Faults) []Setup {
	var out []Setup
	for _, c := range columns {
		if f&c.fault == 0 {
			continue
		}
		if s, _ := Find(c.setup); !slices.ContainsFunc(out, func(o Setup) bool { return o.Name == s.Name }) {
			out = append(out, s)
		}
	}
	return out
}

// Cells explores every defence against every fault. each is called with every
// cell when it is done, fault by fault.
func Cells(ctx context.Context, o Options, each func(Cell)) error {
	for _, c := range columns {
		for _, r := range rows {
			cell, err := explored(ctx, c, r, o)
			if err != nil {
				return err
			}
			each(cell)
		}
	}
	return nil
}

// OneCell explores one of them, by the names that the table has for it.
func OneCell(ctx context.Context, fault, defence string, o Options) (Cell, error) {
	i := slices.IndexFunc(columns, func(c column) bool { return c.name == fault })
	j := slices.IndexFunc(rows, func(r row) bool { return r.name == defence })
	if i < 0 || j < 0 {
		return Cell{}, fmt.Errorf("the table has no cell for %s with %s", fault, defence)
	}
	return explored(ctx, columns[i], rows[j], o)
}

func explored(ctx context.Context, c column, r row, o Options) (Cell, error) {
	o.Survey, o.Only = true, []Invariant{Books, I6, Spoilt, Noticed}
	s, _ := Find(c.setup)
	got, err := Explore(ctx, s.With(handoff.Switches{Faults: c.fault, Defences: r.set}), o)
	if err != nil {
		return Cell{}, err
	}
	if !got.Complete {
		return Cell{}, fmt.Errorf("%s with %s: not everything was explored", c.name, r.name)
	}
	return cellOf(c, r, got), nil
}

func cellOf(c column, r row, got Result) Cell {
	cell := Cell{Fault: c.name, Defence: r.name, Verdict: Stops, Setup: got.Setup, States: got.States}
	for _, v := range []struct {
		of Invariant
		is Verdict
	}{{Noticed, Detects}, {Spoilt, Blunts}, {I6, Misses}, {Books, "stops the engine"}} {
		if trace, can := got.Survey[v.of]; can {
			cell.Verdict, cell.Trace = v.is, &trace
		}
	}
	return cell
}

// Markdown is the table, with the length of the shortest trace of each cell.
func Markdown(cells []Cell) string {
	var b strings.Builder
	b.WriteString("| defence |")
	for _, c := range columns {
		fmt.Fprintf(&b, " %s |", c.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s |", r.name)
		for _, c := range columns {
			i := slices.IndexFunc(cells, func(x Cell) bool { return x.Fault == c.name && x.Defence == r.name })
			if i < 0 {
				b.WriteString(" |")
				continue
			}
			fmt.Fprintf(&b, " %s", cells[i].Verdict)
			if cells[i].Trace != nil {
				fmt.Fprintf(&b, " (%d)", len(cells[i].Trace.Steps))
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	return b.String()
}
