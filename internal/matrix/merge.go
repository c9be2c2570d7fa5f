package matrix

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Read reads a table that was written as JSON, and says what is wrong with one.
func Read(b []byte) (*Table, error) {
	var t Table
	if err := json.Unmarshal(b, &t); err != nil {
		return nil, fmt.Errorf("matrix: %w", err)
	}
	if t.Schema != Schema {
		return nil, fmt.Errorf("matrix: schema %q, this version reads %q: measure it again", t.Schema, Schema)
	}
	for _, c := range t.Cells {
		if c.Trials < 1 || c.Found.Count > c.Trials || c.Leak.Count > c.Trials {
			return nil, fmt.Errorf("matrix: %s under %s: %d findings and %d leaks in %d trials", c.Fault, c.Probe, c.Found.Count, c.Leak.Count, c.Trials)
		}
	}
	return &t, nil
}

// Merge takes over the cells of another table: in place of one of the same
// fault, defence and probe, unless that has more trials. Cells come in the order
// of the lab's faults and of the probes.
func (t *Table) Merge(other *Table) {
	for _, c := range other.Cells {
		i := slices.IndexFunc(t.Cells, func(o Cell) bool { return o.Fault == c.Fault && o.Defence == c.Defence && o.Probe == c.Probe })
		switch {
		case i < 0:
			t.Cells = append(t.Cells, c)
		case t.Cells[i].Trials <= c.Trials:
			t.Cells[i] = c
		}
	}
	t.Trials = max(t.Trials, other.Trials)
	faults, defences, probes := Faults(), append([]string{"", NoDefence}, Defences()...), names(Probes())
	slices.SortStableFunc(t.Cells, func(a, b Cell) int {
		for _, by := range []struct {
			order []string
			a, b  string
		}{{faults, a.Fault, b.Fault}, {defences, a.Defence, b.Defence}, {probes, a.Probe, b.Probe}} {
			if d := slices.Index(by.order, by.a) - slices.Index(by.order, by.b); d != 0 {
				return d
			}
		}
		return 0
	})
}

func names(probes []Probe) []string {
	var out []string
	for _, p := range probes {
		out = append(out, p.Name)
	}
	return out
}

// only is the part of a table whose cells are as keep says.
func (t *Table) only(keep func(*Cell) bool) *Table {
	out := &Table{Schema: t.Schema, Trials: t.Trials, Seed: t.Seed, Cells: []Cell{}}
	for i := range t.Cells {
		if keep(&t.Cells[i]) {
			out.Cells = append(out.Cells, t.Cells[i])
		}
	}
	return out
}

// best is the cell in which a fault is found most often for sure, without any
// defence: the one whose interval begins highest, of equals the one with more
// trials. nil if there is none.
func (t *Table) best(fault string) *Cell {
	var out *Cell
	for i := range t.Cells {
		c := &t.Cells[i]
		if c.Fault != fault || c.Defence != "" {
			continue
		}
		if out == nil || c.Found.Lower > out.Found.Lower || c.Found.Lower == out.Found.Lower && c.Trials > out.Trials {
			out = c
		}
	}
	return out
}
