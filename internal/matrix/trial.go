package matrix

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"sync/atomic"
	"time"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/lab"
	"github.com/kvcanary/kvcanary/internal/lab/api"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// outcome is what one trial came to.
type outcome struct {
	found, leak bool
	unsure      bool
	requests    int // up to the first finding, else all
	tokens      int // prompt tokens sent with them
}

// answerTokens is long enough for some twenty words, a token a byte.
const answerTokens = 160

// trial starts an engine, lets other customers use it, and runs one campaign.
// The campaign sends one exchange at a time, so that a trial depends on its
// seed alone.
func trial(ctx context.Context, cfg lab.Config, fault string, p Probe, seed uint64) (outcome, error) {
	cfg.Workers = 1
	if fault != NoFault {
		cfg.Faults = []string{fault}
	}
	engine, err := lab.StartPipe(cfg)
	if err != nil {
		return outcome{}, err
	}
	defer engine.Close()
	server, err := serve(engine)
	if err != nil {
		return outcome{}, err
	}
	defer server.Close(ctx)

	others := newTraffic(engine, seed)
	if err := others.fill(ctx, cfg.DecodePool); err != nil {
		return outcome{}, err
	}
	client, err := wire.NewClient(wire.Options{BaseURL: server.URL})
	if err != nil {
		return outcome{}, err
	}
	var made []wire.Exchange
	result, err := campaign.Run(ctx, campaign.Config{
		Target:      campaign.Target{BaseURL: server.URL, Model: lab.ModelName, Dialect: "openai"},
		Tenants:     []campaign.Tenant{{Name: "a"}, {Name: "b"}},
		Protocols:   []probe.Protocol{p.Protocol},
		Oracles:     p.Oracles,
		Facts:       campaign.Facts{Context: cfg.Context, Pool: cfg.PrefillPool, PageSize: cfg.PageSize, Pairs: p.Pairs, MaxAnswer: answerTokens},
		Concurrency: 1,
		Seed:        seed,
		Key:         sha256.Sum256(binary.BigEndian.AppendUint64([]byte("kvcanary matrix "), seed)),
		Client:      busy{client, others},
		Observe:     func(e wire.Exchange, _ []wire.Message) { made = append(made, e) },
	})
	if err != nil {
		return outcome{}, err
	}
	if others.err != nil {
		return outcome{}, others.err
	}
	return judge(result, made), nil
}

func serve(engine *lab.Engine) (*api.Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	var id atomic.Int64
	return api.Serve(l, api.NewHandler(api.Options{
		Backend: engine, Model: lab.ModelName, Now: time.Now,
		NewID: func() string { return fmt.Sprint(id.Add(1)) },
	}), log.New(io.Discard, "", 0)), nil
}

func judge(r *campaign.Result, made []wire.Exchange) outcome {
	o := outcome{unsure: r.Verdict == campaign.Inconclusive}
	last := len(made) - 1
	for _, f := range r.Findings {
		o.found = true
		o.leak = o.leak || f.Kind == oracle.Leak || f.Kind == oracle.Misroute
		last = min(last, f.Exchange)
	}
	for i := range made {
		if made[i].Seq <= last {
			o.requests++
			o.tokens += made[i].SentTokens
		}
	}
	return o
}

// busy is a client whose target serves others between any two exchanges.
type busy struct {
	*wire.Client
	others *traffic
}

func (b busy) Do(ctx context.Context, r wire.Request) *wire.Answer {
	b.others.some(ctx)
	return b.Client.Do(ctx, r)
}

var errRefused = errors.New("another customer's request failed")
