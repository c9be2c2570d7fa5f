package campaign

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

func rateLimited(after time.Duration) *wire.Answer {
	a := refused(wire.RefusedRate, 429, "slow down")
	a.Refusal.RetryAfter = after
	return a
}

// limitFirst refuses the first n calls for their rate.
func limitFirst(n int, after time.Duration) *fakeTarget {
	return &fakeTarget{answer: func(_ context.Context, call int, _ string) *wire.Answer {
		if call < n {
			return rateLimited(after)
		}
		return nil
	}}
}

func one() *script { return &script{batches: [][]probe.Send{{fillerSend(400)}}} }

func TestRetryAfterIsRespected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := limitFirst(2, 30*time.Second)
		start := time.Now()
		res := mustRun(t, config(f, one().protocol("smoke")))
		took := time.Since(start)
		if res.Verdict != Clean || f.calls != 3 || res.Spent.Requests != 3 || res.Spent.Exchanges != 1 {
			t.Errorf("verdict %s after %d calls, spent %+v", res.Verdict, f.calls, res.Spent)
		}
		if took < time.Minute || took > 66*time.Second {
			t.Errorf("waited %v, want twice 30 s and at most a tenth more", took)
		}
		if f.texts[0] != f.texts[2] {
			t.Error("the exchange was not sent again as it was")
		}
	})
}

func TestBackOffGrowsAndEnds(t *testing.T) {
	pauses := func(seed uint64) time.Duration {
		var took time.Duration
		synctest.Test(t, func(t *testing.T) {
			f := limitFirst(1000, 0)
			cfg := config(f, one().protocol("smoke"))
			cfg.Seed = seed
			start := time.Now()
			res := mustRun(t, cfg)
			took = time.Since(start)
			if f.calls != maxAttempts || res.Verdict != Inconclusive || !strings.Contains(res.Protocols[0].Reason, "rate limit") {
				t.Errorf("%d calls, verdict %s, reason %q", f.calls, res.Verdict, res.Protocols[0].Reason)
			}
		})
		return took
	}
	// 1, 2, 4, 8 and 16 s, each between half and one and a half times that.
	a := pauses(1)
	if a < 31*time.Second/2 || a > 47*time.Second {
		t.Errorf("waited %v in all", a)
	}
	if b := pauses(1); a != b {
		t.Errorf("the same seed waited %v, then %v", a, b)
	}
	if b := pauses(2); a == b {
		t.Error("another seed has the same jitter")
	}
}

func TestNoWaitIsLongerThanAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := limitFirst(1000, time.Hour)
		start := time.Now()
		res := mustRun(t, config(f, one().protocol("smoke")))
		if took := time.Since(start); took > 0 || f.calls != 1 || !strings.Contains(res.Protocols[0].Reason, "1h0m0s") {
			t.Errorf("%v, %d calls, reason %q", took, f.calls, res.Protocols[0].Reason)
		}
	})
}

// A server that is not available and says for how long is asked again then; one
// that says nothing may be refusing a long prompt.
func TestUnavailableServerIsAskedAgain(t *testing.T) {
	unavailable := func(after time.Duration) *fakeTarget {
		return &fakeTarget{answer: func(_ context.Context, call int, _ string) *wire.Answer {
			if call > 0 {
				return nil
			}
			a := refused(wire.RefusedServer, 503, "restarting")
			a.Refusal.RetryAfter = after
			return a
		}}
	}
	synctest.Test(t, func(t *testing.T) {
		f := unavailable(20 * time.Second)
		start := time.Now()
		res := mustRun(t, config(f, one().protocol("smoke")))
		if took := time.Since(start); f.calls != 2 || took < 20*time.Second || took > 22*time.Second || res.Protocols[0].Served != 1 {
			t.Errorf("%d calls in %v, %+v", f.calls, took, res.Protocols[0])
		}
		f = unavailable(0)
		if res := mustRun(t, config(f, one().protocol("smoke"))); f.calls != 1 || res.Verdict != Inconclusive {
			t.Errorf("%d calls, verdict %s", f.calls, res.Verdict)
		}
	})
}

// While the target has asked one request of a tenant to wait, no other one of
// that tenant goes out.
func TestNobodyOvertakesAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var from, held time.Time // what goes out in the very moment does not know yet
		early := 0
		f := &fakeTarget{answer: func(_ context.Context, call int, _ string) *wire.Answer {
			time.Sleep(time.Second) // never under the mutex, in which no bubble's time goes on
			mu.Lock()
			defer mu.Unlock()
			if sent := time.Now().Add(-time.Second); sent.After(from) && sent.Before(held) {
				early++
			}
			if call%7 == 0 {
				from, held = time.Now(), time.Now().Add(10*time.Second)
				return rateLimited(10 * time.Second)
			}
			return nil
		}}
		cfg := config(f, (&script{batches: [][]probe.Send{sends(20, 400)}}).protocol("smoke"))
		cfg.Concurrency = 3
		if res := mustRun(t, cfg); early > 0 || res.Protocols[0].Served != 20 {
			t.Errorf("%d requests went out too early; %+v", early, res.Protocols[0])
		}
	})
}

