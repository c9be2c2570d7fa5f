package probe

import (
	"fmt"
	"time"

	"github.com/kvcanary/kvcanary/internal/wire"
)

const (
	// abortTries is how many prompts are given up and sent again.
	abortTries = 6
	// abortTokens is their length: prefill has to be under way when they are, and
	// not to be done with them in one go.
	abortTokens = 5632
	// abortSeeds are sent before, so that what a cache gives out next has held
	// text that says whose it is.
	abortSeeds = 3
	// abortAt is the part of the time to a first token after which the first of
	// them is given up; where that turns out late or early, the next is given up
	// sooner or later.
	abortAt = 0.3
)

// aborts gives prompts up in the middle of their prefill and sends them again:
// what a cache has published of them must be what they say. The control are
// prompts that were not given up.
func (p *prefixes) aborts() {
	group := 0
	for i := range abortSeeds {
		p.add(func() []Send {
			if i == 0 {
				p.group++
				group = p.group
			}
			return []Send{who{tenant: i % p.env.Tenants}.says(p.session(abortTokens), wire.Plant, fmt.Sprintf("seed %d", i+1))}
		})
	}
	for i := range abortTries {
		p.abort(i, &group)
	}
}

func (p *prefixes) abort(i int, group *int) {
	sender := who{tenant: i % p.env.Tenants}
	var whole, given Send
	ask := func(s Send, seq int, arm, label string) []Send {
		// Its end is the part that is most likely not there yet.
		s = sender.says(s.after(seq, 2), wire.Unrelated, label).arm(arm, *group)
		s.Hangup, s.MaxTokens = wire.Hangup{}, p.env.MaxAnswer
		return []Send{s}
	}
	p.add(func() []Send {
		if i > 0 {
			p.adjust()
		}
		if i%2 == 1 {
			return nil // every other one is control enough
		}
		whole = sender.says(p.session(prefixTokens), wire.Plant, "sent whole")
		return []Send{whole}
	})
	p.add(func() []Send {
		seq, ok := p.served()
		if !ok || i%2 == 1 {
			return nil
		}
		return ask(whole, seq, wire.ArmNull, "again")
	})
	p.add(func() []Send {
		given = sender.says(p.session(abortTokens-p.env.page()*i), wire.Churn, "given up in prefill")
		given.Hangup = wire.Hangup{Sent: true, After: time.Duration(p.soon * p.perToken * float64(given.Tokens))}
		return []Send{given}
	})
	p.add(func() []Send {
		if len(p.last) != 1 {
			return nil
		}
		p.gone = p.last[0].Left
		if p.gone {
			p.left++
		}
		return ask(given, p.last[0].Seq, wire.ArmLoad, "sent again")
	})
}

// adjust moves the moment of the next abort by what came of the one before.
// Nothing in the cache of a target that reports what is means that prefill had
// not begun.
func (p *prefixes) adjust() {
	switch {
	case !p.gone:
		p.soon /= 2
	case p.reported > 0 && len(p.last) == 1 && p.last[0].Answer.Served() && p.last[0].Answer.Usage != nil && p.last[0].Answer.Usage.Cached == 0:
		p.soon = min(1.5*p.soon, 0.9)
	}
}

// learn learns how long prefill takes: as long as the quickest of prompts that
// were not there yet.
func (p *prefixes) learn(e *wire.Exchange) {
	a := e.Answer
	if e.SentTokens == 0 || !a.FirstToken.After(a.Start) || len(e.Holds) > 0 {
		return
	}
	if t := float64(a.FirstToken.Sub(a.Start)) / float64(e.SentTokens); p.perToken == 0 || t < p.perToken {
		p.perToken = t
	}
}
