package node

import (
	"math/rand/v2"

	"github.com/kvcanary/kvcanary/internal/lab/model"
)

// Choose picks answer token number index (from 0) from its logits. It depends
// on nothing but the request's own seed, so the same request gets the same
// answer whatever else is served beside it.
func (s Sampling) Choose(l *model.Logits, index int) byte {
	if s.Temperature <= 0 {
		return l.Greedy()
	}
	uniform := rand.New(rand.NewPCG(s.Seed, uint64(index))).Float64()
	return l.Sample(s.Temperature, uniform)
}
