package probe

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// waited is an exchange that has waited so long for its first token.
func waited(tokens int, first time.Duration) *wire.Exchange {
	start := time.Unix(1000, 0)
	return &wire.Exchange{SentTokens: tokens, Answer: &wire.Answer{Status: 200, Finish: "stop", Start: start, FirstToken: start.Add(first), End: start.Add(first)}}
}

// What grows with the length is told from what does not, whoever else is in the
// way of some.
func TestWaitsTellPrefillFromTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perToken := time.Duration(rapid.IntRange(1, 500).Draw(t, "microseconds a token")) * time.Microsecond
		rest := time.Duration(rapid.IntRange(1, 500).Draw(t, "milliseconds")) * time.Millisecond
		var w waits
		for i, tokens := range []int{318, 2434, 383, 1345, 318, 2434} {
			others := time.Duration(0)
			if i < 4 {
				others = time.Duration(rapid.IntRange(0, 900).Draw(t, "others")) * time.Millisecond
			}
			w.learn(waited(tokens, rest+perToken*time.Duration(tokens)+others))
		}
		prefill, after := w.of(1024)
		if d := prefill - 1024*perToken; d.Abs() > time.Millisecond {
			t.Errorf("prefill of 1024 tokens at %v each: %v", perToken, prefill)
		}
		if d := after - rest; d.Abs() > time.Millisecond {
			t.Errorf("the rest is %v, want %v", after, rest)
		}
	})
}

// Where nothing tells the two apart, all of a wait is taken for what follows prefill.
func TestWaitsThatTellNothing(t *testing.T) {
	var w waits
	if prefill, rest := w.of(1024); prefill != 0 || rest != unknownFirst {
		t.Errorf("nothing known: %v and %v", prefill, rest)
	}
	w.learn(&wire.Exchange{SentTokens: 300, Answer: &wire.Answer{Failure: &wire.Failure{Kind: wire.FailedCanceled}}})
	w.learn(waited(300, 90*time.Millisecond))
	w.learn(waited(320, 80*time.Millisecond))
	if prefill, rest := w.of(1024); prefill != 0 || rest != 80*time.Millisecond {
		t.Errorf("lengths that are alike: %v and %v", prefill, rest)
	}
	w.learn(waited(3000, 70*time.Millisecond))
	if prefill, rest := w.of(1024); prefill != 0 || rest != 80*time.Millisecond {
		t.Errorf("a long prompt that waits less: %v and %v", prefill, rest)
	}
}

func TestPartsOfAWait(t *testing.T) {
	var w waits
	w.learn(waited(500, 150*time.Millisecond))
	w.learn(waited(2500, 350*time.Millisecond))
	for _, c := range []struct {
		prefill, rest float64
		want          time.Duration
	}{{0, 0, 0}, {0.5, 0, 50 * time.Millisecond}, {1, 0, 100 * time.Millisecond}, {1, 0.5, 150 * time.Millisecond}, {1, 1, 200 * time.Millisecond}} {
		if got := w.part(1000, c.prefill, c.rest); (got - c.want).Abs() > time.Microsecond {
			t.Errorf("%v of prefill and %v of the rest: %v, want %v", c.prefill, c.rest, got, c.want)
		}
	}
}
