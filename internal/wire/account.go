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
	// text is the line over bytes and messages, for prompts that could not be
	// counted beforehand: what their length was taken to be is itself learned
	// from what was reported.
	text law
	// longish is how many of its prompts were long enough to show that what is
	// reported grows with what is sent.
	longish int
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
	var texts []observation
	for i := range all {
		e := &all[i]
		used, ok := e.Used()
		if !ok || !e.Answer.Served() || e.SentTokens <= 0 || e.Collapsed() {
			continue
		}
		points = append(points, point{e.SentTokens, used, e.exact()})
		if o := (observation{e.SentBytes, e.Messages, used}); e.ownText() && o.possible() {
			texts = append(texts, o)
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
	line.text, line.longish = textLaw(texts)
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
func (b Baseline) learned() bool {
	return b.longish >= 2 && b.text.fit()[1] > leastPerByte
}

// ownText reports whether a prompt was estimated by its text.
func (e *Exchange) ownText() bool {
	return !e.SentExact && e.Again == nil && e.Messages > 0 && e.SentBytes > 0
}

// Expect is how many tokens the target would report for a prompt if it read it
// whole. ok is false where the short prompts say nothing: there are none, or
// what is reported does not grow with what is sent.
func (b Baseline) Expect(e *Exchange) (used float64, ok bool) {
	learned := b.learned()
	switch {
	case e.ownText() && learned:
		return b.text.expect(e.SentBytes, e.Messages), true
	case b.slope < 0.2 && !learned:
		return 0, false
	case e.Again != nil: // what was reported of the prompt that it repeats, and the padding
		return float64(e.SentTokens), true
	}
	return b.atUsed + b.slope*(float64(e.SentTokens)-b.atSent), b.slope >= 0.2
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
	case e.ownText() && b.learned():
		if lacks, sure := b.text.shortBy(observation{e.SentBytes, e.Messages, used}); sure {
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
