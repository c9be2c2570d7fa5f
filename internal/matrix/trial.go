package matrix

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/diagnose"
	"github.com/kvcanary/kvcanary/internal/lab"
	"github.com/kvcanary/kvcanary/internal/lab/api"
	"github.com/kvcanary/kvcanary/internal/lab/gateway"
	"github.com/kvcanary/kvcanary/internal/lab/model"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// outcome is what one trial came to.
type outcome struct {
	kinds    []oracle.Kind // of its findings, each once, in order
	signs    diagnose.Signs
	unsure   bool
	failed   int // requests that ended with an error of the engine's
	requests int // up to the first finding, else all
	tokens   int // prompt tokens sent with them
}

func (o *outcome) leak() bool {
	return slices.Contains(o.kinds, oracle.Leak) || slices.Contains(o.kinds, oracle.Misroute)
}

const (
	// answerTokens is long enough for some twenty words, a token a byte.
	answerTokens = 160
	// longest is how long a trial may take. None comes near it.
	longest = 5 * time.Minute
)

// trial starts an engine, lets other customers use it, and runs one campaign.
// With one exchange at a time a trial depends on its seed alone.
func trial(ctx context.Context, cfg lab.Config, look innocent, p Probe, seed uint64) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	nodes, err := lab.StartPipe(cfg)
	if err != nil {
		return outcome{}, err
	}
	engine := gateway.Over(nodes)
	defer engine.Close()
	server, err := serve(engine, look, seed)
	if err != nil {
		return outcome{}, err
	}
	defer server.Close(ctx)

	others := &traffic{backend: engine, seed: seed}
	defer others.end()
	others.fill(ctx, cfg.DecodePool, atOnce(cfg, p))
	client, err := wire.NewClient(wire.Options{BaseURL: server.URL})
	if err != nil {
		return outcome{}, err
	}
	defer client.Close()
	var made []wire.Exchange
	c := campaignOf(cfg, p, seed)
	c.Target.BaseURL, c.Client = server.URL, busy{client, others, p.Timed}
	if look.client != nil {
		c.Client = look.client(c.Client)
	}
	c.Observe = func(e wire.Exchange, _ []wire.Message) { made = append(made, e) }
	result, err := campaign.Run(ctx, c)
	if err != nil {
		return outcome{}, err
	}
	if err := others.refused(); err != nil {
		return outcome{}, err
	}
	if err := ctx.Err(); err != nil {
		return outcome{}, err
	}
	out := judge(result, made)
	out.failed += int(others.failed.Load())
	return out, nil
}

// atOnce is how many of the others fill the pool at the same time: one where
// the trial has to be the same every time.
func atOnce(cfg lab.Config, p Probe) int {
	if !p.Timed && !cfg.OneSided {
		return 1
	}
	return 8
}

// campaignOf is the campaign of a trial that lacks only its client.
func campaignOf(cfg lab.Config, p Probe, seed uint64) campaign.Config {
	c := campaign.Config{
		Target:      campaign.Target{Model: lab.ModelName, Dialect: "openai"},
		Protocols:   []probe.Protocol{p.Protocol},
		Oracles:     p.Oracles,
		Facts:       campaign.Facts{Context: cfg.Context, Pool: cfg.PrefillPool, PageSize: cfg.PageSize, Pairs: p.Pairs, MaxAnswer: answerTokens, Adapters: model.Adapters()},
		Concurrency: p.Concurrency,
		Seed:        seed,
		Key:         sha256.Sum256(binary.BigEndian.AppendUint64([]byte("kvcanary matrix "), seed)),
	}
	for key, tenant := range keys() {
		c.Tenants = append(c.Tenants, campaign.Tenant{Name: tenant, Key: key})
	}
	slices.SortFunc(c.Tenants, func(a, b campaign.Tenant) int { return int(a.Name[0]) - int(b.Name[0]) })
	return c
}

// keys are the tenants of every trial by their keys.
func keys() map[string]string { return map[string]string{"key of a": "a", "key of b": "b"} }

// serve has an engine listen, disguised.
func serve(engine lab.Backend, look innocent, seed uint64) (*api.Server, error) {
	r := rand.New(rand.NewPCG(seed, 0x696e6e6f63656e74))
	if look.backend != nil {
		engine = look.backend(engine, r)
	}
	var id, sampled atomic.Uint64
	h := api.NewHandler(api.Options{
		Backend: engine, Model: lab.ModelName, Keys: keys(), Now: time.Now,
		NewID:   func() string { return fmt.Sprint(id.Add(1)) },
		NewSeed: func() uint64 { return seed<<20 + sampled.Add(1) },
	})
	if look.handler != nil {
		h = look.handler(h, r)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return api.Serve(l, h, log.New(io.Discard, "", 0)), nil
}

func judge(r *campaign.Result, made []wire.Exchange) outcome {
	o := outcome{unsure: r.Verdict == campaign.Inconclusive}
	slices.SortFunc(made, func(a, b wire.Exchange) int { return a.Seq - b.Seq })
	o.signs = diagnose.SignsOf(r.Findings, made)
	last := 0
	if len(made) > 0 {
		last = made[len(made)-1].Seq
	}
	for _, f := range r.Findings {
		if !slices.Contains(o.kinds, f.Kind) {
			o.kinds = append(o.kinds, f.Kind)
		}
		last = min(last, f.Exchange)
	}
	slices.Sort(o.kinds)
	for i := range made {
		o.failed += count(failed(&made[i]))
		if made[i].Seq <= last {
			o.requests++
			o.tokens += made[i].SentTokens
		}
	}
	return o
}

// failed says that an exchange ended with an error of the engine's.
func failed(e *wire.Exchange) bool {
	a := e.Answer
	switch {
	case a == nil || e.Left:
		return false
	case a.Failure != nil:
		return true
	}
	return a.Refusal != nil && a.Refusal.Kind == wire.RefusedServer
}

// busy is a client whose target serves others between any two exchanges, or
// beside them.
type busy struct {
	*wire.Client
	others *traffic
	beside bool
}

func (b busy) Do(ctx context.Context, r wire.Request) *wire.Answer {
	if b.beside {
		b.others.start(ctx)
	} else {
		b.others.some(ctx)
	}
	return b.Client.Do(ctx, r)
}

var errRefused = errors.New("another customer's request was refused")
