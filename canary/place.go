package canary

import (
	"fmt"
	"io"
)

// Place is a place in a canary. A prompt that is cut into many pieces takes
// each from the place where the one before it ended, and so walks its canary
// once, where [Coder.Words] would begin anew for every piece. Its zero value
// is no place.
type Place struct {
	c  *Coder
	s  state
	at int // words
}

// Place is the place of word at of the canary id. Finding it costs a step a
// word skipped. It panics if at is below zero or over [MaxWords].
func (c *Coder) Place(id ID, at int) Place {
	return Place{c: c, s: c.stateAt(id, at, 0), at: at}
}

// Words streams the n words from p on, as [Coder.Words] does.
func (p Place) Words(n int) io.Reader {
	p.check(n)
	return &words{c: p.c, state: p.s, left: n}
}

// Skip is the place n words further on, and the length in bytes of what
// Words(n) yields.
func (p Place) Skip(n int) (next Place, size int64) {
	p.check(n)
	if n > 0 {
		size = int64(n - 1)
	}
	for range n {
		size += int64(p.c.lx.letters[p.s.first])
		p.s = p.s.push(p.c.chain.next(p.s))
	}
	p.at += n
	return p, size
}

func (p Place) check(n int) {
	if p.c == nil || n < 0 || n > MaxWords-p.at {
		panic(fmt.Sprintf("kvcanary: internal error: words %d to %d of a canary of at most %d words", p.at, p.at+n, MaxWords))
	}
}
