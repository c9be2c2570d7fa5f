package oracle_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// wrong counts every prompt wrong by the same, and no fewer than one token of any.
func wrong(by int) func(int) int { return func(sent int) int { return max(1, sent+by) } }

// prompts adds short and long prompts, counted as used says. Where they cannot
// be counted beforehand a token is about bytesPerToken bytes, and what their
// length was taken to be is off by a fifth.
func (w *world) prompts(t *rapid.T, exact bool, most int, used func(int) int) {
	for _, sent := range rapid.SliceOfN(rapid.IntRange(60, most), 3, 12).Draw(t, "sent") {
		w.prompt(t, exact, sent, used(sent))
	}
}

const bytesPerToken = 4

func (w *world) prompt(t *rapid.T, exact bool, sent, used int) {
	e := w.sized(wire.Size, 0, sent, used, "noted")
	e.SentBytes, e.Messages, e.SentExact = int64(bytesPerToken*sent), 3, exact
	if !exact {
		e.SentTokens = sent * rapid.IntRange(80, 120).Draw(t, "guess") / 100
	}
}

func TestCountingWrongByAConstantIsNoTruncation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		exact := rapid.Bool().Draw(t, "exact")
		w.prompts(t, exact, 6000, wrong(rapid.IntRange(-900, 900).Draw(t, "by")))
		w.expect(w.judge("fail_open"))
		w.expect(w.judge("truncation"))
	})
}

// A prompt of which half is dropped, or nearly all, is found all the same.
func TestCountingWrongByAConstantHidesNoCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		used := wrong(rapid.IntRange(-600, 600).Draw(t, "by"))
		for _, sent := range []int{192, 1000, 2048} {
			w.prompt(t, true, sent, used(sent))
		}
		w.prompt(t, true, 12_000, used(rapid.IntRange(800, 6000).Draw(t, "kept")))
		if n := len(w.judge("truncation").Findings) + len(w.judge("fail_open").Findings); n != 1 {
			t.Fatalf("%d findings of one prompt that was cut", n)
		}
	})
}

// Where a target counts next to nothing of short prompts it proves nothing, and
// of a long one among such it does.
func TestCollapseNextToShortPromptsThatAreNotCounted(t *testing.T) {
	w := newWorld(t)
	for _, sent := range []int{200, 600, 900} {
		w.sized(wire.Size, 0, sent, 1, "noted")
	}
	w.sized(wire.Size, 0, 4000, 3100, "noted")
	w.sized(wire.Over, 3000, 12_000, 1, "somebody's text")
	w.expect(w.judge("fail_open"), "fail_open 4/ada")
	w.expect(w.judge("truncation"))
}
