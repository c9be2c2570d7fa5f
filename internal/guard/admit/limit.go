package admit

import (
	"fmt"
	"slices"
	"time"

	"github.com/kvcanary/kvcanary/internal/engine"
	"github.com/kvcanary/kvcanary/internal/prose"
)

// Limit is the longest prompt that an upstream may be sent.
type Limit struct {
	Tokens int    // the longest prompt that fits; 0 for not known
	Source string // what it follows from, for people; where Tokens is 0, why it is not known
	// Total is the most that a prompt and its answer may have together, and
	// TotalSource what that follows from; 0 for no bound.
	Total       int
	TotalSource string
	// At is when it was measured. The zero time is that of a limit which does
	// not age, as one that was configured.
	At time.Time
}

// Given are the limits that the operator states, in tokens; 0 for none. They
// are taken beside what the engine says: the smallest holds.
type Given struct {
	Tokens  int // longest prompt
	Pool    int // smallest KV pool that a prompt is computed in
	Context int // context window
	Decode  int // smallest KV pool of the decode workers
}

// kept is how many tokens an engine keeps of context and pool: a prompt fits if
// it is shorter by so much. All keep one for the answer. SGLang's scheduler
// refuses from min(context, pool) - 6 on; LMDeploy's PyTorch engine keeps a
// block of the pool besides those that it reserves.
func kept(f *engine.Facts) (ofPool, ofContext int) {
	switch f.Engine {
	case "sglang":
		return 7, 7
	case "lmdeploy":
		return 1 + 2*max(0, f.PageSize.Value), 1
	}
	return 1, 1
}

// smallest collects bounds and keeps the lowest of them. Of equals the first
// stays, so the most telling is to come first.
type smallest struct {
	n      int
	source string
}

func (s *smallest) take(n int, source string) {
	if n > 0 && (s.n == 0 || n < s.n) {
		s.n, s.source = n, source
	}
}

// less takes a count less what is kept of it.
func (s *smallest) less(n, kept int, what, from string) {
	if n <= 0 {
		return
	}
	// What is not larger than its reserve lets nothing pass; 0 would be unknown.
	s.take(max(1, n-kept), fmt.Sprintf("%s %s less reserve %s, from %s", what, prose.Thousands(n), prose.Thousands(kept), from))
}

// Of is the limit for a model that follows from what the workers of an upstream
// say and from what the operator states. A context window alone makes no limit:
// a pool smaller than the window is what has to be guarded against, so where
// nobody says how large the pool is, and from which length on the engine
// refuses, the limit is not known. Margin is kept free below everything.
func Of(workers []engine.Facts, given Given, margin int, model string, at time.Time) Limit {
	var prompt, total smallest
	silent, unasked := 0, 0 // workers whose pool nobody knows, and those of them that never spoke
	for i := range workers {
		if !bound(&workers[i], model, &prompt, &total) {
			silent++
			if workers[i].Engine == "" {
				unasked++
			}
		}
	}
	configured := given.add(&prompt, &total)
	l := Limit{Tokens: prompt.n, Source: prompt.source, Total: total.n, TotalSource: total.source, At: at}
	switch {
	case configured: // the operator answers for it, and nothing measured makes it larger
		l.At = time.Time{}
	case len(workers) == 0 || silent > 0:
		return Limit{Source: unknown(len(workers), silent, unasked, prompt), At: at}
	}
	if margin > 0 {
		l.Tokens = max(1, l.Tokens-margin)
		l.Source += fmt.Sprintf(", less a margin of %s", prose.Thousands(margin))
	}
	return l
}

// unknown says why there is no limit.
func unknown(workers, silent, unasked int, known smallest) string {
	const todo = ": state the pool under limits, or let the guard read where the engine states it"
	if unasked == workers {
		return "no worker could be asked" + todo
	}
	s := fmt.Sprintf("%s of %d says how large its KV pool is or from which length on it refuses", prose.Thousands(workers-silent), workers)
	if silent == workers {
		s = "the engine says neither how large its KV pool is nor from which length on it refuses"
	}
	if known.n > 0 {
		s += " (all that is known: " + known.source + ")"
	}
	return s + todo
}

// bound takes what one worker says and reports whether that holds for its pool
// as well.
func bound(f *engine.Facts, model string, prompt, total *smallest) bool {
	if f.Engine == "ollama" && model != "" && f.ContextOf(model) == 0 {
		// It states the window of a model that is loaded, and cuts what is longer.
		return false
	}
	keptPool, keptContext := kept(f)
	pool, decode := f.Pool, f.DecodePool
	if f.Role.Value == "decode" && decode.Value == 0 {
		pool, decode = engine.Number{}, f.Pool
	}
	if usable(pool) {
		prompt.less(pool.Value, keptPool, "pool", pool.Source)
	}
	context, from := f.Context.Value, f.Context.Source
	if n := f.ContextOf(model); n > 0 && !f.Router.On {
		context, from = n, "what the engine states for this model"
	}
	prompt.less(context, keptContext, "context", from)
	total.take(context, fmt.Sprintf("context %s, from %s", prose.Thousands(context), from))
	if usable(f.MaxInput) {
		prompt.less(f.MaxInput.Value, 1, "shortest refused prompt", f.MaxInput.Source)
	}
	if usable(decode) {
		prompt.less(decode.Value, add(max(0, f.Reserve.Value), 1), "decode pool", decode.Source)
		total.take(max(1, decode.Value-f.Reserve.Value), fmt.Sprintf("decode pool %s, from %s", prose.Thousands(decode.Value), decode.Source))
	} else if f.Role.Value != "prefill" && usable(pool) {
		total.take(pool.Value, fmt.Sprintf("pool %s, from %s", prose.Thousands(pool.Value), pool.Source))
	}
	if f.Router.Is(true) && len(f.Behind) == 0 {
		return false // its numbers are of one worker, and which that is it does not say
	}
	return usable(f.Pool) || usable(f.MaxInput)
}

// usable reports whether a number bounds what the engine holds: one that it may
// come to less than does not.
func usable(n engine.Number) bool { return n.Value > 0 && !n.AtMost }

// add takes what the operator states and reports whether it holds for the pool.
func (g Given) add(prompt, total *smallest) bool {
	const from = "the configuration"
	prompt.less(g.Pool, 1, "pool", from)
	prompt.less(g.Context, 1, "context", from)
	prompt.less(g.Decode, 1, "decode pool", from)
	prompt.take(g.Tokens, "limit "+prose.Thousands(g.Tokens)+" of "+from)
	for _, n := range slices.DeleteFunc([]int{g.Context, g.Decode}, func(n int) bool { return n <= 0 }) {
		total.take(n, fmt.Sprintf("%s tokens, from %s", prose.Thousands(n), from))
	}
	return g.Tokens > 0 || g.Pool > 0
}
