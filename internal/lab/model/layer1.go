package model

import (
	"math"
	"math/bits"
)

// Layer 1, head h, position t: the query is R_(t-h) u, so its score against the key in
// a slot depends only on p = t-h, and head h at t asks what head h+1 asks at t+1. A
// window keeps those rows of scores: 23 inner products a token in place of 128.

// floor1 is the similarity below which a slot is left out of a head's softmax: 20 nats
// below the sink. Sixteen such slots weigh less than 4e-8 together, and outputs are
// rounded to 1/512.
const floor1 = sink1 - 20.0/sharpness1

// window is what layer 1 sees at one position: the last slots of the page table, by
// slot modulo windowSize, and the rows of the positions asked for, by position modulo depth.
type window struct {
	at     positions
	keys   [windowSize]vector
	values [windowSize]code
	full   int // slots in the window, at most windowSize
	rows   [depth]row
}

// row holds the scores of the slots in the window for one position asked for.
type row struct {
	query vector
	score [windowSize]float32
	hits  uint16 // slots whose score is above floor1
}

// codes8 are the outputs of the eight heads: the codes of the tokens one to eight back,
// zero where no slot in the window has that position.
type codes8 [depth]code

// newWindow loads the slots before pos, as they are.
func (m *Model) newWindow(c *Cache, t Table, pos int) *window {
	w := &window{at: m.rotary.positions()}
	for s := max(0, pos-windowSize+1); s < pos; s++ {
		page, i := c.slot(t, s)
		j := s % windowSize
		getVector(c.key1(page, i), &w.keys[j])
		w.values[j] = *c.val1(page, i)
		w.full++
	}
	for p := pos - depth; p < pos-1; p++ {
		w.ask(pos-1, p)
	}
	w.at.vector(pos-1, &w.rows[(pos-1)&(depth-1)].query)
	return w
}

// ask fills the row of position p with the slots up to last.
func (w *window) ask(last, p int) {
	r := &w.rows[p&(depth-1)]
	w.at.vector(p, &r.query)
	w.fill(r, last)
}

//go:norace
func (w *window) fill(r *row, last int) {
	r.hits = 0
	for k := range w.full {
		r.put(&w.keys[(last-k)&(windowSize-1)], (last-k)&(windowSize-1))
	}
}

//go:norace
func (r *row) put(key *vector, j int) {
	s := similarity(&r.query, key)
	r.score[j] = s
	r.hits &^= 1 << j
	if s > floor1 && s < math.MaxFloat32 {
		r.hits |= 1 << j
	}
}

// step moves the window on to slot t, whose key and value are set in place, and
// returns what the heads read there.
//
//go:norace
func (w *window) step(t int, out *codes8) {
	j := t & (windowSize - 1)
	w.full = min(w.full+1, windowSize)
	for p := t - depth; p < t-1; p++ {
		w.rows[p&(depth-1)].put(&w.keys[j], j)
	}
	w.fill(&w.rows[(t-1)&(depth-1)], t)
	for h := 1; h <= depth; h++ {
		w.attend(&w.rows[(t-h)&(depth-1)], &out[h-1])
	}
}

// attend is softmax attention with a sink over the slots of a row.
//
//go:norace
func (w *window) attend(r *row, out *code) {
	top := float32(sink1)
	for hits := r.hits; hits != 0; hits &= hits - 1 {
		top = max(top, r.score[bits.TrailingZeros16(hits)])
	}
	total := exp(sharpness1 * float64(sink1-top))
	var sum [codeDims]float64
	for hits := r.hits; hits != 0; hits &= hits - 1 {
		j := bits.TrailingZeros16(hits)
		e := exp(sharpness1 * float64(r.score[j]-top))
		total += e
		for i, v := range &w.values[j] {
			sum[i] += float64(e * float64(int8(v)))
		}
	}
	scale := 1 / total
	for i, s := range &sum {
		out[i] = byte(int(float64(s*scale)+128.5) - 128) // rounds; entries are within +-128
	}
}

// Write computes and stores keys and values of tokens at positions pos, pos+1, ...
// It reads at most 15 slots before pos, as the table has them, stale or not. It panics
// if the table has no page for a slot.
func (m *Model) Write(c *Cache, t Table, pos int, tokens []byte) {
	if len(tokens) == 0 {
		return
	}
	if pos < 0 {
		panic("kvcanary: internal error: write at a negative position")
	}
	c.checkTable(t, pos+len(tokens)-1)
	w := m.newWindow(c, t, pos)
	var back codes8
	for k, token := range tokens {
		s := pos + k
		page, i := c.slot(t, s)
		j := s & (windowSize - 1)
		w.at.vector(s, &w.keys[j])
		w.values[j] = m.codes[token]
		w.step(s, &back)
		w.rows[s&(depth-1)].query = w.keys[j] // the position that head 1 asks for next

		putVector(c.key1(page, i), &w.keys[j])
		*c.val1(page, i) = m.codes[token]
		keys := c.keys2(page)
		for d := range back {
			*(*code)(keys[d*c.depthBytes()+i*codeDims:]) = back[d]
		}
		*c.val2(page, i) = m.outputs[token]
	}
}
