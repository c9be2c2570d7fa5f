package probe

import (
	"fmt"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// refinement finds a limit to the token where prompts cannot be counted
// beforehand: every prompt has words of its own, and what they make in tokens
// is known only to a percent or so. The longest prompt that was served whole
// has been counted, though. It is sent again, longer by single characters of
// padding that are a token each.
type refinement struct {
	refining bool
	tried    bool // refining has been tried, with success or without
	base     Send // the longest prompt served whole
	seq      int  // of its exchange
	used     int  // tokens that the target counted of it; 0 if there is none
	coarse   bracket
	verified bool // padding has been counted, a token a character
	odd      bool // some of it has been counted, and some not
}

const (
	// refineBelow is the length up to which a limit that nobody names is looked
	// for to the token, tokens: every step sends the whole prompt.
	refineBelow = 1 << 15
	// mostPad is the most padding, tokens.
	mostPad = 4096
)

// keep notes a served prompt if it is the longest so far.
func (r *refinement) keep(e *wire.Exchange, s Send) {
	if used, ok := e.Used(); ok && used > r.used {
		r.base, r.seq, r.used = s, e.Seq, used
	}
}

// close reports whether the gap is down to what estimates can be off by.
func (b *boundary) close() bool {
	return b.search.hi-b.search.lo <= max(128, b.search.hi/32)
}

// refinable reports whether the limit is worth looking for to the token.
func (b *boundary) refinable() bool {
	s := &b.search
	near := s.lo <= refineBelow
	for _, n := range s.names {
		near = near || n >= b.used && n <= b.used+mostPad
	}
	return near && !s.exact && !b.refinement.tried && s.hi > 0 && b.used == s.lo
}

// refine begins with a bracket that holds nothing but counts. What was named
// comes first, then where the limit was estimated to be.
func (b *boundary) refine() bool {
	if b.refining || !b.refinable() {
		return false
	}
	fine := bracket{lo: b.used, exact: true, tried: map[int]bool{}}
	for _, n := range append([]int{b.search.hi}, b.search.names...) {
		if n >= b.used && n <= b.used+mostPad {
			fine.suggest(n)
		}
	}
	b.coarse, b.search = b.search, fine
	b.refining, b.refinement.tried = true, true
	return true
}

// unrefine goes back to estimates.
func (b *boundary) unrefine() {
	if fine := b.search; b.verified && fine.lo < b.coarse.hi {
		b.coarse.accept(fine.lo)
	}
	b.search, b.refining = b.coarse, false
}

// fruitless reports whether the refined search, at its end, has found nothing:
// no prompt was refused, or none with padding was counted as it should be.
func (b *boundary) fruitless() bool {
	return b.refining && (b.search.hi == 0 || b.odd && !b.verified)
}

// longer is the base with as much padding as makes n tokens.
func (b *boundary) longer(n int) Send {
	s := b.base
	s.Label, s.Stream = fmt.Sprintf("size %d", n), false
	s.Tokens, s.Again, s.Pad = n, &b.seq, n-b.used
	return s
}

// padding looks at what the target has counted of a longer prompt and reports
// whether it can go on. More than a token a character is of no use. Less may
// mean that the prompt was cut to the limit: then a shorter one shows it.
func (b *boundary) padding(e *wire.Exchange) bool {
	n := b.used + e.Pad
	if r := e.Answer.Refusal; r != nil && r.Sent > 0 && !r.AtLeast && r.Sent != n {
		return false
	}
	used, ok := e.Used()
	if !ok || !e.Answer.Served() {
		return true
	}
	b.verified = b.verified || used == n
	b.odd = b.odd || used > b.used && used < n
	return used <= n
}

// stretch doubles the padding while nothing refuses; 0 when that is enough.
func (b *boundary) stretch() int {
	n := min(b.search.lo+max(16, b.search.lo-b.used), b.used+mostPad)
	if b.env.MaxPrompt > 0 {
		n = min(n, b.env.MaxPrompt)
	}
	if !b.search.open(n) {
		return 0
	}
	return n
}
