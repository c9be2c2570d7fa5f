package probe

import "slices"

// bracket is a search for a limit: lo is the longest length known to be
// served, hi the shortest known not to be, tokens; 0 for none yet. Invariant:
// hi is 0 or lo < hi.
type bracket struct {
	lo, hi int
	exact  bool  // lengths are counted, not estimated
	names  []int // limits that somebody named, the latest last
	tried  map[int]bool
}

// maxNames is how many different limits are tried out: a target that names
// another one each time must not lead the search by the nose.
const maxNames = 6

// suggest notes a length that somebody says is the limit. Whether the limit
// itself is still served differs between engines, so it is tried out.
func (b *bracket) suggest(limit int) {
	if limit > 0 && len(b.names) < maxNames && !slices.Contains(b.names, limit) {
		b.names = append(b.names, limit)
	}
}

func (b *bracket) accept(n int) {
	b.lo = max(b.lo, n)
}

func (b *bracket) reject(n int) {
	if n > b.lo && (b.hi == 0 || n < b.hi) {
		b.hi = n
	}
}

// step is the smallest difference worth telling apart, tokens: one where
// tokens are counted, 0.1 % where they are estimated.
func (b *bracket) step() int {
	if b.exact {
		return 1
	}
	return max(1, max(b.lo, b.hi)/1000)
}

// suggested is the next length that a named limit makes worth trying, at most
// top; 0 if there is none. A name costs two prompts if it is right: itself, and its
// neighbour on the other side.
func (b *bracket) suggested(top int) int {
	s := b.step()
	for i := len(b.names) - 1; i >= 0; i-- {
		m := b.names[i]
		switch {
		case b.open(m) && m <= top:
			return m
		case m == b.lo && b.open(m+s) && m+s <= top:
			return m + s
		case m == b.hi && b.open(m-s):
			return m - s
		}
	}
	return 0
}

// open reports whether sending n tokens would narrow the bracket. A length is
// tried once: a prompt cannot always be made as long as it is wanted, and what
// it came to is in the bracket.
func (b *bracket) open(n int) bool {
	return n >= smallest && n > b.lo && (b.hi == 0 || n < b.hi) && !b.tried[n]
}

// middle halves the bracket; 0 when it is narrow enough.
func (b *bracket) middle() int {
	if n := max(b.lo+(b.hi-b.lo)/2, smallest); b.hi-b.lo > b.step() && b.open(n) {
		return n
	}
	return 0
}

// blur is how far off an estimate may be, tokens: words differ, and that
// matters the more the fewer there are.
func (b *bracket) blur() int { return max(64, b.hi/100) }

// narrow reports whether the limit is known as well as it can be: to a step,
// or to 0.1 % where prompts of exactly the length wanted cannot be made, or as
// far as estimates reach.
func (b *bracket) narrow() bool {
	if !b.exact {
		return b.hi-b.lo <= b.blur()
	}
	return b.hi-b.lo <= max(b.step(), b.hi/1000)
}
