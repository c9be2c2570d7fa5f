package model

import (
	"encoding/binary"
	"sync"
)

// Scores of layer 2 are exact integers. The similarity of a slot is
//
//	sum over k = 0..7 of 0.8^k * <C_k(query), C_(k+1)(slot)>
//
// and 0.8^k * 5^7 is the integer 4^k * 5^(7-k); codes are integers in units of 1/256.
// So with one = 5^7 * 256^2 standing for a similarity of 1 nothing is rounded, the order
// of summing is free, and equal matches are exactly equal.
const (
	one     = 78125 * codeUnit * codeUnit
	nat     = one / sharpness2 // a score difference of one nat
	sink2   = one * 6 / 10     // tau: evidence weaker than this counts for nothing
	prior   = one / 10         // delta: by how much the prompt beats knowledge at equal match
	cutoff2 = 25 * nat         // slots this far below the best are left out
)

// Weights of slots are integers too, in units of 2^-weightBits of the best one: sums do
// not depend on their order, nor on how workers share the pages, and 2^20 slots of any
// content fit in 63 bits. Error of a logit over n slots: at most n*2^-37 from rounding
// and n*e^-25 from slots left out, 3e-5 together at a million.
const weightBits = 36

// depthWeight is 0.8^k in units of 5^-7.
var depthWeight = [depth]int64{78125, 62500, 50000, 40000, 32000, 25600, 20480, 16384}

// query is what layer 2 looks for.
type query struct {
	back [depth]pattern
	rest [depth + 1]int64 // the most that depths k.. can add to a score
}

// pattern is the code to match at one depth.
type pattern struct {
	code  [codeDims]int8
	word  bool      // all entries are +-codeMax: a token's code word
	blank bool      // all entries are zero
	flip  [2]uint64 // for a word: ones in the bytes whose entry is negative
	bias  int64     // for a word: what signed adds too much
}

func newQuery(current *[codeDims]int8, back *codes8) *query {
	q := new(query)
	for k := range q.back {
		code := current
		if k > 0 {
			code = &back[k-1]
		}
		q.back[k] = newPattern(code)
	}
	for k := depth - 1; k >= 0; k-- {
		reach := int64(0)
		for _, v := range q.back[k].code {
			reach += int64(max(v, -v)) * codeMax
		}
		q.rest[k] = q.rest[k+1] + depthWeight[k]*reach
	}
	return q
}

func newPattern(code *[codeDims]int8) pattern {
	p := pattern{code: *code, word: true, blank: true, bias: 128 * codeDims}
	for i, v := range code {
		p.word = p.word && (v == codeMax || v == -codeMax)
		p.blank = p.blank && v == 0
		if v < 0 {
			p.flip[i/8] |= 0xff << (i % 8 * 8)
			p.bias--
		}
	}
	for i := range p.flip {
		p.flip[i] ^= 0x8080808080808080 // moves signed bytes to 0..255
	}
	return p
}

// dot is the inner product with a key row of 16 bytes, in units of 1/256^2.
func (p *pattern) dot(key []byte) int64 {
	switch {
	case p.word:
		return codeMax * p.signed(key)
	case p.blank:
		return 0
	}
	sum := int64(0)
	for i, v := range p.code {
		sum += int64(v) * int64(int8(key[i]))
	}
	return sum
}

// signed sums 16 signed bytes, those under a negative entry negated, eight at a time:
// inverting the bits of k gives -k-1, and bias takes the ones and the shift to unsigned
// bytes off again.
func (p *pattern) signed(key []byte) int64 {
	const even = 0x00ff00ff00ff00ff
	a := binary.LittleEndian.Uint64(key) ^ p.flip[0]
	b := binary.LittleEndian.Uint64(key[8:]) ^ p.flip[1]
	lanes := a&even + a>>8&even + b&even + b>>8&even
	return int64(lanes*0x0001000100010001>>48) - p.bias
}

// scan is a range of slots under one query: the slots that may matter, then their share
// of the output.
type scan struct {
	best int64
	hits []hit

	total int64
	sum   [outDims]int64
}

type hit struct {
	slot  int32
	score int64
}

// find collects the slots from..to-1 of a table whose score is within cutoff2 of the
// best so far. A slot is given up as soon as the depths still to come cannot lift it
// there: key entries are averages of code words, so none exceeds codeMax.
func (s *scan) find(q *query, c *Cache, t Table, from, to int, offset int64) {
	s.best, s.hits = sink2, s.hits[:0]
	first := &q.back[0]
	for start := from; start < to; {
		page, i := c.slot(t, start)
		n := min(c.pageSize-i, to-start)
		keys := c.keys2(page, 0)[i*codeDims:]
		for k := range n {
			score := offset + depthWeight[0]*first.dot(keys[k*codeDims:k*codeDims+codeDims])
			if score+q.rest[1] < s.best-cutoff2 {
				continue
			}
			score, alive := s.deepen(q, c, page, i+k, score)
			if alive {
				s.hits = append(s.hits, hit{slot: int32(start + k), score: score})
				s.best = max(s.best, score)
			}
		}
		start += n
	}
}

// deepen adds the depths from 1 on to a slot's score.
func (s *scan) deepen(q *query, c *Cache, page []byte, i int, score int64) (int64, bool) {
	for d := 1; d < depth; d++ {
		score += depthWeight[d] * q.back[d].dot(c.keys2(page, d)[i*codeDims:i*codeDims+codeDims])
		if score+q.rest[d+1] < s.best-cutoff2 {
			return 0, false
		}
	}
	return score, true
}

// gather adds up the values of the slots found, weighted by e^(score-best).
func (s *scan) gather(c *Cache, t Table, best int64) {
	s.total, s.sum = 0, [outDims]int64{}
	for _, h := range s.hits {
		w := weight(h.score, best)
		if w == 0 {
			continue
		}
		page, i := c.slot(t, int(h.slot))
		s.total += w
		for d, v := range c.val2(page, i) {
			s.sum[d] += w * int64(int8(v))
		}
	}
}

// weight is e^(score-best) in units of 2^-weightBits.
func weight(score, best int64) int64 {
	return int64(exp(float64(score-best)/nat)*(1<<weightBits) + 0.5)
}

// attend2 is layer 2 with its sink: OUT times sqrt(128), and the total is 1 or less.
func (m *Model) attend2(q *query, c *Cache, t Table, slots, workers int) (out [outDims]float64) {
	known := &m.knowledge
	parts := make([]scan, 1+workers)
	cut := func(w int) int { return slots * w / workers }
	parts[0].find(q, known.cache, known.table, 0, known.slots, -prior)
	parallel(workers, func(w int) { parts[1+w].find(q, c, t, cut(w), cut(w+1), 0) })

	best := int64(sink2)
	for i := range parts {
		best = max(best, parts[i].best)
	}
	parts[0].gather(known.cache, known.table, best)
	parallel(workers, func(w int) { parts[1+w].gather(c, t, best) })

	total := weight(sink2, best)
	var sum [outDims]int64
	for i := range parts {
		total += parts[i].total
		for d, v := range parts[i].sum {
			sum[d] += v
		}
	}
	for d, v := range sum {
		out[d] = float64(v) / float64(total)
	}
	return out
}

// parallel calls f(0) to f(n-1), at once, and waits.
func parallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := 1; i < n; i++ {
		wg.Go(func() { f(i) })
	}
	f(0)
	wg.Wait()
}
