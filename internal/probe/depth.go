package probe

import (
	"fmt"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// depth asks for the start, the middle and the end of a long prompt, once each,
// where nothing was refused for its length or a value did not come back: a
// target that drops a part of long prompts and counts them as if it had not can
// be told in no other way. Where a value is missing it is asked for again, of
// long prompts and of short ones, and the end as often, until there are enough
// answers for a test.
type depth struct {
	far    int  // longest prompt whose value did not come back during the search, tokens
	under  bool // one of its prompts is under way
	queue  []deepAsk
	round  int
	lost   [3]bool // values that did not come back
	broken bool    // a prompt came to nothing
}

// deepAsk is one prompt to be sent: its length in tokens, and what it asks for.
type deepAsk struct{ tokens, place int }

const (
	// deepest is from what length on it matters, tokens.
	deepest = 2048
	// deepRounds is how often each is asked for where a value is missing. Four of
	// four lost, with what the search has lost, beside a dozen that came back hardly
	// come about by chance, for all lengths and places that it is looked for at.
	deepRounds = 4
	// shallow is the length of the short prompts beside them, tokens: long enough
	// for a turn for each place.
	shallow = 640
)

// deep is the next prompt of the kind, false when there are enough of them,
// the target does not answer with values at all, or the budget is short.
func (b *boundary) deep() (Send, bool) {
	d := &b.depth
	n := max(b.search.lo, d.far)
	if !b.search.exact && d.far == 0 {
		n -= n / 16
	}
	if n <= deepest || d.broken || d.far == 0 && b.search.hi > 0 || !b.echoes() || b.env.MaxPrompt > 0 && 12*n > b.env.MaxPrompt {
		return Send{}, false
	}
	if len(d.queue) == 0 {
		d.plan(n)
	}
	if len(d.queue) == 0 {
		return Send{}, false
	}
	ask := d.queue[0]
	d.queue, d.under = d.queue[1:], true
	q := questionNo(b.sent)
	q.place = ask.place
	b.sent++
	label := fmt.Sprintf("%s of %d", placeWords[ask.place], ask.tokens)
	return send(wire.Size, label, b.sent%b.env.Tenants, ask.tokens, boundaryAnswer, q), true
}

var placeWords = [3]string{"start", "middle", "end"}

// plan fills the queue for one more round, unless there were enough.
func (d *depth) plan(n int) {
	d.round++
	switch {
	case d.round == 1:
		d.queue = []deepAsk{{n, 0}, {n, 1}, {n, 2}}
	case d.round <= deepRounds && d.lost != [3]bool{}:
		for place, lost := range d.lost {
			if lost || place == 2 {
				d.queue = append(d.queue, deepAsk{n, place}, deepAsk{shallow, place})
			}
		}
	}
}

// missed notes a served prompt that was answered without its value.
func (b *boundary) missed(e *wire.Exchange) {
	if l := b.known(); e.Answer.Served() && e.EchoLost() && !e.Collapsed() && (l == 0 || e.SentTokens <= l) {
		b.depth.far = max(b.depth.far, e.SentTokens)
	}
}

func (d *depth) observe(e *wire.Exchange) {
	d.under = false
	switch {
	case !e.Answer.Served():
		d.broken = true
	case e.EchoLost():
		d.lost[e.Asked] = true
	}
}
