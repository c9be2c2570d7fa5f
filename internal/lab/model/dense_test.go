package model

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// dense is the model as a textbook has it: full matrices over a residual of 401 numbers,
// float64, package math, a flat list of slots in place of pages, nothing skipped.
type dense struct {
	embed   [256][]float64
	head    [depth]struct{ q, o [][]float64 } // W_Q and W_O of layer 1
	k1, v1  [][]float64                       // shared by the heads of layer 1
	q2, k2  [][]float64
	v2, o2  [][]float64
	unembed [][]float64
	sinks   bool
	known   []denseSlot
}

// denseSlot is what both layers keep of a token.
type denseSlot struct {
	key1, value1, key2, value2 []float64
	bias                       float64 // of its layer-2 score
}

// Where the parts of the residual begin.
const (
	resT     = 0                              // the token's output code
	resC     = resT + outDims                 // C0 to C8
	resOne   = resC + codeDims*(depth+1)      // a constant 1
	resOut   = resOne + 1                     // OUT
	residual = resOut + outDims               // its length
	quarter  = 1.0 / 4                        // an entry of a matching code
	outEntry = 0.08838834764831845            // 1/sqrt(128)
	b1, b2   = 60.0, 32.0                     // scales of scores
	denseTau = 0.6                            // sink of layer 2
	denseRho = 0.8                            // weight of a token further back
	denseOff = -0.1 * b2                      // of a persistent slot
	sinkOne  = b1 * (16 - (16-15.31370849)/2) // between a hit and the best miss
)

var _ [401]int = [residual]int{}

// twins are a model with a few documents and its dense twin, which takes a second to read them.
var twins = sync.OnceValues(func() (*Model, *dense) {
	few := []document{documents[0], documents[2], documents[6]}
	m := newWith(few)
	return m, newDense(m, few, true)
})

func newDense(m *Model, docs []document, sinks bool) *dense {
	d := &dense{sinks: sinks, k1: matrix(2 * pairs), v1: matrix(codeDims), q2: matrix(depth * codeDims),
		k2: matrix(depth * codeDims), v2: matrix(outDims), o2: matrix(residual, outDims), unembed: matrix(256)}
	for v := range d.embed {
		x := make([]float64, residual)
		for i, b := range m.outputs[v] {
			x[resT+i] = float64(int8(b)) * outEntry
		}
		for i, b := range m.codes[v] {
			x[resC+i] = math.Copysign(quarter, float64(int8(b)))
		}
		x[resOne] = 1
		d.embed[v] = x
		copy(d.unembed[v][resOut:], x[resT:resT+outDims])
	}
	for i := range pairs {
		d.k1[2*i][resOne] = 1 // u
	}
	for i := range codeDims {
		d.v1[i][resC+i] = 1
	}
	for h := range d.head {
		d.head[h].q, d.head[h].o = matrix(2*pairs), matrix(residual, codeDims)
		for i := range pairs {
			sin, cos := math.Sincos(-float64(h+1) * math.Pow(1e4, -float64(i)/pairs))
			d.head[h].q[2*i][resOne], d.head[h].q[2*i+1][resOne] = b1*cos, b1*sin
		}
		for i := range codeDims {
			d.head[h].o[resC+(h+1)*codeDims+i][i] = 1
		}
	}
	for k := range depth {
		for i := range codeDims {
			d.q2[k*codeDims+i][resC+k*codeDims+i] = b2 * math.Pow(denseRho, float64(k))
			d.k2[k*codeDims+i][resC+(k+1)*codeDims+i] = 1
		}
	}
	for i := range outDims {
		d.v2[i][resT+i] = 1
		d.o2[resOut+i][i] = 1
	}
	for _, doc := range docs {
		text := AppendTurn(AppendTurn([]byte{DocStart}, RoleUser, doc.question), RoleAssistant, doc.answer)
		slots, _ := d.read(nil, text)
		for i := range slots {
			slots[i].bias = denseOff
		}
		d.known = append(d.known, slots...)
	}
	return d
}

