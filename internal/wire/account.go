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

// shows reports whether a nonce stands anywhere in an answer: in a part of it
// that is no channel it is no echo, for it may be the prompt itself that the
// target shows there, but lost it is not either.
func (e *Exchange) shows(nonce string) bool {
	for _, s := range e.Answer.Joined {
		if strings.Contains(strings.ToLower(s.Text), nonce) {
			return true
		}
	}
	return false
}

// EchoLost reports whether the answer had the room to say the nonce that its
// prompt asked for and did not. An answer that spent all its tokens on
// reasoning had no room.
func (e *Exchange) EchoLost() bool {
	if !e.Answer.Served() || e.Asked < 0 || e.Nonces[e.Asked] == "" || e.Echoes(e.Asked) || e.shows(e.Nonces[e.Asked]) {
		return false
	}
	return !e.ReasonedAway()
}

// ReasonedAway reports whether an answer spent the tokens that it may have on
// reasoning, shown or only counted, so that it could say nothing. Some servers
// report an end of the model's own for that.
func (e *Exchange) ReasonedAway() bool {
	a := e.Answer
	if !a.Served() || strings.TrimSpace(a.Text(Content)) != "" || a.Text(ToolCalls) != "" {
		return false
	}
	reasoned := a.Text(Reasoning) != "" || a.Usage != nil && a.Usage.Reasoning > 0
	spent := a.Usage != nil && e.MaxTokens > 0 && a.Usage.Completion >= e.MaxTokens
	return reasoned && (spent || !a.EndedByItself())
}

// Used is how many prompt tokens the target says it has read, with cached
// tokens added back where it reports them apart; ok is false if it says nothing.
func (e *Exchange) Used() (tokens int, ok bool) {
	if e.Answer == nil || e.Answer.Usage == nil || e.Answer.Usage.Prompt <= 0 {
		return 0, false
	}
	u := e.Answer.Usage
	if e.Again != nil && u.Prompt+u.Cached == e.SentTokens {
		return e.SentTokens, true
	}
	if both := u.Prompt + u.Cached; 10*u.Prompt < 9*e.SentTokens && 10*both >= 9*e.SentTokens {
		return both, true
	}
	return u.Prompt, true
}

// LeastCached is how many more tokens than of new prompts have to be reported as
// cached of this one before they cannot be the end of a page of what all prompts
// begin with.
func (e *Exchange) LeastCached() int { return max(64, e.SentTokens/8) }

// Collapsed reports whether a prompt was answered although the target counted
// next to nothing of it.
func (e *Exchange) Collapsed() bool {
	used, ok := e.Used()
	return ok && e.Answer.Served() && nextToNothing(e.surelySent(), used)
}

// surelySent is the length of a prompt, tokens, and no more than a token for
// each byte of its text where it could not be counted.
func (e *Exchange) surelySent() int {
	if e.SentExact || e.SentBytes == 0 {
		return e.SentTokens
	}
	return int(min(int64(e.SentTokens), e.SentBytes))
}

func nextToNothing(sent, used int) bool {
	return sent >= collapseSent && used <= collapsedTo(sent)
}

// collapsedTo is the most that may be counted of a prompt that was not read, tokens.
func collapsedTo(sent int) int { return max(collapseUsed, sent/100) }

// Baseline is what a target reports for short prompts: the line that longer
// ones are held against, so that a target which counts by a constant or a
// factor wrongly is not taken for one that shortens prompts.
type Baseline struct {
	atSent, atUsed float64
	slope          float64 // tokens reported per token sent; 0 if not known
	offset         int     // tokens reported more than counted, if exact
	exact          bool    // it was the same for every prompt of the line
	// text is the line over bytes and messages, for prompts that could not be
	// counted beforehand: what their length was taken to be is itself learned
	// from what was reported.
	text law
	// longish is how many of its prompts were long enough to show that what is
	// reported grows with what is sent.
	longish int
	rate    float64 // most tokens reported per byte of a text
	grain   int     // what all counts are a multiple of, tokens; 1 where they are not rounded
	doubles bool    // all counts are powers of two
	// tenants are the laws of those that have sent enough: what a target puts
	// before a prompt may be another for each.
	tenants map[string]tenantLaw
	// shortest is the shortest prompt of which more than next to nothing was
	// counted, or of all if there is none.
	shortest point
}

