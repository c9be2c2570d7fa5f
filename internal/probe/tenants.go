package probe

import (
	"fmt"
	"math/rand/v2"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// Tenants lets all tenants send at once, prompts of mixed lengths, each full of
// its own canary and asking for its own nonce. Every answer is scanned for
// everybody else's.
func Tenants() Protocol {
	return Protocol{
		Name: "tenants",
		Does: "lets all tenants send prompts of mixed lengths at once and scans every answer for everybody else's text",
		Start: func(e Env) Plan {
			return &tenants{env: e, rand: rand.New(rand.NewPCG(e.Seed, 0x74656e616e7473))}
		},
	}
}

const (
	tenantRounds = 3
	// perTenant prompts of each tenant are under way at once.
	perTenant = 3
	// longest prompt of this protocol, tokens: length is the business of straddle.
	tenantLongest = 32768
)

type tenants struct {
	env          Env
	rand         *rand.Rand
	round        int
	sent, served int
}

func (t *tenants) Next(done []wire.Exchange) []Send {
	for i := range done {
		if done[i].Answer.Served() {
			t.served++
		}
	}
	if t.round == tenantRounds {
		return nil
	}
	t.round++
	var batch []Send
	for i := range perTenant {
		for tenant := range t.env.Tenants {
			batch = append(batch, t.prompt(tenant, i))
		}
	}
	return batch
}

func (t *tenants) prompt(tenant, i int) Send {
	tokens := t.length(tenant, i)
	s := send(wire.Plant, fmt.Sprintf("round %d", t.round), tenant, tokens, t.env.MaxAnswer, questionNo(t.sent))
	s.Stream = t.sent%2 == 1
	t.sent++
	return s
}

// length is mostly short. In the last round one tenant sends one prompt as
// long as is known to be served.
func (t *tenants) length(tenant, i int) int {
	if t.round == tenantRounds && i == 0 && tenant == int(t.env.Seed%uint64(t.env.Tenants)) {
		if t.env.Found.AcceptedMax > 0 {
			return t.fits(tenantLongest)
		}
	}
	short := [perTenant]int{160, 480, 1600}[i]
	return t.fits(short + t.rand.IntN(short/2))
}

// fits cuts a length to what was found to be served.
func (t *tenants) fits(tokens int) int {
	if l := t.env.Found.AcceptedMax; l > 0 {
		tokens = min(tokens, l-underMargin-t.env.MaxAnswer)
	}
	return capped(t.env, tokens)
}

func (t *tenants) Missing() string {
	want := tenantRounds * perTenant * t.env.Tenants
	switch {
	case t.served < want:
		return fmt.Sprintf("%d of %d prompts were answered", t.served, want)
	case t.env.Tenants < 2:
		return "only one tenant was given: whether keys are kept apart was not tested"
	}
	return ""
}