// matrix has rows of the given width, by default the residual's.
func matrix(rows int, width ...int) [][]float64 {
	w := residual
	if len(width) > 0 {
		w = width[0]
	}
	m := make([][]float64, rows)
	for i := range m {
		m[i] = make([]float64, w)
	}
	return m
}

func apply(m [][]float64, x []float64) []float64 {
	y := make([]float64, len(m))
	for i, row := range m {
		y[i] = inner(row, x)
	}
	return y
}

func inner(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func rotated(x []float64, p int) []float64 {
	y := make([]float64, len(x))
	for i := range len(x) / 2 {
		sin, cos := math.Sincos(float64(p) * math.Pow(1e4, -float64(i)/pairs))
		y[2*i], y[2*i+1] = x[2*i]*cos-x[2*i+1]*sin, x[2*i]*sin+x[2*i+1]*cos
	}
	return y
}

// attention is softmax over scores and a sink of value zero.
func (d *dense) attention(scores []float64, values [][]float64, sink float64) []float64 {
	top := math.Inf(-1)
	if d.sinks {
		top = sink
	}
	for _, s := range scores {
		top = max(top, s)
	}
	total := 0.0
	if d.sinks {
		total = math.Exp(sink - top)
	}
	out := make([]float64, len(values[0]))
	for j, s := range scores {
		w := math.Exp(s - top)
		total += w
		for i, v := range values[j] {
			out[i] += w * v
		}
	}
	for i := range out {
		out[i] /= total
	}
	return out
}

// read appends the slots of tokens to a sequence, and gives the residual of the last
// after layer 1.
func (d *dense) read(slots []denseSlot, tokens []byte) ([]denseSlot, []float64) {
	var x []float64
	for _, token := range tokens {
		t := len(slots)
		x = append([]float64(nil), d.embed[token]...)
		slots = append(slots, denseSlot{key1: rotated(apply(d.k1, x), t), value1: apply(d.v1, x)})
		d.layer1(slots, x)
		slots[t].key2, slots[t].value2 = apply(d.k2, x), apply(d.v2, x)
	}
	return slots, x
}

// layer1 adds what the heads read at the last slot to its residual.
func (d *dense) layer1(slots []denseSlot, x []float64) {
	t := len(slots) - 1
	window := slots[max(0, t+1-windowSize):]
	in := append([]float64(nil), x...)
	for _, head := range d.head {
		q := rotated(apply(head.q, in), t)
		var scores []float64
		var values [][]float64
		for _, s := range window {
			scores = append(scores, inner(q, s.key1))
			values = append(values, s.value1)
		}
		for i, v := range apply(head.o, d.attention(scores, values, sinkOne)) {
			x[i] += v
		}
	}
}

// logits is layer 2 and the unembedding for the last slot.
func (d *dense) logits(slots []denseSlot, x []float64, token byte) (l [256]float64) {
	q := apply(d.q2, x)
	var scores []float64
	var values [][]float64
	for _, s := range append(append([]denseSlot(nil), d.known...), slots...) {
		scores = append(scores, inner(q, s.key2)+s.bias)
		values = append(values, s.value2)
	}
	x = append([]float64(nil), x...)
	for i, v := range apply(d.o2, d.attention(scores, values, b2*denseTau)) {
		x[i] += v
	}
	copy(l[:], apply(d.unembed, x))
	l[EndOfTurn] += noEvidence + endOfLine*inner(d.embed['\n'][resT:resT+outDims], x[resT:resT+outDims])
	return l
}

// drawPrompt makes prompts with much repetition, as the model lives on it.
func drawPrompt(t *rapid.T, longest int) []byte {
	var text []byte
	length := rapid.IntRange(1, longest).Draw(t, "length")
	for len(text) < length {
		switch rapid.IntRange(0, 5).Draw(t, "piece") {
		case 0:
			text = append(text, rapid.SliceOfN(rapid.Byte(), 1, 12).Draw(t, "bytes")...)
		case 1:
			text = append(text, rapid.StringMatching(`[ab ]{1,12}`).Draw(t, "few")...)
		case 2:
			d := documents[rapid.IntRange(0, len(documents)-1).Draw(t, "document")]
			text = AppendTurn(append(text, User), RoleAssistant, d.question)
		case 3:
			text = append(text, words[rapid.IntRange(0, len(words)-1).Draw(t, "word")]...)
		default:
			if len(text) > 0 {
				from := rapid.IntRange(0, len(text)-1).Draw(t, "from")
				text = append(text, text[from:min(len(text), from+20)]...)
			}
		}
	}
	return text[:length]
}

func TestAgreesWithDenseTwin(t *testing.T) {
	m, d := twins()
	rapid.Check(t, func(t *rapid.T) {
		text := drawPrompt(t, 32)
		pageSize := rapid.SampledFrom([]int{1, 3, 16, 64}).Draw(t, "page size")
		s := newSession(m, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), pageSize, len(text)+pageSize)
		cut := rapid.IntRange(0, len(text)-1).Draw(t, "cut")
		s.write(text[:cut])
		s.write(text[cut:])
		slots, x := d.read(nil, text)
		compare(t, s.logits(1), d.logits(slots, x, text[len(text)-1]))
	})
}

