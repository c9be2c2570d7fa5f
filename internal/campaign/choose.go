package campaign

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// Choice says of a protocol why it runs, or why it is left out.
type Choice struct {
	Protocol string `json:"protocol"`
	Runs     bool   `json:"runs"`
	Reason   string `json:"reason"` // one line
	// Budget says that it was left out because the budget does not reach: then
	// the run as a whole cannot be clean.
	Budget bool `json:"budget,omitempty"`
}

// worth says for each protocol why it is run where nobody has named any, and
// how many tenants it needs to come to anything.
var worth = map[string]struct {
	why     string
	tenants int
}{
	"smoke":      {"few tokens, and it sees gross leaks", 1},
	"boundary":   {"finds the limit that straddle needs", 1},
	"straddle":   {"tests what happens to prompts over each limit, the one that the known incident was at", 1},
	"tenants":    {"there are several identities to keep apart", 2},
	"interleave": {"streams that are read at different speeds show what buffers mix up", 1},
	"ids":        {"there are several identities that may use one id", 2},
	"churn":      {"requests that are given up leave pages behind", 1},
	"replay":     {"the same prompt twice shows what depends on others", 1},
	"prefix":     {"there are several identities that may share a prefix", 2},
	"roundtrip":  {"sessions that are pushed out have to come back whole", 1},
}

// Choose picks from all protocols those that make sense for the target and the
// tenants of cfg and that its budget reaches, in their order. It also returns
// the forecast of a campaign of those, and a line for each protocol that says
// why. If the budget reaches none the first one is picked all the same, so that
// the run says so. cfg.Protocols is not looked at. It takes seconds where the
// window is large or not known; an error of ctx ends it.
func Choose(ctx context.Context, cfg Config, all []probe.Protocol) (chosen []probe.Protocol, why []Choice, f *Forecast, err error) {
	cfg.Protocols = all
	r, err := rehearsal(cfg)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, p := range all {
		w := worth[p.Name]
		if len(cfg.Tenants) < w.tenants {
			why = append(why, Choice{Protocol: p.Name, Reason: fmt.Sprintf("it compares identities, and %d was given: name more with --tenant", len(cfg.Tenants))})
			continue
		}
		before := r.mark()
		r.protocol(ctx, p)
		if ctx.Err() != nil {
			return nil, nil, nil, ctx.Err()
		}
		tokens := 0
		for i := before.all; i < len(r.all); i++ {
			tokens += r.all[i].SentTokens
		}
		if short := r.unreached(before.all); short != "" {
			r.reset(before)
			why = append(why, Choice{Protocol: p.Name, Budget: true, Reason: "the budget does not reach: " + short})
			continue
		}
		chosen = append(chosen, p)
		why = append(why, Choice{Protocol: p.Name, Runs: true, Reason: fmt.Sprintf("%s; about %d prompt tokens", w.why, tokens)})
	}
	if len(chosen) == 0 && len(all) > 0 {
		chosen = all[:1]
		i := slices.IndexFunc(why, func(c Choice) bool { return c.Protocol == all[0].Name })
		why[i] = Choice{Protocol: all[0].Name, Runs: true, Reason: "the cheapest one, although " + why[i].Reason}
		r.protocol(ctx, all[0])
	}
	return chosen, why, r.forecast(), nil
}

// unreached says why the budget does not reach for the protocol that was rehearsed
// last, whose exchanges are r.all[from:]; "" if it does, or far enough to be
// worth while.
func (r *runner) unreached(from int) string {
	if r.overdrawn != "" {
		return r.overdrawn
	}
	last := r.result.Protocols[len(r.result.Protocols)-1]
	const hardlyBegun = 3
	if len(r.all)-from < hardlyBegun && strings.Contains(last.Reason, "budget") {
		return last.Reason
	}
	return ""
}

// state is a campaign at some moment of its rehearsal.
type state struct {
	all, results    int
	spent, requests int
	found           probe.Found
	result          Result
	made            map[int]made
}

func (r *runner) mark() state {
	spent, requests := r.budget.used()
	return state{len(r.all), len(r.result.Protocols), spent, requests, r.found, *r.result, maps.Clone(r.made)}
}

// reset goes back to a moment, as if what came after had not been.
func (r *runner) reset(s state) {
	r.all, r.found, r.made, r.overdrawn = r.all[:s.all], s.found, s.made, ""
	*r.result = s.result
	r.budget = &budget{limit: r.cfg.Budget, spent: s.spent, requests: s.requests}
}

// leftOut says that the budget does not reach for protocols that would have
// been run, "" if it does.
func (c Config) leftOut() string {
	var names []string
	for _, o := range c.Choices {
		if !o.Runs && o.Budget {
			names = append(names, o.Protocol)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "the budget does not reach for " + strings.Join(names, ", ") + ", which were left out"
}

// rehearsal is a campaign that is driven by simulated answers.
func rehearsal(cfg Config) (*runner, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	cfg.Client, cfg.Progress, cfg.Observe, cfg.Oracles, cfg.OutDir = simulation{}, nil, nil, nil, ""
	cfg.Budget.Time = 0
	r := newRunner(cfg)
	r.do = func(_ context.Context, e *wire.Exchange, _ wire.Request) *wire.Answer {
		return simulate(e, cfg.Facts.Context)
	}
	return r, nil
}
