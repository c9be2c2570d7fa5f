package campaign

import (
	"context"
	"slices"

	"github.com/kvcanary/kvcanary/internal/probe"
)

// price is what exchanges take at most.
type price struct{ tokens, requests int }

// spares reports whether the budget has more than what the protocols to come
// need, enough for a batch of the one under way.
func (r *runner) spares(protocol string, batch []probe.Send) bool {
	limit := r.cfg.Budget
	if limit.Tokens == 0 && limit.Requests == 0 {
		return true
	}
	need := r.toCome(protocol)
	need.requests += len(batch)
	for _, s := range batch {
		need.tokens += atMost(s.Tokens) + s.MaxTokens
	}
	spent, requests := r.budget.used()
	return (limit.Tokens == 0 || spent+need.tokens <= limit.Tokens) && (limit.Requests == 0 || requests+need.requests <= limit.Requests)
}

// toCome is what the protocols behind the one that is named need, as a rehearsal
// has it.
func (r *runner) toCome(protocol string) (c price) {
	if known, ok := r.rest[protocol]; ok {
		return known
	}
	at := slices.IndexFunc(r.cfg.Protocols, func(p probe.Protocol) bool { return p.Name == protocol })
	cfg := r.cfg
	cfg.Protocols, cfg.Budget, cfg.Before, cfg.Choices = r.cfg.Protocols[at+1:], Budget{}, Before{}, nil
	if len(cfg.Protocols) > 0 {
		again, err := rehearsal(cfg)
		if err != nil {
			panic("kvcanary: internal error: a campaign under way cannot be rehearsed: " + err.Error())
		}
		again.found = r.found
		again.run(context.Background())
		c.requests = len(again.all)
		for i := range again.all {
			c.tokens += atMost(again.all[i].SentTokens) + again.all[i].MaxTokens
		}
	}
	if r.rest == nil {
		r.rest = map[string]price{}
	}
	r.rest[protocol] = c
	return c
}

// atMost is how long a prompt may be that was to have so many tokens.
func atMost(tokens int) int { return int(float64(tokens)*(1+estimateSlack)) + slackTokens }
