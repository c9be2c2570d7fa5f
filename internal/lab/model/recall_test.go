package model

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

var trials = flag.Int("trials", 0, "trials of recall at each length and of the incident (default: a few)")

// recall is a prompt that states values under keys and asks for one.
type recall struct {
	prompt []byte
	want   string
}

var recallKeys = []string{"Internal ref for this session:", "code alpha:", "code bravo:", "code delta:"}

// newRecall makes a prompt of about n tokens: each key once, in random order and at random
// places, in random words; in half of them an earlier turn asked for another key.
func newRecall(rng *rand.Rand, n int) recall {
	values := make([]string, len(recallKeys))
	var pieces []string
	room := n
	for i, key := range recallKeys {
		values[i] = secret(rng)
		if i == 0 {
			// One such prefix in a prompt: the model looks eight tokens back, so after
			// the seven of a common prefix it no longer knows which key was asked for.
			values[i] = "CANARY-" + values[i]
		}
		piece := key + " " + values[i] + "\n"
		pieces = append(pieces, piece)
		room -= len(piece)
	}
	rng.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	asked := rng.IntN(len(recallKeys))
	var text strings.Builder
	room = max(0, room-2*len(recallKeys[asked]))
	for i, piece := range pieces {
		filler := rng.IntN(room + 1)
		switch {
		case i == 0 && rng.IntN(2) == 0:
			filler = 0 // stated at the very start
		case i == len(pieces)-1:
			filler = room
		}
		room -= filler
		text.Write(prose(rng, filler))
		text.WriteString(piece)
	}
	messages := []Message{{RoleUser, text.String() + recallKeys[asked]}}
	if rng.IntN(2) == 0 {
		other := (asked + 1) % len(recallKeys)
		messages = []Message{
			{RoleUser, text.String() + recallKeys[other]},
			{RoleAssistant, values[other]},
			{RoleUser, "Thanks. And now the " + recallKeys[asked]},
		}
	}
	return recall{prompt: Template(nil, messages), want: values[asked] + "\n"}
}

func secret(rng *rand.Rand) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	s := make([]byte, 16)
	for i := range s {
		s[i] = letters[rng.IntN(len(letters))]
	}
	return string(s)
}

// TestRecall asks for values stated in prompts of 100 to 64,000 tokens. -trials 200 is the
// full sweep.
func TestRecall(t *testing.T) {
	m := New()
	for _, length := range []struct{ tokens, few int }{{100, 40}, {1000, 20}, {8000, 2}, {64000, 1}} {
		t.Run(fmt.Sprint(length.tokens), func(t *testing.T) {
			n := length.few
			if *trials > 0 {
				n = *trials
			}
			for seed := range n {
				rng := rand.New(rand.NewPCG(uint64(seed), uint64(length.tokens)))
				r := newRecall(rng, length.tokens)
				s := newSession(m, rng, 16, len(r.prompt)+60)
				s.write(r.prompt)
				if got := s.answer(60); got != r.want {
					t.Errorf("seed %d: got %q, want %q", seed, got, r.want)
				}
			}
		})
	}
}
