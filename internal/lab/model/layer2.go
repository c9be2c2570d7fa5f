package model

import "sync"

// Scores of layer 2 are exact integers. The similarity of a slot is
//
//	sum over k = 0..7 of 0.8^k * <C_k(query), C_(k+1)(slot)>
//
// and 0.8^k * 5^7 is the integer 4^k * 5^(7-k); codes are integers in units of 1/256.
// So with one = 5^7 * 256^2 standing for a similarity of 1 nothing is rounded, the order
// of summing is free, and equal matches are exactly equal.
const (
	one   = 78125 * codeUnit * codeUnit
	nat   = one / sharpness2 // a score difference of one nat
	sink2 = one * 6 / 10     // tau: evidence weaker than this counts for nothing
	prior = one / 10         // delta: by how much the prompt beats knowledge at equal match

	// Slots this far below the best are left out: 24 nats. A slot whose first code is
	// only accidentally similar (1/4) is exactly that far below a full match, so when
	// there is one, most slots are done with after one inner product.
	cutoff2 = one * 3 / 4
)

// Weights of slots are integers too, in units of 2^-weightBits of the best one: sums do
// not depend on their order, nor on how workers share the slots, and 2^20 slots of any
// content fit in 63 bits. Error of a logit over n slots: at most n*2^-37 from rounding
// and n*e^-24 from slots left out, 5e-5 together at a million.
const weightBits = 36

// depthWeight is 0.8^k in units of 5^-7.
var depthWeight = [depth]int64{78125, 62500, 50000, 40000, 32000, 25600, 20480, 16384}

// attend2 is layer 2 with its sink; it returns OUT in units of 1/sqrt(128).
func (m *Model) attend2(q *query, c *Cache, t Table, slots, workers int) (out [outDims]float64) {
	parts := make([]part, 0, workers+1)
	for w := range workers {
		parts = append(parts, part{q: q, c: c, t: t, from: slots * w / workers, to: slots * (w + 1) / workers})
	}
	known := &m.knowledge
	parts = append(parts, part{q: q, c: known.cache, t: known.table, to: known.slots, offset: -prior})

	best := parallel(parts, sink2, (*part).scout)
	best = parallel(parts, best, (*part).find)
	parallel(parts, best, (*part).gather)

	total := weight(sink2, best)
	var sum [outDims]int64
	for i := range parts {
		total += parts[i].total
		for d, v := range &parts[i].sum {
			sum[d] += v
		}
	}
	for d, v := range &sum {
		out[d] = float64(v) / float64(total)
	}
	return out
}

// parallel lets every part do a step that knows the best score so far and may raise it.
// The last part, which is short, goes with the first.
func parallel(parts []part, best int64, step func(p *part, best int64) int64) int64 {
	var wg sync.WaitGroup
	last := len(parts) - 1
	for i := 1; i < last; i++ {
		wg.Go(func() { parts[i].best = step(&parts[i], best) })
	}
	parts[last].best = step(&parts[last], best)
	parts[0].best = step(&parts[0], best)
	wg.Wait()
	for i := range parts {
		best = max(best, parts[i].best)
	}
	return best
}

// part is a range of slots under one query: the slots that may matter, then their share
// of the output.
type part struct {
	q        *query
	c        *Cache
	t        Table
	from, to int
	offset   int64 // added to every score

	best  int64
	hits  []hit
	total int64
	sum   [outDims]int64
}

type hit struct {
	slot  int32
	score int64
}

// rows calls f with the first layer-2 key row of every run of slots in one page, until it
// returns false. The row of the next slot is codeDims bytes on, that of the next depth
// pageSize*codeDims.
func (p *part) rows(f func(keys []byte, slot, n int) bool) {
	for slot := p.from; slot < p.to; {
		page, i := p.c.slot(p.t, slot)
		n := min(p.c.pageSize-i, p.to-slot)
		if !f(p.c.keys2(page)[i*codeDims:], slot, n) {
			return
		}
		slot += n
	}
}

// scout looks for a good score in a hurry, so that find can give up early on the rest:
// only at slots that have the last tokens but one and two byte for byte. (The last one
// often differs: at the start of an answer it stands for the space after a key.)
func (p *part) scout(best int64) int64 {
	last, before := &p.q.back[1], &p.q.back[2]
	if !last.word || !before.word {
		return best
	}
	depth := p.c.depthBytes()
	p.rows(func(keys []byte, _, n int) bool {
		for ; n > 0; n-- {
			if *(*code)(keys[depth:]) == last.code && *(*code)(keys[2*depth:]) == before.code {
				score, _ := p.q.score(keys, depth, p.offset, best)
				best = max(best, score)
			}
			keys = keys[codeDims:]
		}
		return best < p.q.rest[0]+p.offset
	})
	return best
}

// find collects the slots whose score is within cutoff2 of the best so far. A slot is
// given up as soon as the depths still to come cannot lift it there.
func (p *part) find(best int64) int64 {
	p.hits = p.hits[:0]
	depth := p.c.depthBytes()
	p.rows(func(keys []byte, slot, n int) bool {
		for k := range n {
			row := keys[k*codeDims:]
			score := p.offset + depthWeight[0]*p.q.back[0].wordDot((*code)(row))
			if score+p.q.rest[1] <= best-cutoff2 {
				continue
			}
			if score, alive := p.q.deepen(row, depth, score, best-cutoff2); alive {
				p.hits = append(p.hits, hit{slot: int32(slot + k), score: score})
				best = max(best, score)
			}
		}
		return true
	})
	return best
}

// gather adds up the values of the slots found, weighted by e^(score-best).
func (p *part) gather(best int64) int64 {
	for _, h := range p.hits {
		if h.score <= best-cutoff2 {
			continue // found when the best was lower: as if it had not been
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

// weight is e^(score-best) in units of 2^-weightBits.
func weight(score, best int64) int64 {
	return int64(exp(float64(score-best)/nat)*(1<<weightBits) + 0.5)
}
