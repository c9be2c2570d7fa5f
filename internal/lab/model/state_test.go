package model

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// For the tokens of the answer itself a state says what the pages say; one that
// another answer has left says something else.
func TestStateIsWhatThePagesSay(t *testing.T) {
	m := New()
	rng := rand.New(rand.NewPCG(1, 61))
	other := new(State)
	differ := 0
	for range 20 {
		var text strings.Builder
		for range 60 + rng.IntN(200) {
			text.WriteByte(byte(' ' + rng.IntN(6)))
		}
		tokens := Template(nil, []Message{{RoleUser, text.String()}})
		c, table := NewCache(64, 8), Table{}
		for i := range c.Pages() {
			table = append(table, int32(i))
		}
		m.Write(c, table, 0, tokens)
		own := new(State)
		dirty := *other
		token := byte(' ')
		for pos := len(tokens); pos < len(tokens)+30; pos++ {
			m.Write(c, table, pos, []byte{token})
			want := m.Logits(c, table, pos, token, 1)
			if got := m.LogitsAfter(own, c, table, pos, token, 1); got != want {
				t.Fatalf("position %d: other logits with a state of the answer's own", pos)
			}
			if m.LogitsAfter(&dirty, c, table, pos, token, 1) != want {
				differ++
			}
			token = want.Greedy()
		}
		*other = *own
		if own.Reset(); *own != (State{}) {
			t.Error("a reset leaves something")
		}
	}
	if differ < 20 {
		t.Errorf("a state that another answer has left makes a difference %d times", differ)
	}
}
