package model

import (
	"slices"
	"sync"
)

// part is a range of slots under one query: the slots that may matter, then their share
// of the output.
type part struct {
	q        *query
	c        *Cache
	t        Table
	from, to int
	offset   int64 // added to every score

	hits  []hit
	read  byte // what touch has read; its value means nothing
	total int64
	sum   [outDims]int64
}

type hit struct {
	slot  int32
	score int64
}

// touch reads a byte of every cache line of a run of rows, so that the misses of a pool larger
// than the caches overlap. It is what the race detector sees of a scan.
//
//go:noinline
func (p *part) touch(rows []byte) {
	const line = 64
	for i := 0; i < len(rows); i += line {
		p.read ^= rows[i]
	}
}

// run is how many slots are looked at together.
const run = 64

// runs calls f with runs of slots that lie in one page, until it returns false. keys begins
// with the layer-2 key row of the first; that of the next slot is codeDims bytes on, that of
// the next depth pageSize*codeDims.
//
//go:norace
func (p *part) runs(f func(keys []byte, slot, n int) bool) {
	for slot := p.from; slot < p.to; {
		page, i := p.c.slot(p.t, slot)
		n := min(p.c.pageSize-i, p.to-slot, run)
		if !f(p.c.keys2(page)[i*codeDims:], slot, n) {
			return
		}
		slot += n
	}
}

// scout looks for a good score in a hurry, so that find can give up early on the rest. A
// score counts no more than the most that this query can reach in sound pages: thus what
// scout returns, and with it the result, does not depend on how the slots are shared even
// where pages hold garbage.
func (q *query) scout(parts []part) int64 {
	for _, a := range q.landmarks() {
		best := parallel(parts, func(p *part) int64 { return p.scout(a[0], a[1]) })
		if best > sink2 {
			return best
		}
	}
	return sink2
}

// landmarks are pairs of depths: where both match byte for byte, a good score is likely.
// The last token but one comes first, as the last one often differs: at the start of an
// answer it stands for the space after a key.
func (q *query) landmarks() [][2]int {
	if q.back[1].word && q.back[2].word {
		return [][2]int{{1, 2}, {0, 0}}
	}
	if q.back[1].word {
		return [][2]int{{0, 1}, {0, 0}}
	}
	return [][2]int{{0, 0}}
}

// scout returns the best score among slots that match byte for byte at depths a and b.
func (p *part) scout(a, b int) int64 {
	codeA, codeB := p.q.back[a].code, p.q.back[b].code
	depth := p.c.depthBytes()
	best, most := int64(sink2), p.q.rest[0]+p.offset
	p.runs(func(keys []byte, _, n int) bool {
		atA, atB := keys[a*depth:], keys[b*depth:]
		p.touch(atA[:n*codeDims])
		best = max(best, p.q.bestOf(keys, atA[:n*codeDims], atB, &codeA, &codeB, depth, p.offset))
		return best < most
	})
	return min(best, max(most, sink2))
}

// bestOf is the best score of the slots of a run whose codes at two depths are those.
//
//go:norace
func (q *query) bestOf(keys, atA, atB []byte, codeA, codeB *code, stride int, offset int64) int64 {
	best := int64(sink2)
	for i := 0; i < len(atA); i += codeDims {
		if *(*code)(atA[i:]) == *codeA && *(*code)(atB[i:]) == *codeB {
			best = max(best, q.score(keys[i:], stride, offset))
		}
	}
	return best
}

// find collects the slots whose score is above floor. It goes depth by depth: a slot is given
// up as soon as the depths still to come cannot lift it there.
func (p *part) find(floor int64) int64 {
	best := int64(sink2)
	depthBytes := p.c.depthBytes()
	var alive candidates
	p.runs(func(keys []byte, slot, n int) bool {
		p.touch(keys[:n*codeDims])
		p.touch(keys[depthBytes:][:n*codeDims])
		alive.reset(n, p.offset)
		alive.sift(p.q, keys, depthBytes, floor)
		for i := range alive.n {
			p.hits = append(p.hits, hit{slot: int32(slot + int(alive.row[i])/codeDims), score: alive.score[i]})
			best = max(best, alive.score[i])
		}
		return true
	})
	return best
}

// candidates are the slots of a run that may still get above the floor.
type candidates struct {
	n     int
	row   [run]uint16 // where the slot's key begins, bytes
	score [run]int64
}

//go:norace
func (c *candidates) reset(n int, offset int64) {
	c.n = n
	for i := range n {
		c.row[i], c.score[i] = uint16(i*codeDims), offset
	}
}

// sift keeps the slots whose whole score is above floor.
//
//go:norace
func (c *candidates) sift(q *query, keys []byte, depthBytes int, floor int64) {
	for d := 0; d < depth && c.n > 0; d++ {
		c.narrow(&q.back[d], depthWeight[d], keys[d*depthBytes:], floor-q.rest[d+1])
	}
}

// narrow adds one depth to the scores and keeps those above least. Whether a slot is kept is
// as good as random, so it decides an increment and not a branch.
//
//go:norace
func (c *candidates) narrow(p *pattern, weight int64, keys []byte, least int64) {
	switch {
	case p.blank:
		return
	case !p.word:
		c.narrowAny(p, weight, keys, least)
		return
	}
	kept := 0
	for i := range c.n {
		row := c.row[i&(run-1)]
		score := c.score[i&(run-1)] + weight*p.wordDot((*code)(keys[row:]))
		c.row[kept&(run-1)], c.score[kept&(run-1)] = row, score
		if score > least {
			kept++
		}
	}
	c.n = kept
}

// narrowAny is narrow for an average of code words, which is rare.
//
//go:norace
func (c *candidates) narrowAny(p *pattern, weight int64, keys []byte, least int64) {
	kept := 0
	for i := range c.n {
		score := c.score[i] + weight*p.dot((*code)(keys[c.row[i]:]))
		if score > least {
			c.row[kept], c.score[kept] = c.row[i], score
			kept++
		}
	}
	c.n = kept
}

// gather adds up the values of the slots found, weighted by e^(score-best).
func (p *part) gather(best int64) int64 {
	for _, h := range p.hits {
		if h.score <= best-cutoff2 {
			continue // found because the scouts fell short of the best
		}
		w := weight(h.score, best)
		page, i := p.c.slot(p.t, int(h.slot))
		p.total += w
		for d, v := range p.c.val2(page, i) {
			p.sum[d] += w * int64(int8(v))
		}
	}
	return best
}

// parallel lets every part do a step and returns the best score of all, at least the sink's.
// The last part, which is short, goes with the first.
func parallel(parts []part, step func(p *part) int64) int64 {
	best := make([]int64, len(parts))
	run := func(i int) { best[i] = step(&parts[i]) }
	var wg sync.WaitGroup
	last := len(parts) - 1
	for i := 1; i < last; i++ {
		wg.Go(func() { run(i) })
	}
	run(last)
	run(0)
	wg.Wait()
	return max(sink2, slices.Max(best))
}
