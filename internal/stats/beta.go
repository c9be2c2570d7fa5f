package stats

import "math"

// betaCDF is the regularised incomplete beta function I_x(a, b), a and b
// positive. It is the chance that a Beta(a, b) variable is at most x, and for
// whole numbers a binomial tail: I_p(k, n-k+1) = P(X >= k), X ~ Bin(n, p).
func betaCDF(x, a, b float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2):
		// The continued fraction converges fast only left of the mean.
		return 1 - betaCDF(1-x, b, a)
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab - la - lb + a*math.Log(x) + b*math.Log1p(-x))
	return min(1, front*betaFraction(x, a, b)/a)
}

// betaFraction evaluates the continued fraction of I_x(a, b) (DLMF 8.17.22)
// by Lentz's method in the form of Thompson and Barnett.
func betaFraction(x, a, b float64) float64 {
	const (
		tiny = 1e-300
		eps  = 1e-16
	)
	lift := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/lift(1-(a+b)*x/(a+1))
	h := d
	// About sqrt(max(a, b)) steps are needed; the bound only ends a loop that
	// rounding keeps from settling.
	steps := 1000 + int(20*math.Sqrt(math.Max(a, b)))
	for i := 1; i <= steps; i++ {
		m := float64(i)
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d = 1 / lift(1+even*d)
		c = lift(1 + even/c)
		h *= d * c
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d = 1 / lift(1+odd*d)
		c = lift(1 + odd/c)
		step := d * c
		h *= step
		if math.Abs(step-1) < eps {
			break
		}
	}
	return h
}

// betaQuantile is the x with betaCDF(x, a, b) = q. Bisection over the floats:
// slower than Newton, but it cannot diverge.
func betaQuantile(q, a, b float64) float64 {
	lo, hi := 0.0, 1.0
	for {
		mid := lo + (hi-lo)/2
		if mid <= lo || mid >= hi {
			return mid
		}
		if betaCDF(mid, a, b) < q {
			lo = mid
		} else {
			hi = mid
		}
	}
}
