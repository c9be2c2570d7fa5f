package wire

import (
	"sync"
)

// Estimator learns how many tokens a prompt has from its bytes and messages,
// out of what a target has reported for earlier prompts. It serves where no
// endpoint counts. Its zero value is ready; it is safe for concurrent use.
type Estimator struct {
	mu       sync.Mutex
	good     law
	suspects []observation
}

// Estimate is how many tokens a prompt of so many bytes of text, in so many
// messages, will have.
func (e *Estimator) Estimate(bytes int64, messages int) float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.good.expect(bytes, messages)
}

// Observations is how many reports the estimate rests on.
func (e *Estimator) Observations() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.good.n
}

// Observe takes a report: a prompt of so many bytes and messages had so many
// tokens. A report that does not fit is put aside, for a target that has cut
// or replaced the prompt reports what was left of it; the estimate starts
// anew only when three such reports agree with one another.
func (e *Estimator) Observe(bytes int64, messages, tokens int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	o := observation{bytes: bytes, messages: messages, tokens: tokens}
	if !o.possible() {
		return
	}
	if !e.fits(o) {
		e.suspect(o)
		return
	}
	e.suspects = nil
	e.good.add(o)
}

// possible tells a report from one that no tokenizer makes, with room for a
// template of 256 tokens and as much for every message.
func (o observation) possible() bool {
	return o.bytes > 0 && o.messages >= 0 && o.tokens > 0 &&
		float64(o.tokens) >= leastPerByte*float64(o.bytes) &&
		float64(o.tokens) <= mostPerByte*float64(o.bytes)+256*float64(o.messages)+256
}

// fits compares a report with the estimate. A report far beyond what was seen
// may differ more, since the text may be of another kind; one within it that
// lacks more than chance explains was made of a part of the prompt.
func (e *Estimator) fits(o observation) bool {
	if e.good.n == 0 {
		return true
	}
	if _, short := e.good.shortBy(o); short {
		return false
	}
	want := e.good.expect(o.bytes, o.messages)
	slack := 32 + 16*float64(o.messages)
	low, high := 0.92, 1.08
	if o.bytes > 4*e.good.biggest {
		low, high = 0.6, 2.5
	}
	return float64(o.tokens) >= low*want-slack && float64(o.tokens) <= high*want+slack
}

// suspect puts a report aside, and starts anew when the last three agree. A
// target that cuts at a limit reports about the same for all that is over it,
// so reports below the estimate must come from prompts of different lengths,
// and grow with them.
func (e *Estimator) suspect(o observation) {
	e.suspects = append(e.suspects, o)
	if len(e.suspects) < 3 {
		return
	}
	if len(e.suspects) > 3 {
		e.suspects = e.suspects[1:]
	}
	var fresh Estimator
	least, most := o, o
	for _, s := range e.suspects {
		if !fresh.fits(s) {
			return
		}
		fresh.good.add(s)
		if s.bytes < least.bytes {
			least = s
		}
		if s.bytes > most.bytes {
			most = s
		}
	}
	longer := float64(most.bytes) / float64(least.bytes)
	grows := longer >= 1.2 && float64(most.tokens) >= float64(least.tokens)*(1+0.5*(longer-1))
	if float64(o.tokens) < e.good.expect(o.bytes, o.messages) && !grows {
		return
	}
	e.good, e.suspects = fresh.good, nil
}
