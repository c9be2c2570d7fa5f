package model

import "math"

// Logits are the attention masses of the 256 next tokens: how much of the evidence says
// that token, in [0, 1] (less 1 for bytes above 127 as their codes are negatives).
type Logits [256]float32

// Biases of EndOfTurn: less evidence than noEvidence for any token ends the answer, and so
// does a line feed.
const (
	noEvidence = 0.01
	endOfLine  = 2
)

// parallelSlots is the context, slots, below which a second worker costs more than it saves.
const parallelSlots = 4096

// Logits runs the last layer's attention for the token at position pos, which must have
// been written, over slots 0..pos of the table. workers splits the slots; the result does
// not depend on it.
func (m *Model) Logits(c *Cache, t Table, pos int, token byte, workers int) Logits {
	return m.logits(new(State), c, t, pos, token, workers)
}

func (m *Model) logits(state *State, c *Cache, t Table, pos int, token byte, workers int) Logits {
	c.checkTable(t, pos)
	if workers < 1 || pos < parallelSlots {
		workers = 1
	}
	w := m.newWindow(c, t, pos)
	page, i := c.slot(t, pos)
	j := pos & (windowSize - 1)
	getVector(c.key1(page, i), &w.keys[j])
	w.values[j] = *c.val1(page, i)
	var back codes8
	w.step(pos, &back)
	state.recall(&back)

	out := m.attend2(newQuery(&m.codes[token], &back), c, t, pos+1, workers)
	return m.unembed(&out, token)
}

// unembed multiplies OUT by the output codes. OUT and the codes come in units of
// 1/sqrt(128), so their product is exact.
//
//go:norace
func (m *Model) unembed(out *[outDims]float64, token byte) (l Logits) {
	transform(out)
	var rows Logits
	for v := range outDims {
		rows[v] = float32(out[v] / outDims)
		rows[v+outDims] = -rows[v]
	}
	for v, row := range m.turned {
		l[v] = rows[row]
	}
	line := 0
	for d, v := range m.outputs['\n'] {
		line += int(int8(v)) * int(int8(m.outputs[token][d]))
	}
	l[EndOfTurn] += noEvidence + endOfLine*float32(line/outDims)
	return l
}

// tick is the step that logits are compared in: closer ones are ties.
const tick = 1000

// Greedy is the token with the highest logit, the lowest token of those that tie.
func (l *Logits) Greedy() byte {
	best := 0
	for v := range l {
		if round(l[v]) > round(l[best]) {
			best = v
		}
	}
	return byte(best)
}

func round(x float32) int {
	return int(math.Floor(float64(float64(x)*tick) + 0.5))
}

// Sample draws a token: at temperature 1 in proportion to the evidence above noEvidence,
// at others in proportion to its power 1/temperature, at 0 the greedy one. A plain softmax
// of 256 small masses would be nearly uniform. uniform is the random number, in [0, 1).
func (l *Logits) Sample(temperature float64, uniform float64) byte {
	const coldest = 0.01
	if !(temperature >= coldest) {
		return l.Greedy()
	}
	top := l[l.Greedy()] - noEvidence
	if top <= 0 {
		return EndOfTurn
	}
	var shares [256]int64
	total := int64(0)
	for v := range l {
		shares[v] = share(float64(l[v]-noEvidence)/float64(top), temperature)
		total += shares[v]
	}
	target := int64(uniform * float64(total))
	for v, s := range shares {
		if target < s {
			return byte(v)
		}
		target -= s
	}
	return EndOfTurn
}

// share is x^(1/temperature) in units of 2^-32, coarse enough to hide the last bits in which
// machines differ.
func share(x, temperature float64) int64 {
	if x <= 0 {
		return 0
	}
	if temperature != 1 {
		x = math.Pow(x, 1/temperature)
	}
	return int64(float64(x*(1<<32)) + 0.5)
}
