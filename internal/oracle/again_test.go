package oracle_test

import (
	"math/rand/v2"
	"testing"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// again adds an exchange that repeats the prompt of exchange seq, longer by pad.
func (w *world) again(seq, pad, used int, text string) *wire.Exchange {
	base := w.all[seq]
	e := w.sized(wire.Size, 0, base.Answer.Usage.Prompt+pad, used, text)
	e.ID, e.Nonces, e.Token, e.Again, e.Pad = base.ID, base.Nonces, base.Token, &base.Seq, pad
	return e
}

// A prompt that is sent again may quote itself, whichever of the two was first.
func TestPromptSentAgainMayQuoteItself(t *testing.T) {
	w := newWorld(t)
	w.sized(wire.Size, 0, 2000, 2000, "noted")
	own := w.words(0, 0, 5, 20) + " " + w.all[0].Nonces[1]
	w.again(0, 8, 2008, own)
	w.all[0].Answer.Pieces = []wire.Piece{piece("content", own)}
	w.expect(w.judge("leak"))
	w.expect(w.judge("misroute"))
	w.served(1, "content", own)
	w.expect(w.judge("leak"), "leak 2/bob from 0/ada in content, 20 words at 5")
	w.expect(w.judge("misroute"), "leak 2/bob from 0/ada in content, 0 words at 0")
}

// Where only usage counts, what was reported of the same prompt before says to
// the token what a longer one lacks.
func TestTruncationOfAPromptSentAgain(t *testing.T) {
	for name, c := range map[string]struct {
		used int
		want []string
	}{
		"whole":   {2048, nil},
		"cut":     {1878, []string{"truncation 2/ada"}},
		"a cache": {2030, nil}, // too little to be sure of
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sized(wire.Size, 0, 190, 190, "noted").SentExact = false
			w.sized(wire.Size, 0, 1900, 2040, "noted").SentExact = false
			w.again(1, 8, c.used, "noted")
			w.expect(w.judge("truncation"), c.want...)
		})
	}
}

// textual adds a prompt that could only be estimated: of so many bytes, in one
// message for each 160 of them, counted with the chance that lies in words.
func (w *world) textual(bytes, lost int, chance *rand.Rand) *wire.Exchange {
	messages := bytes/160 + 1
	used := 14 + bytes*55/100 + 9*messages + int(chance.NormFloat64()*5*float64(bytes)/1000) - lost
	e := w.sized(wire.Size, 0, bytes/4, used, "noted") // the estimate before anything was known
	e.SentExact, e.SentBytes, e.Messages = false, int64(bytes), messages
	return e
}

// Whole messages dropped from the front, as some servers do to make a prompt
// fit, leave most of it: the loss shows against the text of the other prompts,
// although nothing could be counted beforehand.
func TestTruncationOfEstimatedPrompts(t *testing.T) {
	for seed := range uint64(200) {
		chance := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t)
		for _, bytes := range []int{80, 320, 550, 990, 1010, 1740, 2060, 900, 2900} {
			w.textual(bytes, 0, chance)
		}
		w.textual(3100, 0, chance)
		w.textual(3150, 170, chance)
		w.textual(3200, 170, chance)
		w.textual(1000, 0, chance)
		w.expect(w.judge("truncation"), "truncation 10/ada", "truncation 11/ada")
		w.expect(w.judge("fail_open"))
	}
}

// Two characters of padding may make one token: the prompt that finds that out
// is not cut because of it.
func TestPaddingThatCountsForLessIsNoTruncation(t *testing.T) {
	w := newWorld(t)
	for _, n := range []int{195, 320, 448, 640, 1024} {
		w.sized(wire.Size, 0, n, n, "noted").SentExact = false
	}
	w.again(0, 64, 195+32, "noted").SentExact = false
	w.expect(w.judge("truncation"))
}
