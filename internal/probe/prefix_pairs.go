package probe

import (
	"fmt"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// Pairs of prompts that a key may take for the same: equal words with another
// picture, equal words for another adapter, nearly equal words.

const (
	pairTokens    = 640
	pictureRounds = 2
	// countedRounds look at what is counted as cached of two adapters' prompts,
	// saidRounds at what is said.
	countedRounds = 2
	saidRounds    = 4
	twinRounds    = 3
)

// pictures sends the same words with different pictures, by one tenant and by
// another. Each picture shows a nonce of its own exchange, so one that is taken
// for another is answered with the other's. A target without pictures refuses
// the first, and that is all.
func (p *prefixes) pictures() {
	refused := false
	for round := range pictureRounds {
		var base Send
		seq, ok := 0, false
		p.add(func() []Send {
			if refused {
				return nil
			}
			base = who{tenant: round % p.env.Tenants}.says(p.session(pairTokens), wire.Plant, fmt.Sprintf("words %d", round+1))
			return []Send{base}
		})
		for i := range 3 {
			tenant := (round + i/2) % p.env.Tenants
			p.add(func() []Send {
				if i == 0 {
					seq, ok = p.served()
				}
				refused = refused || i > 0 && p.declined()
				if !ok || refused {
					return nil
				}
				return []Send{p.picture(base, seq, tenant, i)}
			})
		}
	}
}

// declined reports whether the target has refused the exchange before.
func (p *prefixes) declined() bool { return len(p.last) == 1 && p.last[0].Answer.Refusal != nil }

func (p *prefixes) picture(base Send, seq, tenant, i int) Send {
	s := who{tenant: tenant}.says(base.after(seq, 0), wire.Unrelated, fmt.Sprintf("picture %d", i+1))
	s.Turns = []Turn{{"user", []Part{text("Read what is written above these words. Say that, nothing else. The word in the picture:")}}}
	p.sent++
	s.Image, s.Asked, s.Tail = p.env.Seed&^1023|uint64(p.sent&1023), -1, "picture"
	return s
}

// adapters sends the same words to two adapters, or to one and the bare model.
// What one has computed is of no use to the other: it must be neither counted
// as cached nor change what is said.
func (p *prefixes) adapters() {
	if len(p.env.Adapters) == 0 {
		return
	}
	one, two := p.env.Adapters[0], ""
	if len(p.env.Adapters) > 1 {
		two = p.env.Adapters[1]
	}
	for i := range countedRounds {
		tenant := i % p.env.Tenants
		p.compare("two adapters", pairTokens, who{tenant, one}, who{tenant, two}, true, func() bool { return false })
	}
	group := 0
	p.add(func() []Send {
		p.group++
		group = p.group
		return nil
	})
	for i := range saidRounds {
		p.said(i, who{i % p.env.Tenants, one}, who{i % p.env.Tenants, two}, &group)
	}
}

// said asks another adapter for what stands in words that the first was sent.
// The control are words that only it was sent.
func (p *prefixes) said(i int, one, two who, group *int) {
	for _, c := range []struct {
		before who
		arm    string
		label  string
	}{{one, wire.ArmLoad, "after another adapter"}, {two, wire.ArmNull, "after the same adapter"}} {
		var words Send
		p.add(func() []Send {
			words = c.before.says(p.session(pairTokens), wire.Plant, "words for an adapter")
			return []Send{words}
		})
		p.add(func() []Send {
			seq, ok := p.served()
			if !ok {
				return nil
			}
			return []Send{two.says(words.after(seq, i), wire.Unrelated, c.label).arm(c.arm, *group)}
		})
	}
}

// twins are prompts that differ in nothing but the nonce, by two tenants and by
// one: a cache of answers that looks for what is much alike answers with the
// other's.
func (p *prefixes) twins() {
	for round := range twinRounds {
		for i := range 3 {
			tenant := (round + i/2) % p.env.Tenants
			p.add(func() []Send { return []Send{twin(fmt.Sprintf("twin %d", i+1), tenant, round)} })
		}
	}
}

// twinNotes are the words of twins, others in each round.
var twinNotes = [twinRounds]string{
	"This is a note for the desk about an order that came in this morning by mail and has neither been paid nor been sent yet. ",
	"Please keep this message with the papers of the visitor who will call at the gate on Thursday and ask for a badge. ",
	"The parcel in question was left at the depot by the river last week and can be fetched there until noon on any day. ",
}

func twin(label string, tenant, round int) Send {
	q := codeAt(0)
	parts := append([]Part{text(twinNotes[round%twinRounds])}, stated(0, q)...)
	return Send{
		Purpose: wire.Unrelated, Label: label, Tenant: tenant, Turns: []Turn{{"user", append(parts, text(q.words()))}},
		Tail: q.name, Asked: 0, MaxTokens: nonceAnswer,
	}
}
