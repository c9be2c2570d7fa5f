package stats

import (
	"fmt"
	"math"
)

// UpperBound is the one-sided Clopper-Pearson upper bound of a rate: the
// largest rate at which k or fewer events in n trials still have a chance of
// 1-confidence. With k = 0 it is 1-(1-confidence)^(1/n). No trials bound
// nothing: n = 0 gives 1.
func UpperBound(k, n int, confidence float64) float64 {
	checkCounts(k, n)
	alpha := 1 - checkConfidence(confidence)
	switch {
	case k == n:
		return 1
	case k == 0:
		return -math.Expm1(math.Log(alpha) / float64(n))
	}
	return betaQuantile(1-alpha, float64(k+1), float64(n-k))
}

// LowerBound is the one-sided Clopper-Pearson lower bound of a rate: the
// smallest rate at which k or more events in n trials still have a chance of
// 1-confidence.
func LowerBound(k, n int, confidence float64) float64 {
	checkCounts(k, n)
	alpha := 1 - checkConfidence(confidence)
	switch {
	case k == 0:
		return 0
	case k == n:
		return math.Exp(math.Log(alpha) / float64(n))
	}
	return betaQuantile(alpha, float64(k), float64(n-k+1))
}

// Interval is the two-sided Clopper-Pearson interval of a rate: each side
// leaves out half of 1-confidence.
func Interval(k, n int, confidence float64) (lower, upper float64) {
	side := 1 - (1-checkConfidence(confidence))/2
	return LowerBound(k, n, side), UpperBound(k, n, side)
}

// BinomialTail is the chance of k or more events in n trials at rate p: the
// one-sided p-value of seeing k when p is the rate by chance.
func BinomialTail(k, n int, p float64) float64 {
	checkCounts(k, n)
	if !(p >= 0 && p <= 1) {
		panic(fmt.Sprintf("kvcanary: internal error: rate %v is not in [0, 1]", p))
	}
	switch {
	case k == 0:
		return 1
	case p == 0:
		return 0
	}
	return betaCDF(p, float64(k), float64(n-k+1))
}

func checkCounts(k, n int) {
	if k < 0 || n < k {
		panic(fmt.Sprintf("kvcanary: internal error: %d events in %d trials", k, n))
	}
}

func checkConfidence(c float64) float64 {
	if !(c > 0 && c < 1) {
		panic(fmt.Sprintf("kvcanary: internal error: confidence %v is not in (0, 1)", c))
	}
	return c
}
