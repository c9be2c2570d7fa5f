package handoff

import (
	"testing"

	"pgregory.net/rapid"
)

// Whatever the machines send each other, the receiver may take, and the other
// way round: nothing that is in the table is never sent.
func TestWhatIsSentMayTravel(t *testing.T) {
	seen := map[[2]Role]map[Kind]bool{}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(anyConfig(t))
		w.before = func(to Role, _ Event) func([]Action) {
			return func(actions []Action) {
				for _, a := range actions {
					if a.To == Self || a.To == ToClient {
						continue
					}
					if !a.Kind.Travels(to, a.To) {
						t.Fatalf("%v sends %v to %v", to, a.Kind, a.To)
					}
					if seen[[2]Role{to, a.To}] == nil {
						seen[[2]Role{to, a.To}] = map[Kind]bool{}
					}
					seen[[2]Role{to, a.To}][a.Kind] = true
				}
			}
		}
		havoc(w, rapidChooser(t), rapid.IntRange(100, 300).Draw(t, "steps"))
	})
	for link, kinds := range travels {
		for _, k := range kinds {
			if !seen[link][k] {
				t.Errorf("%v is never sent from %v to %v", k, link[0], link[1])
			}
		}
	}
	for _, k := range []Kind{Ran, Put, Verified, Stepped, Mismatch, PeerLost, Reset} {
		if k.Travels(ToPrefill, ToDecode) || k.Travels(ToDecode, ToPrefill) || k.Travels(ToRouter, ToDecode) {
			t.Errorf("%v travels, which a node has to see for itself", k)
		}
	}
}
