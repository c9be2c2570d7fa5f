package probe

import (
	"testing"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// told drives the conversations of prefix by a target that answers with the
// value that was asked for unless forgets says that it does not; it returns
// what was sent.
func told(t *testing.T, forgets func(s Send) bool) []Send {
	t.Helper()
	p := newPrefixes(Env{Tenants: 2, Seed: 1, MaxAnswer: 160, PageSize: 16})
	p.steps = nil
	p.turns()
	var all []Send
	var done []wire.Exchange
	for {
		batch := p.Next(done)
		if len(batch) == 0 {
			return all
		}
		done = nil
		for _, s := range batch {
			said := "old-value"
			if forgets(s) {
				said = "new-value"
			}
			done = append(done, wire.Exchange{
				Seq: len(all), Arm: s.Arm, Group: s.Group, Asked: s.Asked, Nonces: [3]string{"old-value"},
				Answer: &wire.Answer{Status: 200, Finish: "stop", Pieces: []wire.Piece{{Channel: wire.Content, Text: said}}},
			})
			all = append(all, s)
		}
	}
}

func count(all []Send, arm string) int {
	n := 0
	for _, s := range all {
		if s.Arm == arm {
			n++
		}
	}
	return n
}

// With the first token of its answer each conversation fills whole pages, and
// it goes on from the target's own answer.
func TestConversationsGoOnAtTheEndOfAPage(t *testing.T) {
	all := told(t, func(Send) bool { return false })
	if count(all, wire.ArmLoad) != turnTries || count(all, wire.ArmNull) != turnTries {
		t.Errorf("%d go on and %d are whole, want %d of each", count(all, wire.ArmLoad), count(all, wire.ArmNull), turnTries)
	}
	for i, s := range all {
		switch {
		case s.Arm == "" && (s.Tokens+1)%16 != 0:
			t.Errorf("a first turn of %d tokens does not end a page with its answer's first", s.Tokens)
		case s.Arm == wire.ArmLoad && (s.Prefix == nil || s.Prefix.Seq != i-1 || !s.Prefix.Answer):
			t.Errorf("a conversation goes on from %+v", s.Prefix)
		}
	}
}

// More are sent only where a cache would explain what was seen.
func TestConversationsWhereValuesAreLost(t *testing.T) {
	for name, c := range map[string]struct {
		forgets func(Send) bool
		whole   int
		goOn    int
	}{
		"those that go on":  {func(s Send) bool { return s.Arm == wire.ArmLoad }, mostTurns, mostTurns},
		"all":               {func(s Send) bool { return s.Arm != "" }, turnTries, turnTries},
		"the first answers": {func(s Send) bool { return s.Arm == "" }, turnTries, 0},
	} {
		all := told(t, c.forgets)
		if got, whole := count(all, wire.ArmLoad), count(all, wire.ArmNull); got != c.goOn || whole != c.whole {
			t.Errorf("%s lack their value: %d go on and %d are whole, want %d and %d", name, got, whole, c.goOn, c.whole)
		}
	}
}
