package admit

import (
	"context"
	"errors"
	"time"
)

// Gate decides for one upstream: it brings limit, size and policy together.
type Gate struct {
	Limiter *Limiter
	Counter *Counter // nil: nothing is counted
	Policy  Policy
	Now     func() time.Time
}

// Decide judges a prompt by its bytes. A verdict of [Count] asks for
// [Gate.Count] with the whole body.
func (g *Gate) Decide(model string, b Body) Decision {
	s := Bound(b, g.Policy)
	if g.Counter == nil {
		s.Tried, s.Final = true, true
		s.Why = either(s.Why, "nothing is counted here: send less, or have the guard count")
	}
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

func (g *Gate) decide(model string, s Size) Decision {
	return Decide(g.Limiter.Limit(model), g.Now(), g.Policy, s)
}
