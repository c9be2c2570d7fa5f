package model

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

	floor := q.scout(parts) - cutoff2
	best := parallel(parts, func(p *part) int64 { return p.find(floor) })
	parallel(parts, func(p *part) int64 { return p.gather(best) })

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

// weight is e^(score-best) in units of 2^-weightBits.
func weight(score, best int64) int64 {
	return int64(float64(exp(float64(score-best)/nat)*(1<<weightBits)) + 0.5)
}
