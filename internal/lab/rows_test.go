package lab

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
)

// batch serves requests at once of which the first ends soon, and returns what
// each has got and what it would get alone.
func batch(t *testing.T, e *Engine, rng *rand.Rand) (got []result, phrases []string) {
	t.Helper()
	var events []<-chan Event
	for _, n := range []int{12, 150, 160, 155} {
		p := words(rng, 23)
		phrases = append(phrases, p)
		events = append(events, e.Submit(t.Context(), Request{Tokens: chat(strings.Repeat(p, 10)), MaxTokens: n}))
	}
	for _, ev := range events {
		got = append(got, collect(ev))
	}
	return got, phrases
}

// foreign is the longest piece of an answer that is from going on with another
// phrase than its own.
func foreign(text, own string, others []string) string {
	for _, end := range []int{0, len(own)} { // what is at a seam belongs to both
		text = strings.ReplaceAll(text, own[end:]+own[:end], "\x00")
	}
	var sung []string
	for _, o := range others {
		if o != own {
			sung = append(sung, strings.Repeat(o, 3))
		}
	}
	return longestPiece(text, sung)
}

func TestRowsOutOfStep(t *testing.T) {
	for _, c := range []struct {
		faults, defences string
		leaks, refused   bool
	}{
		{"", "", false, false}, {"row_skew", "", true, false}, {"row_skew", "row_ids", false, true},
		{"row_skew", "owner_audit tags coverage generations unique_ids zero_on_alloc", true, false},
	} {
		cfg := tiny()
		cfg.Faults, cfg.Defences = strings.Fields(c.faults), strings.Fields(c.defences)
		e := startPipe(t, cfg)
		rng := rand.New(rand.NewPCG(1, 51))
		leaked, refused := "", false
		// Whether the four share a batch when the first ends is the
		// scheduler's to say, so a leak is waited for over many rounds.
		for round := range 200 {
			if round >= 6 && len(leaked) >= 20 == c.leaks && refused == c.refused {
				break
			}
			got, phrases := batch(t, e, rng)
			for i, g := range got {
				if f := foreign(g.text, phrases[i], phrases); len(f) > len(leaked) {
					leaked = f
				}
				refused = refused || g.err != nil
			}
		}
		if len(leaked) >= 20 != c.leaks || refused != c.refused {
			t.Errorf("%q with %q: %q is another's, refused: %v", c.faults, c.defences, leaked, refused)
		}
		idle(t, e)
	}
}

// A slot that is not cleared has an answer go on from where the one before
// ended, as long as there is always something to do.
func TestDirtyRecurrentState(t *testing.T) {
	ask := func(faults, defences string, busy bool) (answers []string) {
		cfg := tiny()
		cfg.Faults, cfg.Defences = strings.Fields(faults), strings.Fields(defences)
		e := startPipe(t, cfg)
		rng := rand.New(rand.NewPCG(1, 52))
		long := babble(rng)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if busy {
			other := e.Submit(ctx, Request{Tokens: long, MaxTokens: 3500})
			<-other
			go collect(other)
		}
		for range 24 {
			prompt, _ := recall(rng, 400)
			answers = append(answers, serve(t, e, Request{Tokens: prompt, MaxTokens: 40}).text)
			eventually(t, "nothing but the other answer", func() bool { return e.State().Running == 0 || busy })
		}
		return answers
	}
	want := ask("", "", false)
	for _, c := range []struct {
		defences     string
		busy, differ bool
	}{
		{"", true, true}, {"", false, false}, {"zero_on_alloc", true, true}, {"zero_on_alloc:all", true, false},
		{"slot_reset", true, false}, {"tags coverage", true, true},
	} {
		n := 0
		got := ask("dirty_slot:recurrent", c.defences, c.busy)
		for i := range got {
			if got[i] != want[i] {
				n++
			}
		}
		if n > 0 != c.differ {
			t.Errorf("with %q, busy %v: %d of %d answers differ", c.defences, c.busy, n, len(got))
		}
	}
}
