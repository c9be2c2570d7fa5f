package campaign

import (
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/probe"
)

func TestBudgetIsNeverOverspent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := Budget{Tokens: rapid.IntRange(0, 500).Draw(t, "tokens"), Requests: rapid.IntRange(0, 30).Draw(t, "requests")}
		costs := rapid.SliceOfN(rapid.IntRange(1, 100), 1, 60).Draw(t, "costs")
		used := rapid.SliceOfN(rapid.IntRange(0, 100), len(costs), len(costs)).Draw(t, "percent used")
		b := &budget{limit: limit}
		var wg sync.WaitGroup
		for i, cost := range costs {
			wg.Go(func() {
				if b.reserve(cost) != "" {
					return
				}
				b.mu.Lock()
				over := limit.Tokens > 0 && b.spent+b.reserved > limit.Tokens || limit.Requests > 0 && b.requests > limit.Requests
				b.mu.Unlock()
				if over {
					t.Errorf("over the budget %+v", limit)
				}
				b.settle(cost, cost*used[i]/100, used[i] > 0)
			})
		}
		wg.Wait()
		if b.reserved != 0 {
			t.Fatalf("%d tokens still reserved", b.reserved)
		}
		if spent, requests := b.used(); limit.Tokens > 0 && spent > limit.Tokens || limit.Requests > 0 && requests > limit.Requests {
			t.Fatalf("spent %d tokens and %d requests of %+v", spent, requests, limit)
		}
	})
}

func TestBudgetNamesItself(t *testing.T) {
	b := &budget{limit: Budget{Tokens: 100, Requests: 1}}
	if why := b.reserve(101); !strings.Contains(why, "token budget of 100") {
		t.Errorf("token budget says %q", why)
	}
	if why := b.reserve(10); why != "" {
		t.Fatalf("a reservation that fits is refused: %s", why)
	}
	if why := b.reserve(10); !strings.Contains(why, "request budget of 1") {
		t.Errorf("request budget says %q", why)
	}
	if b.again(0) {
		t.Error("one more request than the budget has")
	}
	b.settle(10, 0, false)
	if !b.again(0) {
		t.Error("the request of an exchange that was not sent is lost")
	}
	if got := b.left(); got != 100 {
		t.Errorf("%d tokens left, want 100", got)
	}
}

// A campaign of concurrent exchanges keeps to the budget as the target counts it.
func TestCampaignKeepsToTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &fakeTarget{counts: rapid.Bool().Draw(t, "tokenizer")}
		n := rapid.IntRange(1, 12).Draw(t, "sends")
		cfg := config(f, (&script{batches: [][]probe.Send{sends(n, rapid.IntRange(300, 1200).Draw(t, "length")), sends(n, 400)}}).protocol("p"))
		cfg.Budget = Budget{Tokens: rapid.IntRange(1, 12000).Draw(t, "budget"), Requests: rapid.IntRange(0, 20).Draw(t, "requests")}
		cfg.Concurrency = rapid.IntRange(1, 8).Draw(t, "concurrency")
		res := mustRun(t, cfg)
		if f.tokens+5*f.calls > cfg.Budget.Tokens {
			t.Fatalf("the target counted %d tokens, the budget is %d", f.tokens+5*f.calls, cfg.Budget.Tokens)
		}
		if cfg.Budget.Requests > 0 && f.calls > cfg.Budget.Requests {
			t.Fatalf("%d requests made, the budget is %d", f.calls, cfg.Budget.Requests)
		}
		if res.Spent.PromptTokens+res.Spent.CompletionTokens > cfg.Budget.Tokens {
			t.Fatalf("spent %+v of %d", res.Spent, cfg.Budget.Tokens)
		}
		if res.Spent.Exchanges < 2*n {
			if res.Verdict != Inconclusive || !strings.Contains(res.Protocols[0].Reason, "budget") {
				t.Fatalf("cut short, yet %s: %q", res.Verdict, res.Protocols[0].Reason)
			}
		}
	})
}
