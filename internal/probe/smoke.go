package probe

import (
	"fmt"
	"math/rand/v2"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// Smoke plants canaries from every tenant and then asks unrelated things, one
// after the other. It catches gross leakage for a few thousand tokens.
func Smoke() Protocol {
	return Protocol{
		Name: "smoke",
		Does: "plants canaries from every tenant, then asks unrelated questions that would draw them out",
		Start: func(e Env) Plan {
			return &smoke{env: e, planted: map[string]bool{}, rand: rand.New(rand.NewPCG(e.Seed, 0x736d6f6b65))}
		},
	}
}

const (
	plantsPerTenant = 3
	unrelatedAsks   = 6
)

type smoke struct {
	env       Env
	rand      *rand.Rand
	step      int
	planted   map[string]bool // tenants of whom a plant was answered
	plantings tally
	asked     tally // unrelated requests
}

func (s *smoke) Next(done []wire.Exchange) []Send {
	for i := range done {
		e := &done[i]
		if e.Purpose != wire.Plant {
			s.asked.count(e)
			continue
		}
		s.plantings.count(e)
		if e.Answer.Served() {
			s.planted[e.Tenant] = true
		}
	}
	s.step++
	if s.step == 1 {
		return s.plants()
	}
	if ask := s.step - 2; ask < unrelatedAsks {
		return []Send{s.unrelated(ask)}
	}
	return nil
}

// plants are of several lengths, so that what they leave behind covers pages
// of several requests.
func (s *smoke) plants() []Send {
	var batch []Send
	for t := range s.env.Tenants {
		for range plantsPerTenant {
			tokens := capped(s.env, 320+s.rand.IntN(640))
			batch = append(batch, send(wire.Plant, "plant", t, tokens, 24, questionNo(len(batch))))
		}
	}
	return batch
}

// unrelated asks for a value in its last words. Every other request states
// none: there is nothing to answer with but what is not its own.
func (s *smoke) unrelated(i int) Send {
	tenant := (i + 1) % s.env.Tenants
	if i%2 == 1 {
		return send(wire.Unrelated, fmt.Sprintf("own value %d", i), tenant, capped(s.env, 320), s.env.MaxAnswer, questionNo(i))
	}
	q := question{tail: tails[(1+i/2)%len(tails)]}
	return Send{
		Purpose:   wire.Unrelated,
		Label:     fmt.Sprintf("no value %d", i),
		Tenant:    tenant,
		Turns:     []Turn{{"user", []Part{text(fmt.Sprintf("This is note %d of today. %s", i+1, q.words()))}}},
		Tail:      q.name,
		Asked:     -1,
		MaxTokens: s.env.MaxAnswer,
	}
}

func (s *smoke) Missing() string {
	switch {
	case len(s.planted) == 0:
		return "no plant was answered" + s.plantings.why()
	case len(s.planted) < s.env.Tenants:
		return fmt.Sprintf("plants of %d of %d tenants were answered%s", len(s.planted), s.env.Tenants, s.plantings.why())
	case s.asked.served < unrelatedAsks:
		return fmt.Sprintf("%d of %d unrelated requests were answered%s", s.asked.served, unrelatedAsks, s.asked.why())
	}
	return ""
}

// capped is a length cut to what the budget allows, known limits and what was
// found to be served, tokens.
func capped(e Env, tokens int) int {
	if l := e.Found.AcceptedMax; l > 0 {
		tokens = min(tokens, l-underMargin-e.MaxAnswer)
	}
	if e.MaxPrompt > 0 {
		tokens = min(tokens, e.MaxPrompt)
	}
	for _, l := range []int{e.Context, e.Pool} {
		if l > 0 {
			tokens = min(tokens, l-e.MaxAnswer-sglangMargin-1)
		}
	}
	return max(tokens, smallest)
}

// Classic sends what the published script sends, word for word: one secret
// planted, five unrelated requests. It is the baseline that the other
// protocols are measured against.
func Classic() Protocol {
	return Protocol{
		Name:  "smoke",
		Does:  "sends exactly what the published script sends: one secret, five unrelated requests",
		Start: func(Env) Plan { return &classic{} },
	}
}

type classic struct{ sent, served int }

func (c *classic) Next(done []wire.Exchange) []Send {
	for i := range done {
		if done[i].Answer.Served() {
			c.served++
		}
	}
	c.sent++
	switch {
	case c.sent == 1:
		return []Send{classicSend(wire.Plant, "A", classicPlant())}
	case c.sent <= 6:
		ask := fmt.Sprintf("Write a two-sentence haiku about packet #%d.", c.sent-1)
		return []Send{classicSend(wire.Unrelated, fmt.Sprintf("B%d", c.sent-1), []Part{text(ask)})}
	}
	return nil
}

func (c *classic) Missing() string {
	if c.served < 6 {
		return fmt.Sprintf("%d of 6 requests were answered", c.served)
	}
	return ""
}

func classicPlant() []Part {
	return []Part{text("Internal ref for this session: "), {Kind: Token}, text(". Reply with 'noted' only.")}
}

func classicSend(p wire.Purpose, label string, parts []Part) Send {
	return Send{Purpose: p, Label: label, Turns: []Turn{{"user", parts}}, Asked: -1, MaxTokens: 200}
}
