package campaign

import "github.com/kvcanary/kvcanary/internal/stats"

// sensitivity is the chance that a protocol sees a leak in an exchange that
// leaks, measured on the lab as docs/power.md describes: the lower end of the
// measured interval over the faults that the protocol is made for. A clean
// verdict divides its bound by it.
var sensitivity = map[string]float64{
	"smoke":    0.05,
	"boundary": 0.05,
	"straddle": 0.95,
	"tenants":  0.05,
}

// unmeasured is the sensitivity of a protocol that no calibration covers.
const unmeasured = 0.05

const confidence = 0.95

// bound is what n judged exchanges without a leak say about the rate of leaks.
func bound(protocol string, n int) *Bound {
	s, ok := sensitivity[protocol]
	if !ok {
		s = unmeasured
	}
	return &Bound{
		RateUpper:   min(1, stats.UpperBound(0, n, confidence)/s),
		Confidence:  confidence,
		N:           n,
		Sensitivity: s,
	}
}
