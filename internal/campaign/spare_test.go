package campaign

import (
	"testing"

	"github.com/kvcanary/kvcanary/internal/probe"
)

// scripted is a protocol of which every start is a new one.
func scripted(name string, batches ...[]probe.Send) probe.Protocol {
	return probe.Protocol{Name: name, Start: func(probe.Env) probe.Plan { return &script{batches: batches} }}
}

// What a protocol would like to send besides is sent from what the others leave,
// so that none that was announced falls out for it.
func TestSpareExchangesLeaveWhatOthersNeed(t *testing.T) {
	besides := sends(2, 1000)
	for i := range besides {
		besides[i].Spare = true
	}
	first := scripted("churn", sends(2, 1000), besides, besides)
	later := scripted("replay", sends(3, 1000))
	for name, c := range map[string]struct {
		budget      Budget
		first, last int
	}{
		"no budget":             {Budget{}, 6, 3},
		"tokens for all":        {Budget{Tokens: 12_000}, 6, 3},
		"tokens for one more":   {Budget{Tokens: 8_000}, 4, 3},
		"tokens for none more":  {Budget{Tokens: 6_000}, 2, 3},
		"requests for one more": {Budget{Requests: 8}, 4, 3},
		"requests for none":     {Budget{Requests: 6}, 2, 3},
		"too few requests":      {Budget{Requests: 4}, 2, 2},
	} {
		cfg := config(&fakeTarget{counts: true}, first, later)
		cfg.Budget = c.budget
		res := mustRun(t, cfg)
		if len(res.Protocols) != 2 || res.Protocols[0].Exchanges != c.first || res.Protocols[1].Exchanges != c.last {
			t.Errorf("%s: %+v", name, res.Protocols)
		}
		if short := c.last < 3; short != (res.Verdict == Inconclusive) {
			t.Errorf("%s: %s, %s", name, res.Verdict, res.Reason)
		}
	}
	cfg := config(&fakeTarget{counts: true}, first)
	cfg.Budget.Requests = 4
	if res := mustRun(t, cfg); res.Protocols[0].Exchanges != 4 {
		t.Errorf("alone: %+v", res.Protocols)
	}
}
