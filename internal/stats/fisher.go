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

// Table counts events in two arms whose trials are alike in all but the arm.
type Table struct{ Hits, Trials, OtherHits, OtherTrials int }

// FisherStrata is Fisher's exact test over several tables, one-sided: the
// chance, if within each of them both arms have the same rate, that the first
// arms together hold as many events or more. Unlike the test on their sums it
// is not misled where the kinds of trial are unlike and the arms have unlike
// shares of them. The sum of independent hypergeometric counts is the exact
// null distribution (Cochran 1954, Mantel and Haenszel 1959).
func FisherStrata(tables []Table) float64 {
	hits, sums := 0, []float64{1} // chance of each number of events in the first arms
	for _, t := range tables {
		checkCounts(t.Hits, t.Trials)
		checkCounts(t.OtherHits, t.OtherTrials)
		hits += t.Hits
		events := t.Hits + t.OtherHits
		next := make([]float64, len(sums)+min(t.Trials, events))
		for k := max(0, events-t.OtherTrials); k <= min(t.Trials, events); k++ {
			p := math.Exp(logChoose(t.Trials, k) + logChoose(t.OtherTrials, events-k) - logChoose(t.Trials+t.OtherTrials, events))
			for sum, q := range sums {
				next[sum+k] += p * q
			}
		}
		sums = next
	}
	p := 0.0
	for _, q := range sums[hits:] {
		p += q
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
