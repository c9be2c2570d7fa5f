package canary

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Words streams the words from, from+1, ... from+n-1 of the canary id,
// separated by single spaces, with neither leading nor trailing space. It
// keeps nothing but its place. Beginning at a later word costs a step a word
// skipped, as much as minting them. It panics if the words reach below zero or
// over [MaxWords].
func (c *Coder) Words(id ID, from, n int) io.Reader {
	return &words{c: c, state: c.stateAt(id, from, n), left: n}
}

// WordsSize is the length in bytes of what [Coder.Words] yields for the same
// arguments.
func (c *Coder) WordsSize(id ID, from, n int) int64 {
	if n == 0 {
		return 0
	}
	s := c.stateAt(id, from, n)
	size := int64(n - 1)
	for range n {
		size += int64(c.lx.letters[s.first])
		s = s.push(c.chain.next(s))
	}
	return size
}

// stateAt is the state whose first word is word from of the canary.
func (c *Coder) stateAt(id ID, from, n int) state {
	id.check()
	if from < 0 || n < 0 || from > MaxWords-n {
		panic(fmt.Sprintf("kvcanary: internal error: words %d to %d of a canary of at most %d words", from, from+n, MaxWords))
	}
	s := c.chain.seed(id)
	for range from {
		s = s.push(c.chain.next(s))
	}
	return s
}

// words is the reader that mints.
type words struct {
	c     *Coder
	state state
	left  int    // words still to mint
	spill []byte // rest of a word that did not fit
	buf   [maxLetters + 1]byte
}

// Read mints as much as fits into p.
func (w *words) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	o := copy(p, w.spill)
	w.spill = w.spill[o:]
	if len(w.spill) == 0 {
		o += w.whole(p[o:])
	}
	for w.left > 0 && o < len(p) {
		w.spill = w.buf[:w.whole(w.buf[:])]
		if len(w.spill) == 0 {
			w.spill = w.buf[:w.last(w.buf[:])]
		}
		n := copy(p[o:], w.spill)
		o, w.spill = o+n, w.spill[n:]
	}
	if o == 0 {
		return 0, io.EOF
	}
	return o, nil
}

// whole writes words and the space after each while there is room for the
// longest; the last word of all, which has no space after it, is left.
func (w *words) whole(p []byte) int {
	lx, ch, s, o, left := w.c.lx, &w.c.chain, w.state, 0, w.left
	for left > 1 && o+maxLetters+1 <= len(p) {
		n := int(lx.letters[s.first&wordMask])
		q := p[o : o+maxLetters+1]
		binary.LittleEndian.PutUint64(q, lx.packed[s.first&wordMask])
		q[n] = ' '
		o += n + 1
		left--
		s = s.push(ch.next(s))
	}
	w.state, w.left = s, left
	return o
}

// last writes the last word of all into p, which has room for it.
func (w *words) last(p []byte) int {
	binary.LittleEndian.PutUint64(p, w.c.lx.packed[w.state.first])
	w.left = 0
	return int(w.c.lx.letters[w.state.first])
}
