package campaign

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kvcanary/kvcanary/internal/wire"
)

const (
	maxAttempts = 6               // of an exchange that the target asks to slow down for
	firstPause  = time.Second     // before the second attempt; doubled each time
	longestWait = 2 * time.Minute // of a single pause, whatever the target asks for
)

// attempts makes an exchange, again where that is sound: after a rate limit,
// in which case nothing was served, and once after a connection that broke
// before any byte of the answer, which is what an idle connection closed by
// the other side looks like. The exchange stays the same one, with the same id.
func (r *runner) attempts(ctx context.Context, p *pending) *wire.Answer {
	q := wire.Request{
		Model: r.cfg.Target.Model, Key: r.cfg.Tenants[p.send.Tenant].Key, Messages: p.prompt.messages,
		MaxTokens: p.send.MaxTokens, Temperature: p.send.Temperature, Stream: p.send.Stream,
		RequestID: p.send.RequestID, TraceID: p.send.TraceID, Hangup: p.send.Hangup, Pace: p.send.Pace,
	}
	if p.send.Adapter != "" {
		q.Model += ":" + p.send.Adapter
	}
	// The pauses of an exchange do not depend on what others do meanwhile.
	random := rand.New(rand.NewPCG(r.cfg.Seed, uint64(p.exchange.Seq)))
	for attempt := 1; ; attempt++ {
		a := r.do(ctx, &p.exchange, q)
		p.requests++
		pause, again := retry(a, attempt, random)
		if !again || !r.budget.again() {
			return a
		}
		if !sleep(ctx, pause) {
			r.budget.unused()
			return a
		}
		discard(a)
	}
}

// retry says whether an exchange should be sent again, and after how long.
func retry(a *wire.Answer, attempt int, random *rand.Rand) (pause time.Duration, again bool) {
	if a.Failure != nil {
		reset := a.Failure.Kind == wire.FailedCut && a.Status == 0 && a.Raw.Size == 0
		return 0, reset && attempt == 1
	}
	if a.Refusal == nil || a.Refusal.Kind != wire.RefusedRate || attempt >= maxAttempts {
		return 0, false
	}
	if asked := a.Refusal.RetryAfter; asked > 0 {
		// Exchanges that were all told the same time must not come back at once.
		return asked + time.Duration(random.Int64N(int64(asked/10)+1)), asked <= longestWait
	}
	pause = min(firstPause<<(attempt-1), longestWait)
	return pause/2 + time.Duration(random.Int64N(int64(pause))), true
}

// sleep waits, and reports false if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// ended says why an answer leaves a protocol nothing more to do, "" if it does not.
func ended(a *wire.Answer) string {
	if f := a.Failure; f != nil && (f.Kind == wire.FailedConnect || f.Kind == wire.FailedTLS) {
		return "the target is gone: " + f.Message
	}
	if f := a.Refusal; f != nil {
		switch f.Kind {
		case wire.RefusedRate:
			if f.RetryAfter > longestWait {
				return fmt.Sprintf("the target wants %v between requests: run with less concurrency or later", f.RetryAfter)
			}
			return "the target keeps refusing for its rate limit: run with less concurrency or later"
		case wire.RefusedQuota:
			return fmt.Sprintf("quota or balance used up (HTTP %d): %s", f.Status, f.Message)
		case wire.RefusedAuth:
			return fmt.Sprintf("the target no longer lets this tenant in (HTTP %d): %s", f.Status, f.Message)
		case wire.RefusedModel:
			return fmt.Sprintf("the target no longer has the model or path (HTTP %d): %s", f.Status, f.Message)
		}
	}
	return ""
}
