package campaign

import (
	"github.com/kvcanary/kvcanary/internal/stats"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// calibration is what the lab has shown of a protocol: which of its exchanges
// are tests, and how likely such a test shows the fault when it is there.
type calibration struct {
	test        func(*wire.Exchange) bool
	sensitivity float64
}

// calibrations are measured by `kvcanary matrix`, see docs/power.md: the lower
// end of the 95 % interval over the faults that a protocol is made for,
// rounded down. A protocol that no fault of the lab calibrates yet has
// sensitivity 0: it may find much, but its silence bounds nothing. Protocols whose
// faults show only where two requests meet in time have no row on purpose: how
// often that happens is the target's doing, not the lab's to measure.
var calibrations = map[string]calibration{
	"boundary": {overLimit, 0.98},
	"straddle": {overLimit, 0.99},
	"smoke":    {judged, 0},
	"tenants":  {judged, 0},
}

const confidence = 0.95

// refusalsCount reports whether a protocol looks for limits: a prompt that is
// refused is then as good a test as one that is answered.
func refusalsCount(protocol string) bool { return protocol == "boundary" || protocol == "straddle" }

// overLimit is a prompt over a limit that ended soundly: refused for its
// length, or answered with its own nonce, so that its own pages were read. An
// answer that shows neither is no test, however innocent it looks.
func overLimit(e *wire.Exchange) bool {
	over := e.Purpose == wire.Over || e.Limit > 0 && e.SentTokens >= e.Limit
	return over && e.Answer.Served() && e.Echoes(e.Asked) || e.Answer.Refusal.TooLong()
}

// judged is any exchange whose answer could be looked at.
func judged(e *wire.Exchange) bool { return e.Answer.Served() }

// bound is what the exchanges of a protocol say about the rate of leaks when
// none was seen.
func bound(protocol string, exchanges []wire.Exchange) *Bound {
	c, ok := calibrations[protocol]
	if !ok {
		c = calibration{judged, 0}
	}
	b := &Bound{RateUpper: 1, Confidence: confidence, Sensitivity: c.sensitivity}
	for i := range exchanges {
		if c.test(&exchanges[i]) {
			b.N++
		}
	}
	if b.N > 0 && c.sensitivity > 0 {
		b.RateUpper = min(1, stats.UpperBound(0, b.N, confidence)/c.sensitivity)
	}
	return b
}
