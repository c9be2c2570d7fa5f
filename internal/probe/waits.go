package probe

import (
	"time"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// waits are the times to a first token while nothing else runs, by the length of
// the prompt. The part of them that grows with the length is prefill; what is
// the same for all lengths comes behind it, for the most part: a transfer, the
// first step of the answer.
type waits struct {
	all []wait
}

type wait struct {
	tokens int
	first  time.Duration
}

// learn takes an exchange that had nothing beside it.
func (w *waits) learn(e *wire.Exchange) {
	if a := e.Answer; a.Served() && e.SentTokens > 0 && a.FirstToken.After(a.Start) {
		w.all = append(w.all, wait{e.SentTokens, a.FirstToken.Sub(a.Start)})
	}
}

// of is how long a prompt of that many tokens is computed, and how long it takes
// from then to its first token. Where lengths are too much alike to tell these
// apart, or nothing is known, all of it is taken for the latter.
func (w *waits) of(tokens int) (prefill, rest time.Duration) {
	if len(w.all) == 0 {
		return 0, unknownFirst
	}
	short, long := w.all[0], w.all[0]
	for _, x := range w.all {
		short.tokens, long.tokens = min(short.tokens, x.tokens), max(long.tokens, x.tokens)
		short.first, long.first = max(short.first, x.first), max(long.first, x.first)
	}
	// The quickest of those of about a length had nobody else in their way.
	for _, x := range w.all {
		if 2*x.tokens <= 3*short.tokens {
			short.first = min(short.first, x.first)
		}
		if 3*x.tokens >= 2*long.tokens {
			long.first = min(long.first, x.first)
		}
	}
	if long.tokens < 2*short.tokens || long.first <= short.first {
		return 0, short.first
	}
	token := (long.first - short.first) / time.Duration(long.tokens-short.tokens)
	return token * time.Duration(tokens), max(0, short.first-token*time.Duration(short.tokens))
}

// part is the moment when a prompt has so much of its prefill behind it, and of
// what follows.
func (w *waits) part(tokens int, prefill, rest float64) time.Duration {
	p, r := w.of(tokens)
	return time.Duration(prefill*float64(p) + rest*float64(r))
}
