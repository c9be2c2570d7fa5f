package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/kvcanary/kvcanary/internal/guard"
	"github.com/kvcanary/kvcanary/internal/guard/admit"
)

// askTime is what asking all upstreams may take.
const askTime = 15 * time.Second

// Asked is what an upstream holds.
type Asked struct {
	Upstream string
	Limit    admit.Limit
}

// Ask has the upstreams of a setup say how much they hold, once.
func Ask(ctx context.Context, s *Setup, now func() time.Time) ([]Asked, error) {
	o := s.Options
	o.Now, o.Log = now, slog.New(slog.DiscardHandler)
	g, err := guard.New(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	g.Measure(ctx)
	defer g.Drain(ctx)
	var out []Asked
	for _, u := range s.Config.Upstreams {
		out = append(out, Asked{u.Name, g.Limit(u.Name)})
	}
	return out, nil
}
