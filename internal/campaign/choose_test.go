package campaign

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/probe"
)

func TestEveryProtocolSaysWhatItIsWorth(t *testing.T) {
	for _, p := range probe.All() {
		if w := worth[p.Name]; w.why == "" || w.tenants < 1 {
			t.Errorf("%s has no row in worth", p.Name)
		}
	}
	if len(worth) != len(probe.All()) {
		t.Errorf("%d rows in worth for %d protocols", len(worth), len(probe.All()))
	}
}

func TestChoice(t *testing.T) {
	for _, c := range []struct {
		name    string
		tenants int
		facts   Facts
		budget  Budget
		runs    []string
		left    map[string]string // part of why others are left out
	}{
		{
			name: "one identity", tenants: 1, facts: Facts{Context: 4096},
			runs: []string{"smoke", "boundary", "straddle", "interleave", "churn", "replay", "roundtrip"},
			left: map[string]string{"tenants": "1 was given", "ids": "--tenant", "prefix": "--tenant"},
		},
		{
			name: "two identities", tenants: 2, facts: Facts{Context: 4096},
			runs: []string{"smoke", "boundary", "straddle", "tenants", "interleave", "ids", "churn", "replay", "prefix", "roundtrip"},
		},
		{
			name: "few tokens", tenants: 2, facts: Facts{Context: 100_000}, budget: Budget{Tokens: 40_000},
			runs: []string{"smoke"},
			left: map[string]string{"boundary": "token budget of 40000", "straddle": "the budget allows prompts of"},
		},
		{
			name: "few requests", tenants: 1, facts: Facts{Context: 4096}, budget: Budget{Requests: 12},
			runs: []string{"smoke"}, left: map[string]string{"boundary": "request budget of 12"},
		},
		{
			name: "next to nothing", tenants: 1, facts: Facts{Context: 4096}, budget: Budget{Requests: 2},
			runs: []string{"smoke"}, left: map[string]string{"replay": "request budget of 2"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fakeTarget{}
			cfg := config(f)
			for cfg.Tenants = nil; len(cfg.Tenants) < c.tenants; {
				cfg.Tenants = append(cfg.Tenants, Tenant{Name: string(rune('a' + len(cfg.Tenants)))})
			}
			cfg.Facts, cfg.Budget = c.facts, c.budget
			chosen, why, plan, err := Choose(t.Context(), cfg, probe.All())
			if err != nil || f.calls > 0 || len(why) != len(probe.All()) {
				t.Fatalf("%d calls, %d reasons, %v", f.calls, len(why), err)
			}
			var names []string
			for _, p := range chosen {
				names = append(names, p.Name)
			}
			if !slices.Equal(names[:min(len(names), len(c.runs))], c.runs) && c.budget == (Budget{}) || names[0] != "smoke" {
				t.Errorf("chosen are %v", names)
			}
			for _, w := range why {
				if w.Runs != slices.Contains(names, w.Protocol) || w.Reason == "" || strings.Contains(w.Reason, "\n") {
					t.Errorf("%+v, yet chosen are %v", w, names)
				}
				if part := c.left[w.Protocol]; part != "" && (w.Runs || !strings.Contains(w.Reason, part) || w.Budget != strings.Contains(w.Reason, "budget")) {
					t.Errorf("%+v", w)
				}
			}
			// What was chosen is what a dry run of it forecasts.
			cfg.Protocols = chosen
			dry, err := DryRun(cfg)
			if err != nil || dry.Stopped != plan.Stopped || len(dry.Sends) != len(plan.Sends) {
				t.Errorf("%d sends (%s) where a dry run has %d (%s), %v", len(plan.Sends), plan.Stopped, len(dry.Sends), dry.Stopped, err)
			}
			if c.budget.Tokens > 0 && plan.PromptTokens > c.budget.Tokens {
				t.Errorf("%d tokens of %d", plan.PromptTokens, c.budget.Tokens)
			}
		})
	}
}

func TestChoiceInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if chosen, _, _, err := Choose(ctx, config(&fakeTarget{}), probe.All()); chosen != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("chosen %v, %v", chosen, err)
	}
}

// A run that had to leave protocols out for its budget has not looked
// everywhere; one that had no use for them has.
func TestWhatIsLeftOutForTheBudgetIsNotClean(t *testing.T) {
	for budget, want := range map[bool]Verdict{true: Inconclusive, false: Clean} {
		cfg := config(&fakeTarget{}, one().protocol("smoke"))
		cfg.Choices = []Choice{{Protocol: "smoke", Runs: true, Reason: "x"}, {Protocol: "boundary", Reason: "y", Budget: budget}}
		res := mustRun(t, cfg)
		if res.Verdict != want || len(res.Choices) != 2 || strings.Contains(res.Reason, "boundary") != budget {
			t.Errorf("left out for the budget %v: verdict %s, reason %q", budget, res.Verdict, res.Reason)
		}
		if err := runSchema(t).Validate(asJSON(t, res)); err != nil {
			t.Error(err)
		}
	}
}
