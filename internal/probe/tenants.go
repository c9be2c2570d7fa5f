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
	// catchUps is how often what was not served is made up for, by short prompts
	// and fewer at a time: together the long ones may be too much for the target.
	catchUps = 2
	// longest prompt of this protocol, tokens: length is the business of straddle.
	tenantLongest = 32768
)

type tenants struct {
	env   Env
	rand  *rand.Rand
	round int
	sent  int
	came  tally
}

func (t *tenants) Next(done []wire.Exchange) []Send {
	for i := range done {
		t.came.count(&done[i])
	}
	t.round++
	if t.round > tenantRounds {
		return t.catchUp()
	}
	var batch []Send
	for i := range perTenant {
		for tenant := range t.env.Tenants {
			batch = append(batch, t.prompt(tenant, i))
		}
	}
	return batch
}

// want is how many prompts have to be served, as many of each tenant.
func (t *tenants) want() int { return tenantRounds * perTenant * t.env.Tenants }

// catchUp makes up for prompts that were not served.
func (t *tenants) catchUp() []Send {
	if t.round > tenantRounds+catchUps {
		return nil
	}
	var batch []Send
	for i := range t.want() - t.came.served {
		batch = append(batch, t.prompt(i%t.env.Tenants, 0))
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
			return capped(t.env, tenantLongest)
		}
	}
	short := [perTenant]int{160, 480, 1600}[i]
	return capped(t.env, short+t.rand.IntN(short/2))
}

func (t *tenants) Missing() string {
	switch {
	case t.came.served < t.want():
		return fmt.Sprintf("%d of %d prompts were answered%s", t.came.served, t.want(), t.came.why())
	case t.env.Tenants < 2:
		return "only one tenant was given: whether keys are kept apart was not tested"
	}
	return ""
}