// What one tenant was asked holds nobody else up.
func TestHoldsAreForOneTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var last atomic.Int64 // when the other tenant sent last
		f := &fakeTarget{answer: func(_ context.Context, _ int, prompt string) *wire.Answer {
			if strings.Contains(prompt, "other") {
				last.Store(int64(time.Since(start)))
			} else if time.Since(start) == 0 {
				return rateLimited(time.Minute)
			}
			return nil
		}}
		other := fillerSend(400)
		other.Tenant = 1
		other.Turns[0].Parts = append(other.Turns[0].Parts, probe.Part{Kind: probe.Literal, Text: "other"})
		cfg := config(f, (&script{batches: [][]probe.Send{{fillerSend(400), other, other, other}}}).protocol("smoke"))
		cfg.Tenants, cfg.Concurrency = []Tenant{{Name: "a"}, {Name: "b"}}, 2
		if res := mustRun(t, cfg); f.calls != 5 || last.Load() > 0 || time.Since(start) < time.Minute {
			t.Errorf("%d calls, the other tenant waited %v; %+v", f.calls, time.Duration(last.Load()), res.Protocols[0])
		}
	})
}

func TestInterruptedWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		f := limitFirst(1000, time.Minute)
		res, err := Run(ctx, config(f, one().protocol("smoke")))
		if err != nil || f.calls != 1 || res.Reason != "interrupted" || res.Spent.Requests != 1 {
			t.Errorf("%d calls, %+v, %v", f.calls, res, err)
		}
	})
}

func TestTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{answer: func(ctx context.Context, _ int, _ string) *wire.Answer {
			if !sleep(ctx, 4*time.Second) {
				return failed(wire.FailedCanceled, "stopped")
			}
			return nil
		}}
		cfg := config(f, (&script{batches: [][]probe.Send{sends(1, 400), sends(1, 400), sends(1, 400), sends(1, 400)}}).protocol("smoke"))
		cfg.Budget.Time = 10 * time.Second
		start := time.Now()
		res := mustRun(t, cfg)
		if took := time.Since(start); took != 10*time.Second || res.Verdict != Inconclusive || res.Reason != "time limit of 10s reached" || res.Protocols[0].Served != 2 {
			t.Errorf("took %v, reason %q, %+v", took, res.Reason, res.Protocols[0])
		}
	})
}

// A target that has hung, as one did after clients had gone away, is not waited
// for request by request, for hours. One that is only slow now and then is.
func TestTargetThatHasHungIsLeft(t *testing.T) {
	const each = 10 * time.Minute
	for name, c := range map[string]struct {
		silent func(call int) bool
		calls  int
		hung   bool
	}{
		"for good":       {func(call int) bool { return call >= 2 }, 2 + mostSilent, true},
		"from the start": {func(int) bool { return true }, mostSilent, true},
		"now and then":   {func(call int) bool { return call%mostSilent > 0 }, 9, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeTarget{answer: func(ctx context.Context, call int, _ string) *wire.Answer {
				if !c.silent(call) {
					return nil
				}
				sleep(ctx, each)
				return failed(wire.FailedTimeout, "no byte")
			}}
			var batches [][]probe.Send
			for range 9 {
				batches = append(batches, sends(1, 400))
			}
			res := mustRun(t, config(f, (&script{batches: batches}).protocol("smoke")))
			if got := strings.Contains(res.Protocols[0].Reason, "no longer answers"); f.calls != c.calls || got != c.hung {
				t.Errorf("%s: %d calls, want %d; reason %q", name, f.calls, c.calls, res.Protocols[0].Reason)
			}
			if c.hung && res.Verdict != Inconclusive {
				t.Errorf("%s: verdict %s", name, res.Verdict)
			}
		})
	}
}

func TestBrokenConnectionsAreTriedOnceMore(t *testing.T) {
	for name, c := range map[string]struct {
		answer *wire.Answer
		calls  int
	}{
		"reset before any byte": {failed(wire.FailedCut, "connection reset"), 2},
		"cut in the answer":     {&wire.Answer{Status: 200, Raw: wire.Blob{Size: 3}, Failure: &wire.Failure{Kind: wire.FailedCut, Message: "cut"}}, 1},
		"timeout":               {failed(wire.FailedTimeout, "no byte"), 1},
		"refused for length":    {refused(wire.RefusedContext, 400, "too long"), 1},
		"server error":          {refused(wire.RefusedServer, 500, "oops"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeTarget{answer: func(context.Context, int, string) *wire.Answer { a := *c.answer; return &a }}
			if mustRun(t, config(f, one().protocol("smoke"))); f.calls != c.calls {
				t.Errorf("%d calls, want %d", f.calls, c.calls)
			}
		})
	}
}

func TestRetriesCountAgainstTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := limitFirst(1000, 0)
		cfg := config(f, one().protocol("smoke"))
		cfg.Budget.Requests = 3
		if res := mustRun(t, cfg); f.calls != 3 || res.Spent.Requests != 3 {
			t.Errorf("%d calls, spent %+v", f.calls, res.Spent)
		}
	})
}
