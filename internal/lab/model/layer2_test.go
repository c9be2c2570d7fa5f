package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// drawCode makes what attention can make: code words, averages of two, nothing.
func drawCode(t *rapid.T, codes *[256]code, name string) (c code) {
	switch rapid.IntRange(0, 3).Draw(t, name) {
	case 0:
		return c
	case 1:
		a, b := codes[rapid.Byte().Draw(t, name)], codes[rapid.Byte().Draw(t, name)]
		for i := range c {
			c[i] = byte((int8(a[i]) + int8(b[i])) / 2)
		}
		return c
	}
	return codes[rapid.ByteRange('a', 'd').Draw(t, name)]
}

// TestAttendPrunesNothingThatCounts compares layer 2 with all scores in full.
func TestAttendPrunesNothingThatCounts(t *testing.T) {
	const pageSize = 4
	m := New()
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 40).Draw(t, "slots")
		c := NewCache((slots+pageSize-1)/pageSize, pageSize)
		table := make(Table, c.Pages())
		for i := range table {
			table[i] = int32(len(table) - 1 - i)
		}
		var back codes8
		for k := range back {
			back[k] = drawCode(t, &m.codes, "query")
		}
		current := m.codes[rapid.ByteRange('a', 'd').Draw(t, "token")]
		q := newQuery(&current, &back)
		for s := range slots {
			page, i := c.slot(table, s)
			copyQuery := rapid.IntRange(0, 3).Draw(t, "like the query") == 0
			for k := range depth {
				row := drawCode(t, &m.codes, "key")
				if copyQuery && k < rapid.IntRange(0, depth).Draw(t, "until") {
					row = q.back[k].code
				}
				*(*code)(c.keys2(page)[k*c.depthBytes()+i*codeDims:]) = row
			}
			*c.val2(page, i) = m.outputs[rapid.Byte().Draw(t, "value")]
		}
		workers := rapid.IntRange(1, 5).Draw(t, "workers")
		got, want := m.attend2(q, c, table, slots, workers), m.attendInFull(q, c, table, slots)
		for d := range got {
			if math.Abs(got[d]-want[d]) > 1e-8 {
				t.Fatalf("OUT[%d] = %v, want %v", d, got[d], want[d])
			}
		}
	})
}

// attendInFull is attend2 without pruning or integers for weights.
func (m *Model) attendInFull(q *query, c *Cache, t Table, slots int) (out [outDims]float64) {
	total := math.Exp(float64(sink2) / nat)
	see := func(c *Cache, t Table, slots int, offset float64) {
		for s := range slots {
			page, i := c.slot(t, s)
			score := offset
			for k := range depth {
				row := code(c.keys2(page)[k*c.depthBytes()+i*codeDims:])
				score += math.Pow(0.8, float64(k)) * float64(codeProduct(q.back[k].code, row)) / (codeUnit * codeUnit)
			}
			w := math.Exp(sharpness2 * score)
			total += w
			for d, b := range c.val2(page, i) {
				out[d] += w * float64(int8(b))
			}
		}
	}
	see(c, t, slots, 0)
	see(m.knowledge.cache, m.knowledge.table, m.knowledge.slots, -0.1)
	for d := range out {
		out[d] /= total
	}
	return out
}

// TestSameForAnyWorkers: bit for bit, on sound pages and on garbage.
func TestSameForAnyWorkers(t *testing.T) {
	m := New()
	rng := rand.New(rand.NewPCG(5, 5))
	text := prose(rng, 3*parallelSlots)
	for i := range 40 {
		copy(text[rng.IntN(len(text)-20):], text[i*50:i*50+20]) // ties and near ties
	}
	sound := newSession(m, rng, 16, len(text))
	sound.write(text)
	garbage := newSession(m, rng, 16, len(text))
	for i := range garbage.c.mem {
		garbage.c.mem[i] = byte(rng.Uint32())
	}
	garbage.write(text[:100])
	garbage.text = text
	for name, s := range map[string]*session{"sound": sound, "garbage": garbage} {
		for range 6 {
			s.text = text[:len(text)-rng.IntN(parallelSlots)]
			want := s.logits(1)
			for _, workers := range []int{2, 3, 7, 64} {
				if got := s.logits(workers); got != want {
					t.Errorf("%s: %d workers give other logits than one", name, workers)
				}
			}
		}
	}
}

func TestSameForAnyPageSize(t *testing.T) {
	m := New()
	rapid.Check(t, func(t *rapid.T) {
		text := drawPrompt(t, 300)
		var want Logits
		for i, pageSize := range []int{1, 16, 64, 256} {
			s := newSession(m, rand.New(rand.NewPCG(uint64(i), 4)), pageSize, len(text))
			s.write(text)
			got := s.logits(1)
			if i == 0 {
				want = got
			}
			if got != want {
				t.Fatalf("pages of %d tokens give other logits than pages of 1", pageSize)
			}
		}
	})
}

// TestSameForAnyPieces: writing a prompt at once or in pieces fills the same bytes.
func TestSameForAnyPieces(t *testing.T) {
	m := New()
	rapid.Check(t, func(t *rapid.T) {
		text := drawPrompt(t, 200)
		whole := newSession(m, rand.New(rand.NewPCG(1, 4)), 16, len(text))
		whole.write(text)
		pieces := newSession(m, rand.New(rand.NewPCG(1, 4)), 16, len(text))
		for len(pieces.text) < len(text) {
			at := len(pieces.text)
			pieces.write(text[at : at+rapid.IntRange(0, len(text)-at).Draw(t, "piece")])
		}
		if string(whole.c.mem) != string(pieces.c.mem) {
			t.Fatal("the caches differ")
		}
	})
}
