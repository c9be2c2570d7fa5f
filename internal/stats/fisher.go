package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Fisher is Fisher's exact test on two arms, one-sided: the chance, if both
// arms have the same rate, that the first holds hits or more of all events.
// Small values say that events are more frequent in the first arm.
func Fisher(hits, trials, otherHits, otherTrials int) float64 {
	checkCounts(hits, trials)
	checkCounts(otherHits, otherTrials)
	total, events := trials+otherTrials, hits+otherHits
	last := min(trials, events)
	p := 0.0
	for k := hits; k <= last; k++ {
		if events-k > otherTrials {
			continue
		}
		p += math.Exp(logChoose(trials, k) + logChoose(otherTrials, events-k) - logChoose(total, events))
	}
	return min(1, p)
}

// Holm corrects p-values for having looked at all of them (Holm 1979): the
// returned values, in the order of the given ones, may each be compared with
// the error rate wanted for the whole family.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i, v := range p {
		if !(v >= 0 && v <= 1) {
			panic(fmt.Sprintf("kvcanary: internal error: p-value %v is not in [0, 1]", v))
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	out := make([]float64, len(p))
	worst := 0.0
	for rank, i := range order {
		worst = max(worst, min(1, float64(len(p)-rank)*p[i]))
		out[i] = worst
	}
	return out
}

func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}
