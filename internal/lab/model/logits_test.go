package model

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestGolden holds the bytes of a cache and the bits of logits to what they were on the
// machine where they were first computed.
func TestGolden(t *testing.T) {
	const want = "630dce5d4ffcd0777c8d0c3e936f8eb08362905f5c3921963a86ad08a4e9f637"
	s := newSession(New(), rand.New(rand.NewPCG(11, 11)), 16, 3000)
	s.write(newRecall(rand.New(rand.NewPCG(12, 12)), 2000).prompt)
	h := sha256.New()
	h.Write(s.c.mem)
	for range 20 {
		l := s.logits(1)
		for _, x := range l {
			h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
		}
		s.write([]byte{l.Greedy()})
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("hash of cache and logits %s, want %s", got, want)
	}
}

func TestGreedyTakesTheLowestOfTies(t *testing.T) {
	var l Logits
	l['x'], l['c'], l['q'] = 0.5, 0.50001, 0.50002
	if got := l.Greedy(); got != 'c' {
		t.Errorf("got %q", got)
	}
	l['q'] = 0.502
	if got := l.Greedy(); got != 'q' {
		t.Errorf("got %q", got)
	}
}

func TestSampleFollowsTheEvidence(t *testing.T) {
	var l Logits
	l['a'], l['b'], l['c'], l['d'] = 0.61, 0.21, 0.11, 0.005
	share := func(temperature float64) map[byte]float64 {
		const draws = 10000
		counts := map[byte]float64{}
		for i := range draws {
			counts[l.Sample(temperature, (float64(i)+0.5)/draws)] += 1.0 / draws
		}
		return counts
	}
	for temperature, want := range map[float64][3]float64{
		1:   {0.6 / 0.9, 0.2 / 0.9, 0.1 / 0.9},
		0.5: {0.36 / 0.41, 0.04 / 0.41, 0.01 / 0.41},
		0:   {1, 0, 0},
	} {
		got := share(temperature)
		for i, w := range want {
			if math.Abs(got["abc"[i]]-w) > 1e-3 {
				t.Errorf("temperature %v: %q in %v of draws, want %v", temperature, "abc"[i], got["abc"[i]], w)
			}
		}
		if got['d'] > 0 {
			t.Errorf("temperature %v: a token with hardly any evidence was drawn", temperature)
		}
	}
}

func TestSampleEndsWithoutEvidence(t *testing.T) {
	var l Logits
	l[EndOfTurn] = noEvidence
	rapid.Check(t, func(t *rapid.T) {
		temperature := rapid.Float64Range(0, 2).Draw(t, "temperature")
		uniform := rapid.Float64Range(0, 0.999).Draw(t, "uniform")
		if got := l.Sample(temperature, uniform); got != EndOfTurn {
			t.Fatalf("got %q", got)
		}
	})
}

// TestPageGarbageIsHarmless: a page may hold any bytes, those of no number among them.
func TestPageGarbageIsHarmless(t *testing.T) {
	m := New()
	rapid.Check(t, func(t *rapid.T) {
		const pageSize = 8
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 8))
		mem := make([]byte, CacheBytes(4, pageSize))
		for i := range mem {
			mem[i] = byte(rng.Uint32())
		}
		for i := 0; i < len(mem); i += 64 {
			binary.LittleEndian.PutUint32(mem[i:], math.Float32bits(float32(math.Inf(1-rng.IntN(2)*2))))
		}
		c, err := NewCacheOn(mem, 4, pageSize)
		if err != nil {
			t.Fatal(err)
		}
		table := Table{2, 0, 3, 1}
		pos := rng.IntN(4 * pageSize)
		m.Write(c, table, pos, []byte("q"))
		l := m.Logits(c, table, pos, 'q', 1)
		if again := m.Logits(c, table, pos, 'q', 1); again != l {
			t.Fatal("the same pages give other logits")
		}
		for v, x := range l {
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				t.Fatalf("logit %d is %v", v, x)
			}
		}
	})
}
