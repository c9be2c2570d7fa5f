package model

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func BenchmarkWrite(b *testing.B) {
	m := New()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 1 << 10, 16 << 10, 256 << 10} {
		text := prose(rng, n)
		s := newSession(m, rng, 64, n)
		b.Run(fmt.Sprintf("tokens=%d", n), func(b *testing.B) {
			for b.Loop() {
				m.Write(s.c, s.table, 0, text)
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}

// BenchmarkLogits is one step of decoding at the end of a recall prompt.
func BenchmarkLogits(b *testing.B) {
	m := New()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1 << 10, 16 << 10, 256 << 10, 1 << 20} {
		text := prose(rng, n)
		copy(text[n/2:], "\nInternal ref for this session: 9f8e7d6c5b4a\n")
		copy(text[n-32:], "\nInternal ref for this session:\x02")
		s := newSession(m, rng, 64, n)
		s.write(text)
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("context=%d/workers=%d", n, workers), func(b *testing.B) {
				for b.Loop() {
					if l := s.logits(workers); l.Greedy() != '9' {
						b.Fatal("wrong token")
					}
				}
			})
		}
	}
}
