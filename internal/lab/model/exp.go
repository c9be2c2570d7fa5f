package model

import "math"

// exp is e^x for x at most 0, to 1e-12 relative, in operations that IEEE 754 fixes to
// the bit. It is 0 below -700.
//
//go:norace
func exp(x float64) float64 {
	const (
		log2e = 1.4426950408889634
		ln2Hi = 6.93147180369123816490e-01 // its last 32 bits are zero: k*ln2Hi is exact
		ln2Lo = 1.90821492927058770002e-10
	)
	if x == 0 {
		return 1
	}
	if !(x > -700) {
		return 0
	}
	k := int64(float64(x*log2e) - 0.5) // rounds, as x < 0
	r := x - float64(float64(k)*ln2Hi) - float64(float64(k)*ln2Lo)
	// The Taylor series to degree 11 for |r| <= 0.35, even and odd terms apart: the two
	// chains run at once.
	r2 := float64(r * r)
	even := 1 + float64(r2*(1./2+float64(r2*(1./24+float64(r2*(1./720+float64(r2*(1./40320+float64(r2*(1./3628800))))))))))
	odd := 1 + float64(r2*(1./6+float64(r2*(1./120+float64(r2*(1./5040+float64(r2*(1./362880+float64(r2*(1./39916800))))))))))
	return (even + float64(r*odd)) * math.Float64frombits(uint64(k+1023)<<52)
}