// point is a served prompt by what was sent and what was counted, tokens.
type point struct {
	sent, used int
	bytes      int64
	exact      bool // counted on both sides, and nothing came from a cache
}

// counted reports whether more than next to nothing was counted.
func (p point) counted() bool { return float64(p.used) >= leastPerByte*float64(p.sent) }

// longer compares texts where they are known: lengths may be estimates.
func (p point) longer(q point) bool {
	if p.bytes > 0 && q.bytes > 0 {
		return p.bytes > q.bytes
	}
	return p.sent > q.sent
}

// NewBaseline draws the line from the shortest served prompt to the third
// shortest, or to the second if that is much steeper: the third has been
// shortened already. Prompts of which next to nothing was counted are left out.
func NewBaseline(all []Exchange) Baseline {
	var points []point
	var texts []observation
	byTenant := map[string][]observation{}
	steady := steadyTenants{}
	for i := range all {
		e := &all[i]
		used, ok := e.Used()
		if !ok || !e.Answer.Served() || e.SentTokens <= 0 {
			continue
		}
		points = append(points, point{e.SentTokens, used, e.SentBytes, e.exact()})
		if o := (observation{e.SentBytes, e.Messages, used}); e.ownText() && o.possible() {
			texts = append(texts, o)
			byTenant[e.Tenant] = append(byTenant[e.Tenant], o)
		}
		if e.exact() {
			steady.add(e.Tenant, used-e.SentTokens)
		}
	}
	rate := 0.0
	for _, p := range points {
		rate = max(rate, float64(p.used)/float64(max(1, p.bytes)))
	}
	counts := points
	points = onLine(points)
	if len(points) == 0 {
		return Baseline{}
	}
	a := points[0] // the shortest that was counted, if any was
	line := Baseline{atSent: float64(a.sent), atUsed: float64(a.used), slope: float64(a.used) / float64(a.sent)}
	line.text, line.longish = textLaw(texts)
	line.shortest, line.rate, line.grain, line.doubles = a, rate, grainOf(counts), doubles(counts)
	line.tenants = tenantLaws(byTenant)
	for _, p := range points {
		if line.shortest.longer(p) {
			line.shortest = p
		}
	}
	line.offset, line.exact = a.used-a.sent, a.exact && len(points) > 1
	for i, b := range points[1:min(3, len(points))] {
		line.exact = line.exact && b.exact && (b.used-b.sent == line.offset || i > 0 && b.used-b.sent < line.offset)
		slope := float64(b.used-a.used) / float64(b.sent-a.sent)
		if i == 0 || slope > 0.9*line.slope {
			line.slope = slope
		}
	}
	line.exact = line.exact && steady.reach(line.offset)
	return line
}

// onLine are the points of a line from the shortest prompt on, none of them of
// about the same length as another. A target that counts too few of each prompt
// counts none of a short one, or says 1: such say nothing of longer ones, unless
// there are no others.
func onLine(points []point) []point {
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.sent, b.sent) })
	var all, counted []point
	for _, p := range points {
		if nextToNothing(p.sent, p.used) {
			continue
		}
		all = append(all, p)
		if p.counted() {
			counted = append(counted, p)
		}
	}
	if len(counted) > 0 {
		all = counted
	}
	var out []point
	for _, p := range all {
		if n := len(out); n == 0 || p.sent-out[n-1].sent >= max(16, out[n-1].sent/4) {
			out = append(out, p)
		}
	}
	return out
}

// textLaw learns from the shortest prompts upwards, leaving out those that lack
// tokens: a target that shortens prompts does so from some length on.
func textLaw(texts []observation) (l law, longish int) {
	slices.SortStableFunc(texts, func(a, b observation) int { return cmp.Compare(a.bytes, b.bytes) })
	l.hidden = true
	for _, o := range texts {
		if _, short := l.shortBy(o); short || l.n >= settled && float64(o.tokens) < 0.95*l.expect(o.bytes, o.messages) {
			continue // also what is too long to be judged teaches nothing if it lacks much
		}
		l.add(o)
		if o.bytes >= longishBytes {
			longish++
		}
	}
	return l, longish
}

