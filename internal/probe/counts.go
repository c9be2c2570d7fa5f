package probe

import (
	"fmt"
	"math"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// counts are what a target counts of prompts while nothing else is under way,
// and how many it counts otherwise beside others. What is known of one prompt may
// have been written for another there, which is a reason to look on, and no more.
type counts struct {
	quiet    []wire.Exchange
	off      int    // prompts beside others of which clearly more or less was counted
	first    string // one of them, in words
	unsteady bool   // so it is in quiet: counts say nothing
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

// others is how many prompts were counted as if they were others.
func (c *counts) others() int {
	if c.unsteady {
		return 0
	}
	return c.off
}

// learn takes a prompt that was sent in quiet.
func (c *counts) learn(e *wire.Exchange) {
	if _, reported := e.Used(); reported && e.Answer.Served() {
		c.unsteady = c.unsteady || c.odd(e)
		c.quiet = append(c.quiet, *e)
	}
}

// hold takes a prompt that was sent beside others.
func (c *counts) hold(e *wire.Exchange) {
	if _, reported := e.Used(); reported && e.Answer.Served() && c.odd(e) {
		if c.off++; c.off == 1 {
			used, _ := e.Used()
			c.first = fmt.Sprintf("%d of one of about %d", used, e.SentTokens)
		}
	}
}

// odd reports whether clearly more or less was counted of a prompt than of the
// quiet one of its tenant that is nearest in length. Whatever is hidden before
// both, the count lies between that one's and as many times that as it is longer.
func (c *counts) odd(e *wire.Exchange) bool {
	var near *wire.Exchange
	times := 0.
	for i := range c.quiet {
		q := &c.quiet[i]
		if t := timesAsLong(e, q); q.Tenant == e.Tenant && (near == nil || math.Abs(math.Log(t)) < math.Abs(math.Log(times))) {
			near, times = q, t
		}
	}
	if near == nil || math.Abs(times-1) > aboutAsLong {
		return false
	}
	used, _ := e.Used()
	n, _ := near.Used()
	least, most := float64(n)*min(times, 1), float64(n)*max(times, 1)
	off := max(least-float64(used), float64(used)-most) - max(clearlyOff, partOff*least)
	return off > 0 && off > float64(wire.NewBaseline(c.quiet).Rounding())
}

// timesAsLong compares two prompts by their tokens if both were counted, else by
// their bytes: an estimate of tokens changes as more is learned.
func timesAsLong(e, q *wire.Exchange) float64 {
	if (!e.SentExact || !q.SentExact) && e.SentBytes > 0 && q.SentBytes > 0 {
		return float64(e.SentBytes) / float64(q.SentBytes)
	}
	return float64(max(1, e.SentTokens)) / float64(max(1, q.SentTokens))
}
