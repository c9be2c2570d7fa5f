package model

import "math"

// exp is e^x for x at most 0, to 1e-14 relative, in operations that IEEE 754 fixes to
// the bit. It is 0 below -700.
func exp(x float64) float64 {
	const (
		log2e = 1.4426950408889634
		ln2Hi = 6.93147180369123816490e-01 // its last 32 bits are zero: k*ln2Hi is exact
		ln2Lo = 1.90821492927058770002e-10
	)
	if !(x > -700) {
		return 0
	}
	k := math.Floor(float64(x*log2e) + 0.5)
	r := x - float64(k*ln2Hi) - float64(k*ln2Lo)
	sum := 1.0 // Horner form of the Taylor series, |r| <= 0.35
	for n := 12; n >= 1; n-- {
		sum = 1 + float64(float64(sum*r)*inverse[n])
	}
	return sum * math.Float64frombits(uint64(int64(k)+1023)<<52)
}

// inverse is 1/n.
var inverse = [13]float64{0, 1, 1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 5, 1.0 / 6, 1.0 / 7, 1.0 / 8, 1.0 / 9, 1.0 / 10, 1.0 / 11, 1.0 / 12}
