package handoff

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// machine is what the three have in common.
type machine interface {
	Step(Event) []Action
	AppendState([]byte) []byte
}

// copied clones a machine.
func copied(m machine) machine {
	switch m := m.(type) {
	case *Router:
		return m.Clone()
	case *Prefill:
		return m.Clone()
	case *Decode:
		return m.Clone()
	}
	return nil
}

// A clone does not notice what becomes of its original, does the same when it
// is given the same event, and packs to the same bytes at every point.
func TestClonesAreIndependentAndEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(anyConfig(t))
		w.cfg.Switches.Faults = Faults(rapid.Uint16Range(0, 1<<len(faultNames)-1).Draw(t, "faults"))
		w = newWorld(w.cfg)
		w.before = func(to Role, e Event) func([]Action) {
			m := map[Role]machine{ToRouter: w.router, ToPrefill: w.prefill, ToDecode: w.decode}[to]
			packed, clone, other := m.AppendState(nil), copied(m), copied(m)
			return func(actions []Action) {
				if !bytes.Equal(clone.AppendState(nil), packed) {
					t.Fatalf("%v of %v has changed a clone", e, to)
				}
				if got := clone.Step(e); len(got) != len(actions) || len(got) > 0 && !reflect.DeepEqual(got, actions) {
					t.Fatalf("%v of %v: a clone does %v in place of %v", e, to, got, actions)
				}
				if !bytes.Equal(clone.AppendState(nil), m.AppendState(nil)) {
					t.Fatalf("%v of %v: equal machines pack to different bytes", e, to)
				}
				if !bytes.Equal(other.AppendState(nil), packed) {
					t.Fatalf("%v of %v: clones share memory", e, to)
				}
			}
		}
		havoc(w, rapidChooser(t), rapid.IntRange(0, 150).Draw(t, "steps"))
	})
}

// What packs to the same bytes does the same from there on; fields that differ
// show, each alone.
func TestStatesThatDiffer(t *testing.T) {
	cfg := Config{PageSize: 4, PrefillPages: 4, DecodePages: 8, Context: 32}
	seen := map[string]string{}
	for name, events := range map[string][]Event{
		"nothing":       {},
		"submitted":     {{Kind: Submit, Room: 1, Tokens: 5, MaxNew: 2}},
		"longer":        {{Kind: Submit, Room: 1, Tokens: 6, MaxNew: 2}},
		"more":          {{Kind: Submit, Room: 1, Tokens: 5, MaxNew: 3}},
		"another":       {{Kind: Submit, Room: 2, Tokens: 5, MaxNew: 2}},
		"gone again":    {{Kind: Submit, Room: 1, Tokens: 5, MaxNew: 2}, {Kind: Abort, Room: 1}},
		"greeted":       {{Kind: Hello, Room: 1, Tokens: 5}},
		"reserved":      {{Kind: Submit, Room: 1, Tokens: 5, MaxNew: 2}, {Kind: Hello, Room: 1, Tokens: 5}},
		"page written":  {{Kind: Submit, Room: 1, Tokens: 5, MaxNew: 2}, {Kind: Hello, Room: 1, Tokens: 5}, {Kind: Page, Room: 1, Gen: 1}},
		"draining":      {{Kind: Submit, Room: 1, Tokens: 5, MaxNew: 2}, {Kind: Hello, Room: 1, Tokens: 5}, {Kind: Abort, Room: 1}},
		"drained":       {{Kind: Submit, Room: 1, Tokens: 5, MaxNew: 2}, {Kind: Hello, Room: 1, Tokens: 5}, {Kind: Abort, Room: 1}, {Kind: Gone, Room: 1, Gen: 1}},
		"two in a row":  {{Kind: Submit, Room: 1, Tokens: 5, MaxNew: 2}, {Kind: Submit, Room: 2, Tokens: 5, MaxNew: 2}},
		"other way met": {{Kind: Submit, Room: 1, Tokens: 5, MaxNew: 2}, {Kind: Submit, Room: 2, Tokens: 5, MaxNew: 2}, {Kind: Hello, Room: 2, Tokens: 5}},
	} {
		d := NewDecode(cfg)
		for _, e := range events {
			d.Step(e)
		}
		packed := string(d.AppendState(nil))
		if other, taken := seen[packed]; taken {
			t.Errorf("%s and %s pack to the same bytes", name, other)
		}
		seen[packed] = name
	}
}
