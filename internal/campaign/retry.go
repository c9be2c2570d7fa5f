package campaign

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/kvcanary/kvcanary/internal/wire"
)

const (
	maxAttempts = 6               // of an exchange that the target asks to slow down for
	firstPause  = time.Second     // before the second attempt; doubled each time
	longestWait = 2 * time.Minute // of a single pause, whatever the target asks for
)

// attempts makes an exchange, again where that is sound: where the target asks
// for patience, in which case nothing was served, and once after a connection
// that broke before any byte of the answer, which is what an idle connection
// closed by the other side looks like. The exchange stays the same one, with
// the same id. It returns nil if ctx ended before anything was sent.
func (r *runner) attempts(ctx context.Context, p *pending) *wire.Answer {
	q := r.request(p)
	random := rand.New(rand.NewPCG(r.cfg.Seed, uint64(p.exchange.Seq)))
	if !r.holds.wait(ctx, p.send.Tenant, random) {
		return nil
	}
	for attempt := 1; ; attempt++ {
		a := r.do(ctx, &p.exchange, q)
		p.requests += 1 + a.Resent
		a.Resent = p.requests - 1
		pause, again := retry(a, attempt, random)
		if !again {
			return a
		}
		worst := 0
		if a.Refusal == nil { // the prompt may have been read before the connection broke
			worst = r.fit.worst(p.prompt)
		} else {
			r.holds.set(p.send.Tenant, a.Refusal.RetryAfter)
		}
		if !r.budget.again(worst) {
			return a
		}
		if !sleep(ctx, pause) || !r.holds.wait(ctx, p.send.Tenant, random) {
			r.budget.unused(worst)
			return a
		}
		if worst > 0 {
			p.reserved += worst
			p.lost += p.exchange.SentTokens
		}
		discard(a)
	}
}

// request is an exchange as the client sends it.
func (r *runner) request(p *pending) wire.Request {
	s := &p.send
	q := wire.Request{
		Model: r.cfg.Target.Model, Key: r.cfg.Tenants[s.Tenant].Key, Messages: p.prompt.messages,
		MaxTokens: s.MaxTokens, Temperature: s.Temperature, Stream: s.Stream,
		RequestID: s.RequestID, TraceID: s.TraceID, Hangup: s.Hangup, Pace: s.Pace,
		Resend: func() bool { return r.budget.again(0) },
	}
	if s.Adapter != "" {
		q.Model += ":" + s.Adapter
	}
	return q
}

// retry says whether an exchange should be sent again, and after how long. A
// server that is not available and names a time (RFC 9110 15.6.4) asks for
// patience as a rate limit does.
func retry(a *wire.Answer, attempt int, random *rand.Rand) (pause time.Duration, again bool) {
	if a.Failure != nil {
		reset := a.Failure.Kind == wire.FailedCut && a.Status == 0 && a.Raw.Size == 0
		return 0, reset && attempt == 1
	}
	r := a.Refusal
	if r == nil || attempt >= maxAttempts {
		return 0, false
	}
	if r.Kind != wire.RefusedRate && !(r.Kind == wire.RefusedServer && r.Status == 503 && r.RetryAfter > 0) {
		return 0, false
	}
	if r.RetryAfter > 0 {
		return r.RetryAfter + jitter(r.RetryAfter, random), r.RetryAfter <= longestWait
	}
	pause = min(firstPause<<(attempt-1), longestWait)
	return pause/2 + time.Duration(random.Int64N(int64(pause))), true
}

// jitter is up to a tenth of a pause: exchanges that were all told the same
// time must not come back at once.
func jitter(pause time.Duration, random *rand.Rand) time.Duration {
	return time.Duration(random.Int64N(int64(pause/10) + 1))
}

// holds keeps the requests of a tenant back for as long as the target has
// asked any of them to wait. Safe for concurrent use.
type holds struct {
	mu    sync.Mutex
	until map[int]time.Time // by tenant; never of a wall clock alone, which may be set
}

// set keeps the requests of a tenant back for a pause that the target asked
// for, if it is one that is waited for at all.
func (h *holds) set(tenant int, pause time.Duration) {
	if pause <= 0 || pause > longestWait {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.until == nil {
		h.until = map[int]time.Time{}
	}
	if end := time.Now().Add(pause); end.After(h.until[tenant]) {
		h.until[tenant] = end
	}
}

// wait returns when a request of the tenant may go out, or false if ctx ended
// before.
func (h *holds) wait(ctx context.Context, tenant int, random *rand.Rand) bool {
	for {
		h.mu.Lock()
		left := time.Until(h.until[tenant])
		h.mu.Unlock()
		if left <= 0 {
			return ctx.Err() == nil
		}
		if !sleep(ctx, left+jitter(left, random)) {
			return false
		}
	}
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

// mostSilent is how many requests in a row may get not one byte before a target
// is taken to answer nobody any more. Each of them has been waited for as long as
// a prompt of a million tokens takes.
const mostSilent = 3

// silence says that the target answers nobody any more, "" if it may. What was
// given up on purpose says nothing either way.
func (r *runner) silence(a *wire.Answer) string {
	switch f := a.Failure; {
	case f == nil || a.Raw.Size > 0:
		r.silent = 0
	case f.Kind == wire.FailedTimeout:
		r.silent++
	}
	if r.silent < mostSilent {
		return ""
	}
	return fmt.Sprintf("the target no longer answers, %d requests in a row got not one byte: see whether it still answers anybody; it may have to be started again", r.silent)
}
