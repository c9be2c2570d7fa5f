package explore

import (
	"testing"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// slow explores as plainly as can be: no memory of what operations do, no
// fingerprints, one thread.
type slow struct {
	m           *Model
	seen        map[string]bool
	transitions int64
	ends        int64
	depth       int
	broken      set
}

type slowState struct {
	parts [parts]part
	left  budget
}

func (s *slowState) text() string {
	b := []byte{byte(s.left), byte(s.left >> 8), byte(s.left >> 16)}
	for _, p := range s.parts {
		one := p.append(nil)
		b = append(b, byte(len(one)), byte(len(one)>>8))
		b = append(b, one...)
	}
	return string(b)
}

func (s *slow) run() {
	level := []slowState{{s.m.start(), s.m.setup.Bounds.budget()}}
	s.seen = map[string]bool{level[0].text(): true}
	for len(level) > 0 {
		var next []slowState
		for _, st := range level {
			next = s.expand(st, next)
		}
		if level = next; len(level) > 0 {
			s.depth++
		}
	}
}

func (s *slow) expand(st slowState, next []slowState) []slowState {
	for _, lull := range []bool{false, true} {
		bound := false
		for at, p := range st.parts {
			for _, f := range p.choices(s.m) {
				if f.lull != lull || !st.left.allows(f.cost) {
					continue
				}
				bound = bound || f.cost == 0
				after := slowState{st.parts, st.left - f.cost}
				for _, h := range s.m.happen(&after.parts, slotOf(at), f.op) {
					s.broken |= s.m.checked.of(h.out.broken) | s.m.checked.of(h.out.next.check(s.m))
				}
				s.transitions++
				if text := after.text(); !s.seen[text] {
					s.seen[text] = true
					next = append(next, after)
				}
			}
		}
		if bound {
			return next
		}
		if !lull {
			var all rest
			for _, p := range st.parts {
				all |= p.rest(s.m)
			}
			s.broken |= s.m.checked.of(s.m.atLull(all, st.left))
		}
	}
	s.ends++
	return next
}

func TestAgainstSlowTwin(t *testing.T) {
	small := []Shape{{Tenant: "a", Tokens: 5, MaxNew: 2, Count: 1, ID: 1}}
	for _, s := range []Setup{
		{Name: "two", Engine: oneSided(4, 4, 4, 16), Shapes: twoOfFour},
		{Name: "torn", Engine: oneSided(4, 4, 4, 16), Shapes: small, Bounds: Bounds{Cancels: 1, Expiries: 1}, Torn: true},
		{Name: "lossy", Engine: oneSided(4, 4, 4, 16), Shapes: small, Bounds: Bounds{Cancels: 1, Losses: 1, Copies: 1}, Unordered: true},
		{Name: "crash", Engine: messages(4, 4, 4, 16), Shapes: small, Bounds: Bounds{Crashes: 1}, Unordered: true},
		{Name: "fault", Engine: oneSided(4, 4, 4, 16), Shapes: small, Bounds: Bounds{Cancels: 1}},
	} {
		t.Run(s.Name, func(t *testing.T) {
			if s.Name == "fault" {
				s = s.With(handoff.Switches{Faults: handoff.LateWrite})
			}
			m, err := NewModel(s)
			if err != nil {
				t.Fatal(err)
			}
			twin := slow{m: m}
			twin.run()
			for _, workers := range []int{1, 2, 3} {
				r := explore(t, s, Options{Workers: workers, Survey: true})
				if r.States != len(twin.seen) || r.Transitions != twin.transitions || r.Ends != twin.ends || r.Depth != twin.depth {
					t.Errorf("%d workers: %d states, %d transitions, %d ends, depth %d; twin: %d, %d, %d, %d", workers,
						r.States, r.Transitions, r.Ends, r.Depth, len(twin.seen), twin.transitions, twin.ends, twin.depth)
				}
				for i := range invariants {
					if _, broken := r.Survey[i]; broken != (twin.broken&(1<<i) != 0) {
						t.Errorf("%v broken: %v, twin: %v", i, broken, !broken)
					}
				}
			}
			t.Logf("%d states", len(twin.seen))
		})
	}
}

// What is found, and where, does not depend on the number of workers.
func TestSameAnswerFromAnyNumberOfWorkers(t *testing.T) {
	s := setup(t, "pair").With(handoff.Switches{Faults: handoff.StaleSource})
	want := explore(t, s, Options{Workers: 1, Only: []Invariant{I6}})
	for _, workers := range []int{2, 3, 4} {
		got := explore(t, s, Options{Workers: workers, Only: []Invariant{I6}})
		if got.States != want.States || got.Counterexample.Story() != want.Counterexample.Story() {
			t.Errorf("%d workers find another way:\n%s", workers, got.Counterexample.Story())
		}
	}
}
