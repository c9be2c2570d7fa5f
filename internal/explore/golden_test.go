package explore

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs:\n%s", path, got)
	}
}

// Each fault of the handoff, and the shortest ways in which it shows: the first
// invariant that it breaks, and a client who is sent what is another's.
func TestFaults(t *testing.T) {
	for _, c := range columns {
		fault := strings.Fields(c.name)[1]
		t.Run(fault, func(t *testing.T) {
			s := SetupsFor(c.fault)[0].With(handoff.Switches{Faults: c.fault})
			var b strings.Builder
			fmt.Fprintf(&b, "Fault %s in setup %s: %s.\n", fault, s.Name, s.About)
			for _, only := range [][]Invariant{nil, {I6}} {
				r := explore(t, s, Options{Workers: 2, Only: only})
				if r.Counterexample == nil {
					t.Fatalf("nothing is found in %d states", r.States)
				}
				fmt.Fprintf(&b, "\n%d steps:\n\n%s\n%s", len(r.Counterexample.Steps), r.Counterexample.Story(), r.Counterexample.Diagram())
			}
			golden(t, fault+".txt", b.String())
		})
	}
}

// The incident: an answer from pages that were reserved, never written, and
// hold what another tenant's request left there.
func TestIncident(t *testing.T) {
	s := setup(t, "too-long").With(handoff.Switches{Faults: handoff.StaleReserve})
	r := explore(t, s, Options{Workers: 2, Only: []Invariant{I6}})
	if r.Counterexample == nil {
		t.Fatalf("not found in %d states", r.States)
	}
	golden(t, "incident.svg", r.Counterexample.SVG())
	if last := r.Counterexample.Broken; len(last) != 1 || last[0].Invariant != I6 {
		t.Errorf("broken: %v", last)
	}
}
