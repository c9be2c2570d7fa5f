package probe

import (
	"fmt"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// refinement finds a limit to the token where prompts cannot be counted
// beforehand: every prompt has words of its own, and what they make in tokens
// is known only to a percent or so. The longest prompt that was served whole
// has been counted, though. It is sent again, longer by single characters of
// padding that are a token each; whether they are is tried on a short prompt.
type refinement struct {
	refining bool
	tried    bool // refining has been tried, with success or without
	checking bool // whether padding counts is being tried
	checked  bool // it does
	short    counted
	base     counted // the longest prompt served whole
	coarse   bracket
}

// counted is a prompt that was served and counted.
type counted struct {
	send Send
	seq  int
	used int // tokens; 0 for none
}

const (
	// refineBelow is the length up to which a limit that nobody names is looked
	// for to the token, tokens: every step sends the whole prompt.
	refineBelow = 1 << 15
	// mostPad is the most padding, tokens.
	mostPad = 4096
	// checkPad is enough padding to tell a token a character from any other rate.
	checkPad = 64
)

// keep notes a served prompt if it is the first or the longest so far.
func (r *refinement) keep(e *wire.Exchange, s Send) {
	used, ok := e.Used()
	if !ok || e.Again != nil {
		return
	}
	if r.short.used == 0 {
		r.short = counted{s, e.Seq, used}
	}
	if used > r.base.used {
		r.base = counted{s, e.Seq, used}
	}
}

// longer is the prompt with so much padding.
func (c counted) longer(pad int) Send {
	s := c.send
	s.Label, s.Stream = fmt.Sprintf("size %d", c.used+pad), false
	s.Tokens, s.Again, s.Pad = c.used+pad, &c.seq, pad
	return s
}

// close reports whether the gap is down to what estimates can be off by.
func (b *boundary) close() bool {
	return b.search.hi-b.search.lo <= max(128, b.search.hi/32)
}

// refinable reports whether the limit is worth looking for to the token.
func (b *boundary) refinable() bool {
	s, used := &b.search, b.base.used
	if s.exact || b.refinement.tried || used == 0 || used != s.lo {
		return false
	}
	near := s.lo <= refineBelow
	for _, n := range s.names {
		near = near || n >= used && n <= used+mostPad
	}
	// A window that no estimate has been over for sure is reached by padding.
	return near && (s.hi > 0 || b.env.Context >= used && b.env.Context-used < mostPad)
}

// check asks whether padding counts.
func (b *boundary) check() Send {
	b.checking = true
	s := b.short.longer(checkPad)
	s.Label, s.MaxTokens, s.Asked = "padding", fewWords, -1
	b.sent++
	return s
}

// learn takes the answer to that.
func (b *boundary) learn(e *wire.Exchange) {
	used, ok := e.Used()
	b.checking = false
	b.checked = ok && e.Answer.Served() && used == b.short.used+checkPad
	b.refinement.tried = !b.checked
}

// refine begins with a bracket that holds nothing but counts. What was named
// comes first, then where the limit was estimated to be.
func (b *boundary) refine() {
	fine := bracket{lo: b.base.used, exact: true, tried: map[int]bool{}}
	for _, n := range append([]int{b.search.hi}, b.search.names...) {
		if n >= fine.lo && n <= fine.lo+mostPad && (b.search.hi == 0 || n <= b.search.hi+b.search.blur()) {
			fine.suggest(n)
		}
	}
	b.coarse, b.search = b.search, fine
	b.refining, b.refinement.tried = true, true
}

// unrefine goes back to estimates.
func (b *boundary) unrefine() {
	if lo := b.search.lo; b.coarse.hi == 0 || lo < b.coarse.hi {
		b.coarse.accept(lo)
	}
	b.search, b.refining = b.coarse, false
}

// counts reports whether the target has counted no more than was sent: more
// would mean that padding is not what it was.
func (b *boundary) counts(e *wire.Exchange) bool {
	n := b.base.used + e.Pad
	if r := e.Answer.Refusal; r != nil && !r.AtLeast && r.Sent > n {
		return false
	}
	used, ok := e.Used()
	return !ok || used <= n
}

// stretch doubles the padding while nothing refuses; 0 when that is enough.
func (b *boundary) stretch() int {
	n := min(b.search.lo+max(16, b.search.lo-b.base.used), b.base.used+mostPad)
	if b.env.MaxPrompt > 0 {
		n = min(n, b.env.MaxPrompt)
	}
	if !b.search.open(n) {
		return 0
	}
	return n
}
