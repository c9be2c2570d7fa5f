package probe

// bracket is a search for a limit: lo is the longest length known to be
// served, hi the shortest known not to be, tokens; 0 for none yet. Invariant:
// hi is 0 or lo < hi.
type bracket struct {
	lo, hi int
	exact  bool  // lengths are counted, not estimated
	names  []int // limits that somebody named, the latest last
}

// suggest notes a length that somebody says is the limit. Whether the limit
// itself is still served differs between engines, so it is tried out.
func (b *bracket) suggest(limit int) {
	if limit > 0 {
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

// open reports whether sending n tokens would narrow the bracket.
func (b *bracket) open(n int) bool { return n > b.lo && (b.hi == 0 || n < b.hi) }

// middle halves the bracket; 0 when it is narrow enough.
func (b *bracket) middle() int {
	if b.hi-b.lo <= b.step() {
		return 0
	}
	return b.lo + (b.hi-b.lo)/2
}
