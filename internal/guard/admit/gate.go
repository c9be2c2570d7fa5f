package admit

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// Gate decides for one upstream: it brings limit, size and policy together.
type Gate struct {
	Limiter *Limiter
	Counter *Counter // nil: nothing is counted
	Policy  Policy
	Now     func() time.Time
}

// GateOptions are what a [Gate] needs. Of the numbers each has a default where
// it is 0.
type GateOptions struct {
	Upstream string // its name, for the log
	URL      string // its base URL, with or without /v1
	Engine   string // name of a row of [engine.All]; "" or "auto" finds out
	Key      string // shown when it is asked for its limits; "" for none
	// Workers are base URLs to ask for limits in place of URL, where that is a
	// balancer or a router that does not speak for all workers behind it.
	Workers []string
	Client  *http.Client
	Policy  Policy
	Given   Given
	Margin  int           // tokens kept free below every limit
	Refresh time.Duration // between two measurements, 1 min
	NoCount bool          // have nothing counted
	AtOnce  int           // counts under way at a time, 4
	Keep    int           // counts kept, 4,096
	Timeout time.Duration // of one count, or of one measurement, 30 s
	Now     func() time.Time
	Log     *slog.Logger
}

// fresh is how long a count holds.
const fresh = 10 * time.Minute

// NewGate returns a gate that has not asked yet. [Limiter.Run] of its limiter
// has to run.
func NewGate(o GateOptions) *Gate {
	if o.Engine == "auto" {
		o.Engine = ""
	}
	o.Refresh, o.Timeout = cmp.Or(o.Refresh, time.Minute), cmp.Or(o.Timeout, 30*time.Second)
	if len(o.Workers) == 0 {
		o.Workers = []string{o.URL}
	}
	lo := LimiterOptions{Upstream: o.Upstream, Given: o.Given, Margin: o.Margin, Every: o.Refresh, Timeout: o.Timeout, Now: o.Now, Log: o.Log}
	for _, url := range o.Workers {
		lo.Sources = append(lo.Sources, Source{URL: url, Key: o.Key, Engine: o.Engine, Client: o.Client})
	}
	g := &Gate{Limiter: NewLimiter(lo), Policy: o.Policy, Now: o.Now}
	if !o.NoCount {
		g.Counter = NewCounter(CounterOptions{
			URL: o.URL, Client: o.Client, Timeout: o.Timeout, AtOnce: cmp.Or(o.AtOnce, 4), Keep: cmp.Or(o.Keep, 4096), Fresh: fresh, Now: o.Now,
			Engine: func() string { return cmp.Or(o.Engine, g.Limiter.Engine()) },
		})
	}
	return g
}

// Decide judges a prompt by its bytes. A verdict of [Count] asks for
// [Gate.Count] with the whole body.
func (g *Gate) Decide(model string, b Body) Decision {
	s := Bound(b, g.Policy)
	d := g.decide(model, s)
	if d.Verdict != Count || g.Counter != nil {
		return d
	}
	s.Tried, s.Final = true, true
	s.Why = either(s.Why, "nothing is counted here: send less, or have the guard count")
	return g.decide(model, s)
}

// Count has the engine count a prompt and judges it by that. It also returns
// what is then known of its size.
func (g *Gate) Count(ctx context.Context, model string, b Body, q Question) (Decision, Size) {
	limit := g.Limiter.Limit(model)
	s := Bound(b, g.Policy)
	switch d := Decide(limit, g.Now(), g.Policy, s); {
	case d.Verdict != Count:
		return d, s
	case g.Counter == nil:
		return g.Decide(model, b), s
	}
	q.Limit, q.Opaque = limit.Tokens, b.Opaque > 0
	t, err := g.Counter.Count(ctx, q)
	if err == nil {
		// The bytes bound the prompt as well as the count does.
		counted := t.Size(b, g.Policy, limit.Tokens)
		if s.AtMost < counted.AtMost && !t.Over {
			counted.AtMost = max(s.AtMost, counted.AtLeast)
		}
		return g.decide(model, counted), counted
	}
	s.Tried, s.Why, s.Final = true, err.Error(), errors.Is(err, ErrNoCounter)
	if s.Final {
		s.Why += ", and its bytes alone do not prove that it fits: send less"
	}
	return g.decide(model, s), s
}

// Learn takes what the engine says it has read of a prompt that passed by its
// count.
func (g *Gate) Learn(counted, read int) {
	if g.Counter != nil && g.Counter.Learn(counted, read) {
		g.Limiter.o.Log.Warn("the engine reads more tokens than it counts: prompts near the limit are refused",
			"upstream", g.Limiter.o.Upstream, "counted", counted, "read", read)
	}
}

func (g *Gate) decide(model string, s Size) Decision {
	return Decide(g.Limiter.Limit(model), g.Now(), g.Policy, s)
}
