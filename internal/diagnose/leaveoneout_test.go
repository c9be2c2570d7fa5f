package diagnose

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// runs drawn for each fault.
const drawn = 40

// A run is put together from one trial of each protocol under one fault; these
// trials are taken out of the table, and what is left has to name the class.
// Runs in which no protocol finds anything have nothing to diagnose.
func TestLeaveOneOut(t *testing.T) {
	table := Measured()
	first, second, all := 0, 0, 0
	for n, fault := range table.faults() {
		class, _, _ := strings.Cut(fault, ":")
		r := rand.New(rand.NewPCG(uint64(n), 47))
		right, runs := 0, 0
		for range drawn {
			seen, left := draw(table, fault, r)
			posterior := left.posterior(seen)
			if posterior == nil {
				continue
			}
			runs++
			switch slices.IndexFunc(posterior, func(c candidate) bool { return c.class == class }) {
			case 0:
				right, first, second = right+1, first+1, second+1
			case 1:
				right, second = right+1, second+1
			}
		}
		all += runs
		t.Logf("%s: among the first two in %d of %d runs", fault, right, runs)
	}
	t.Logf("all: first in %d, among the first two in %d of %d runs", first, second, all)
	if all == 0 || 100*second < 80*all {
		t.Errorf("the right class is among the first two in %d of %d runs", second, all)
	}
}

// draw takes a trial of each protocol out of a copy of the table.
func draw(t *Table, fault string, r *rand.Rand) (Seen, *Table) {
	left, seen := &Table{Schema: t.Schema}, Seen{}
	for _, e := range t.Entries {
		kept := Entry{Fault: e.Fault, Protocol: e.Protocol, Trials: e.Trials, Seen: map[string]int{}}
		for set, n := range e.Seen {
			kept.Seen[set] = n
		}
		if e.Fault == fault && e.Trials > 1 {
			set := pick(&e, r.IntN(e.Trials))
			seen[e.Protocol] = parse(set)
			kept.Trials--
			if kept.Seen[set]--; kept.Seen[set] == 0 {
				delete(kept.Seen, set)
			}
		}
		left.Entries = append(left.Entries, kept)
	}
	return seen, left
}

// pick is the set of signs of the nth trial.
func pick(e *Entry, n int) string {
	var sets []string
	for set := range e.Seen {
		sets = append(sets, set)
	}
	slices.Sort(sets)
	for _, set := range sets {
		if n -= e.Seen[set]; n < 0 {
			return set
		}
	}
	panic("kvcanary: internal error: a trial that is in no set")
}
