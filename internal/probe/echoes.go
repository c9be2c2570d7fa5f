package probe

import (
	"github.com/kvcanary/kvcanary/internal/stats"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// echoes counts, on both arms of a comparison, which answers lack the value that
// their prompt asks for, to say whether more of them are worth their tokens.
//
// What is found rests on one test of all of them in the end, of the places that
// were asked for apart. Where a plan ends because its p-value is above perhaps,
// that test finds nothing; where it ends because the value is below surely, each
// look adds no more than that to the chance of a false alarm. So the rate of
// false alarms that was asked for holds however many looks there are, and only
// what is likely something costs more.
type echoes struct{ load, null [thirds]arm }

type arm struct{ n, lost int }

// count takes an exchange of either arm, if its answer says anything.
func (c *echoes) count(e *wire.Exchange) {
	side := &c.load
	switch e.Arm {
	case wire.ArmLoad:
	case wire.ArmNull:
		side = &c.null
	default:
		return
	}
	switch {
	case !e.Answer.Served() || e.Left || e.Asked < 0:
	case e.Echoes(e.Asked):
		side[e.Asked].n++
	case e.EchoLost():
		side[e.Asked].n++
		side[e.Asked].lost++
	}
}

// p is the chance of a difference as large if there is none.
func (c *echoes) p() float64 {
	var tables []stats.Table
	for place, l := range c.load {
		n := c.null[place]
		tables = append(tables, stats.Table{Hits: l.lost, Trials: l.n, OtherHits: n.lost, OtherTrials: n.n})
	}
	return stats.FisherStrata(tables)
}

// doubtful reports whether values are lost under load more often than without,
// and not often enough to be sure.
func (c *echoes) doubtful() bool {
	p := c.p()
	return surely < p && p <= perhaps
}