// longishBytes is the size from which an observation that is possible at all
// has 16 tokens or more, bytes.
const longishBytes = 256

// learned reports whether the text of prompts says what will be reported. It
// does not where the same is reported whatever is sent.
func (b Baseline) learned(e *Exchange) bool {
	l := b.lawOf(e)
	return l.longish >= 2 && l.law.fit()[1] > leastPerByte
}

// ownText reports whether a prompt was estimated by its text.
func (e *Exchange) ownText() bool {
	return !e.SentExact && e.Again == nil && e.Messages > 0 && e.SentBytes > 0
}

// Expect is how many tokens the target would report for a prompt if it read it
// whole. ok is false where the short prompts say nothing: there are none, or
// what is reported does not grow with what is sent.
func (b Baseline) Expect(e *Exchange) (used float64, ok bool) {
	learned := b.learned(e)
	switch {
	case e.ownText() && learned: // whatever the law, no more to the byte than of any other
		return min(b.lawOf(e).law.expect(e.SentBytes, e.Messages), b.rate*float64(e.SentBytes)), true
	case b.slope < 0.2 && !learned:
		return 0, false
	case e.Again != nil: // what was reported of the prompt that it repeats, and the padding
		return float64(e.SentTokens), true
	}
	used = b.atUsed + b.slope*(float64(e.SentTokens)-b.atSent)
	if e.ownText() { // its length is a guess, its text is not
		used = min(used, b.rate*float64(e.SentBytes))
	}
	return used, b.slope >= 0.2
}

// Collapsed is [Exchange.Collapsed] of a target whose counts are known. Where
// they mean nothing for short prompts either, and where it counts so much too
// few of every prompt that next to nothing is to be expected of this one, they
// prove nothing.
func (b Baseline) Collapsed(e *Exchange) bool {
	if !e.Collapsed() || b.muted(e) {
		return false
	}
	if expect, ok := b.Expect(e); ok {
		return expect > float64(2*collapsedTo(e.SentTokens))
	}
	return !b.Known()
}

// mostMuted is how long a prompt may be of which a target counts next to
// nothing because it counts so many too few of every prompt, tokens.
const mostMuted = hiddenSpread

// muted reports whether a prompt is so short that a target which counts some
// hundred tokens too few of every prompt counts next to nothing of it: no shorter
// one was counted either.
func (b Baseline) muted(e *Exchange) bool {
	return e.surelySent() <= mostMuted && (!b.Known() || b.Shortest(e) || !b.shortest.counted())
}

// Shortest reports whether no shorter prompt was counted that this one could be
// held against.
func (b Baseline) Shortest(e *Exchange) bool {
	return b.Known() && !point{sent: e.surelySent(), bytes: e.SentBytes}.longer(b.shortest)
}

// Lost is how many tokens of a prompt the target did not count. ok is false
// where that cannot be told from an error of counting: neither was the prompt
// counted to the token and the short prompts, too, nor does it lack more than
// its text can vary by.
func (b Baseline) Lost(e *Exchange) (tokens int, ok bool) {
	used, reported := e.Used()
	switch {
	case !reported:
		return 0, false
	case e.Again != nil:
		// Less than of the prompt without its padding needs no padding that counts.
		return max(0, e.SentTokens-used), e.SentExact || used < e.SentTokens-e.Pad
	case b.exact && e.exact():
		return max(0, e.SentTokens+b.offset-used), true
	case e.ownText() && b.learned(e):
		if lacks, sure := b.lawOf(e).law.shortBy(observation{e.SentBytes, e.Messages, used}); sure {
			return int(lacks), true
		}
	}
	return 0, false
}

// exact reports whether what was sent and what was read are both counts.
func (e *Exchange) exact() bool {
	return e.SentExact && e.Answer.Usage != nil && e.Answer.Usage.Cached == 0
}

// Known reports whether any short prompt said anything.
func (b Baseline) Known() bool { return b.atSent > 0 }
