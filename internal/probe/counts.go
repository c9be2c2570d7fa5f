package probe

import (
	"math"
	"slices"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// counts are what a target counts of prompts while nothing else is under way,
// and how many it counts otherwise beside others. What is known of one prompt may
// have been written for another there, which is a reason to look on, and no more:
// some count unsteadily.
type counts struct {
	quiet []wire.Exchange
	off   int // prompts beside others of which clearly more or less was counted
}

const (
	// clearlyOff is by how much a count is off that is no chance, tokens, and
	// partOff the part of what was to be expected that it is off by as well:
	// lengths may be estimates.
	clearlyOff = 16
	partOff    = 1. / 8
	// aboutAsLong is by which part of their length prompts may differ at most for
	// the count of one to say what to expect of the other.
	aboutAsLong = 1. / 4
)

func (c *counts) learn(e *wire.Exchange) {
	if _, reported := e.Used(); reported && e.Answer.Served() {
		c.quiet = append(c.quiet, *e)
	}
}

// hold compares the count of a prompt beside others with that of the quiet one
// that is nearest in length.
func (c *counts) hold(e *wire.Exchange) {
	used, reported := e.Used()
	if !reported || !e.Answer.Served() || len(c.quiet) == 0 {
		return
	}
	apart := func(q wire.Exchange) int { return max(q.SentTokens-e.SentTokens, e.SentTokens-q.SentTokens) }
	q := slices.MinFunc(c.quiet, func(a, b wire.Exchange) int { return apart(a) - apart(b) })
	if float64(apart(q)) > aboutAsLong*float64(e.SentTokens) {
		return
	}
	n, _ := q.Used()
	expect := float64(n) * float64(e.SentTokens) / float64(max(1, q.SentTokens))
	if math.Abs(float64(used)-expect) > max(clearlyOff, partOff*expect)+float64(wire.NewBaseline(c.quiet).Rounding()) {
		c.off++
	}
}