// TestAgreesWithDenseTwinOnStalePages gives a new sequence pages of an old one, at any
// place in its table, and lets it write only some tokens at its end.
func TestAgreesWithDenseTwinOnStalePages(t *testing.T) {
	const pageSize = 8
	m, d := twins()
	rapid.Check(t, func(t *rapid.T) {
		old := drawPrompt(t, 24)
		for len(old)%pageSize != 0 {
			old = append(old, 'x')
		}
		s := newSession(m, rand.New(rand.NewPCG(1, 0)), pageSize, len(old)+pageSize)
		s.write(old)
		oldSlots, _ := d.read(nil, old)

		var table Table
		var slots []denseSlot
		for range rapid.IntRange(1, 4).Draw(t, "stale pages") {
			p := rapid.IntRange(0, len(old)/pageSize-1).Draw(t, "page")
			table = append(table, s.table[p])
			slots = append(slots, oldSlots[p*pageSize:(p+1)*pageSize]...)
		}
		table = append(table, s.table[len(old)/pageSize])
		fresh := rapid.SliceOfN(rapid.SampledFrom(old), 1, pageSize).Draw(t, "fresh")
		m.Write(s.c, table, len(slots), fresh)
		slots, x := d.read(slots, fresh)
		last := fresh[len(fresh)-1]
		compare(t, m.Logits(s.c, table, len(slots)-1, last, 1), d.logits(slots, x, last))
	})
}

func compare(t *rapid.T, got Logits, want [256]float64) {
	for v := range got {
		if math.Abs(float64(got[v])-want[v]) > 2e-3 {
			t.Fatalf("logit of %q: %v, dense twin %v", rune(v), got[v], want[v])
		}
	}
}

// TestSinksAreNeeded: without them, a token that nothing follows anywhere returns the
// average of everything in the table, and positions that no slot holds those of neighbours.
func TestSinksAreNeeded(t *testing.T) {
	m := New()
	text := []byte("some words that were left by somebody else")
	for _, sinks := range []bool{true, false} {
		d := newDense(m, nil, sinks)
		slots, _ := d.read(nil, text)
		l := d.logits(slots, d.embed['Q'], 'Q') // with no token known before it
		mass := 0.0
		for _, v := range l {
			mass += max(v, 0)
		}
		if noise := mass > 0.5; noise == sinks {
			t.Errorf("sinks %v: mass without evidence %.3f", sinks, mass)
		}
		first, _ := d.read(nil, text[:1])
		if noise := inner(first[0].key2, first[0].key2) > 0.01; noise == sinks {
			t.Errorf("sinks %v: a first token sees tokens before it: %v", sinks, noise)
		}
	}
}
