package campaign

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
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

// Whatever a target does, refuse for its rate, break connections, have requests
// sent again without a field, never answer, claim to have counted anything:
// tokens, requests and time stay within the budget for any concurrency.
func TestBudgetsAreKeptUnderTrouble(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { underTrouble(t, rt) })
}

func underTrouble(bubble *testing.T, t *rapid.T) {

	seed := rapid.Uint64().Draw(t, "trouble")
	n := rapid.IntRange(1, 10).Draw(t, "sends")
	budget := Budget{
		Tokens:   rapid.SampledFrom([]int{0, 2000, 6000}).Draw(t, "tokens"),
		Requests: rapid.IntRange(1, 25).Draw(t, "requests"),
		Time:     time.Duration(rapid.IntRange(1, 60).Draw(t, "seconds")) * time.Second,
	}
	concurrency := rapid.IntRange(1, 8).Draw(t, "concurrency")
	trouble := &troubled{random: rand.New(rand.NewPCG(seed, 1)), fake: &fakeTarget{counts: true}}
	cfg := config(trouble.fake, (&script{batches: [][]probe.Send{sends(n, 400), sends(n, 300)}}).protocol("p"))
	cfg.Client, cfg.Budget, cfg.Concurrency = trouble, budget, concurrency
	var res *Result
	var took time.Duration
	synctest.Test(bubble, func(*testing.T) {
		start := time.Now()
		res, _ = Run(context.Background(), cfg) // that the target was of no use may be an error
		took = time.Since(start)
	})
	if trouble.requests > budget.Requests || res.Spent.Requests > budget.Requests {
		t.Fatalf("%d requests made, %d accounted for, the budget is %d", trouble.requests, res.Spent.Requests, budget.Requests)
	}
	if budget.Tokens > 0 && trouble.tokens > budget.Tokens {
		t.Fatalf("the target counted %d tokens, the budget is %d", trouble.tokens, budget.Tokens)
	}
	if took > budget.Time {
		t.Fatalf("took %v of %v", took, budget.Time)
	}
}

// troubled is a target in which anything may go wrong, and which counts what it
// is really asked.
type troubled struct {
	fake   *fakeTarget
	mu     sync.Mutex
	random *rand.Rand

	requests, tokens int
}

func (c *troubled) CountTokens(ctx context.Context, key, model string, m []wire.Message) (int, bool, error) {
	return c.fake.CountTokens(ctx, key, model, m)
}

func (c *troubled) Do(ctx context.Context, r wire.Request) *wire.Answer {
	what := c.arrive()
	resent := 0
	for what < 2 && r.Resend() { // a field was refused
		what = c.arrive()
		resent++
	}
	if !sleep(ctx, time.Duration(what)*500*time.Millisecond) {
		return failed(wire.FailedCanceled, "stopped")
	}
	n, _ := c.fake.size(r.Messages)
	var a *wire.Answer
	switch {
	case what < 2:
		a = refused(wire.RefusedParameter, 400, "no such field")
	case what < 5:
		a = rateLimited(time.Duration(what-2) * 3 * time.Second)
	case what < 7:
		a = failed(wire.FailedCut, "connection reset")
		c.arrived(n)
	case what < 8:
		<-ctx.Done()
		a = failed(wire.FailedCanceled, "stopped")
	default:
		a = served("noted")
		a.Usage = &wire.Usage{Prompt: n, Completion: 16}
		c.arrived(n + 16)
	}
	a.Resent = resent
	return a
}

// arrive counts a request and draws what becomes of it.
func (c *troubled) arrive() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	return c.random.IntN(14)
}

func (c *troubled) arrived(tokens int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens += tokens
}

// A target that claims any number of tokens ends the campaign, and every number
// that is said of it is one.
func TestUsageBeyondAllNumbers(t *testing.T) {
	f := &fakeTarget{answer: func(context.Context, int, string) *wire.Answer {
		a := served("noted")
		a.Usage = &wire.Usage{Prompt: math.MaxInt, Completion: math.MaxInt}
		return a
	}}
	cfg := config(f, (&script{batches: [][]probe.Send{sends(4, 400), sends(4, 400), sends(4, 400)}}).protocol("p"))
	res := mustRun(t, cfg)
	if res.Spent.PromptTokens < 0 || res.Spent.CompletionTokens < 0 || res.Spent.Exchanges != 12 {
		t.Errorf("spent %+v", res.Spent)
	}
	f.calls = 0
	cfg.Protocols = []probe.Protocol{(&script{batches: [][]probe.Send{sends(1, 400), sends(1, 400)}}).protocol("p")}
	cfg.Budget.Tokens = 10000
	res = mustRun(t, cfg)
	if why := res.Protocols[0].Reason; f.calls != 1 || !strings.Contains(why, "and 0 are left") {
		t.Errorf("%d calls, reason %q", f.calls, why)
	}
	if err := runSchema(t).Validate(asJSON(t, res)); err != nil {
		t.Error(err)
	}
}

// What a broken connection may have cost is counted.
func TestBrokenConnectionsCost(t *testing.T) {
	f := &fakeTarget{counts: true, answer: func(_ context.Context, call int, _ string) *wire.Answer {
		if call == 0 {
			return failed(wire.FailedCut, "connection reset")
		}
		return nil
	}}
	res := mustRun(t, config(f, one().protocol("smoke")))
	if f.calls != 2 || res.Spent.PromptTokens != 800 || res.Spent.Requests != 2 {
		t.Errorf("%d calls, spent %+v", f.calls, res.Spent)
	}
	f.calls = 0
	cfg := config(f, one().protocol("smoke"))
	cfg.Budget.Tokens = 700 // not enough for a second time
	if res := mustRun(t, cfg); f.calls != 1 || res.Verdict != Inconclusive || res.Spent.PromptTokens > 700 {
		t.Errorf("%d calls, verdict %s, spent %+v", f.calls, res.Verdict, res.Spent)
	}
}

// A clock on the wall that is set back, or far ahead, changes no budget and
// makes no time negative.
func TestClockThatJumps(t *testing.T) {
	for _, by := range []time.Duration{-48 * time.Hour, 48 * time.Hour} {
		now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
		f := &fakeTarget{answer: func(context.Context, int, string) *wire.Answer {
			now = now.Add(by)
			return nil
		}}
		cfg := config(f, (&script{batches: [][]probe.Send{sends(1, 400), sends(1, 400)}}).protocol("smoke"))
		cfg.Now, cfg.Budget.Time = func() time.Time { return now }, time.Minute
		res := mustRun(t, cfg)
		if res.Reason != "" || f.calls != 2 || res.Ended.Before(res.Started) || res.Protocols[0].Seconds < 0 {
			t.Errorf("by %v: reason %q, %d calls, from %v to %v, %v s", by, res.Reason, f.calls, res.Started, res.Ended, res.Protocols[0].Seconds)
		}
		if err := runSchema(t).Validate(asJSON(t, res)); err != nil {
			t.Error(err)
		}
	}
}
