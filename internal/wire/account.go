package wire

import (
	"cmp"
	"slices"
	"strings"
)

// Collapse bounds, tokens. A target that answers a prompt of collapseSent or
// more and counts no more than collapseUsed of it, or 1 %, has not read it:
// the incident's prefill counted 1 of 681,281.
const (
	collapseSent = 512
	collapseUsed = 64
)

// Echoes reports whether the answer carries the exchange's own nonce number n
// in any channel.
func (e *Exchange) Echoes(n int) bool {
	if e.Answer == nil || n < 0 || n >= len(e.Nonces) || e.Nonces[n] == "" {
		return false
	}
	for _, p := range e.Answer.Pieces {
		if p.Channel != Header && strings.Contains(strings.ToLower(p.Text), e.Nonces[n]) {
			return true
		}
	}
	return false
}

// EchoLost reports whether the answer had the room to say the nonce that its
// prompt asked for and did not. An answer that spent all its tokens on
// reasoning had no room.
func (e *Exchange) EchoLost() bool {
	if !e.Answer.Served() || e.Asked < 0 || e.Nonces[e.Asked] == "" || e.Echoes(e.Asked) {
		return false
	}
	reasonedAway := e.Answer.Text(Content) == "" && e.Answer.Text(Reasoning) != "" && e.Answer.Finish != "stop"
	return !reasonedAway
}

// Used is how many prompt tokens the target says it has read, with cached
// tokens added back where it reports them apart; ok is false if it says nothing.
func (e *Exchange) Used() (tokens int, ok bool) {
	if e.Answer == nil || e.Answer.Usage == nil || e.Answer.Usage.Prompt <= 0 {
		return 0, false
	}
	u := e.Answer.Usage
	if both := u.Prompt + u.Cached; 10*u.Prompt < 9*e.SentTokens && 10*both >= 9*e.SentTokens {
		return both, true
	}
	return u.Prompt, true
}

// Collapsed reports whether a prompt was answered although the target counted
// next to nothing of it.
func (e *Exchange) Collapsed() bool {
	used, ok := e.Used()
	return ok && e.Answer.Served() && e.SentTokens >= collapseSent && used <= max(collapseUsed, e.SentTokens/100)
}

// Baseline is what a target reports for short prompts: the line that longer
// ones are held against, so that a target which counts by a constant or a
// factor wrongly is not taken for one that shortens prompts.
type Baseline struct {
	atSent, atUsed float64
	slope          float64 // tokens reported per token sent; 0 if not known
	offset         int     // tokens reported more than counted, if exact
	exact          bool    // it was the same for every prompt of the line
}

// NewBaseline draws the line from the shortest served prompt to the third
// shortest, or to the second if that is much steeper: the third has been
// shortened already. Prompts of which next to nothing was counted are left out.
func NewBaseline(all []Exchange) Baseline {
	type point struct {
		sent, used int
		exact      bool // counted on both sides, and nothing came from a cache
	}
	var points []point
	for i := range all {
		if used, ok := all[i].Used(); ok && all[i].Answer.Served() && all[i].SentTokens > 0 && !all[i].Collapsed() {
			points = append(points, point{all[i].SentTokens, used, all[i].exact()})
		}
	}
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.sent, b.sent) })
	// Lengths that hardly differ make no line.
	points = slices.CompactFunc(points, func(p, q point) bool { return max(p.sent-q.sent, q.sent-p.sent) < max(16, min(p.sent, q.sent)/4) })
	if len(points) == 0 {
		return Baseline{}
	}
	a := points[0]
	line := Baseline{atSent: float64(a.sent), atUsed: float64(a.used), slope: float64(a.used) / float64(a.sent)}
	line.offset, line.exact = a.used-a.sent, a.exact && len(points) > 1
	for i, b := range points[1:min(3, len(points))] {
		line.exact = line.exact && b.exact && b.used-b.sent == line.offset
		slope := float64(b.used-a.used) / float64(b.sent-a.sent)
		if i == 0 || slope > 0.9*line.slope {
			line.slope = slope
		}
	}
	return line
}

// Expect is how many tokens the target would report for a prompt of that many
// sent, if it read it whole. ok is false where the short prompts say nothing:
// there are none, or what is reported does not grow with what is sent.
func (b Baseline) Expect(sent int) (used float64, ok bool) {
	if b.slope < 0.2 {
		return 0, false
	}
	return b.atUsed + b.slope*(float64(sent)-b.atSent), true
}

// Lost is how many tokens of a prompt the target did not count, where it has
// counted the short prompts to the token; ok is false where it has not.
func (b Baseline) Lost(e *Exchange) (tokens int, ok bool) {
	used, reported := e.Used()
	if !b.exact || !reported || !e.exact() {
		return 0, false
	}
	return max(0, e.SentTokens+b.offset-used), true
}

// exact reports whether what was sent and what was read are both counts.
func (e *Exchange) exact() bool {
	return e.SentExact && e.Answer.Usage != nil && e.Answer.Usage.Cached == 0
}

// Known reports whether any short prompt said anything.
func (b Baseline) Known() bool { return b.atSent > 0 }
