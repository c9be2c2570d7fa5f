// Package synthetic is a tenant of the guard's own: it sends an engine small
// prompts that are all canary, now and then, so that a watch which only listens
// has something to find. If an engine mixes requests up, the pages of these
// prompts are among those that come out, and a canary in a customer's answer is
// proof, where a customer's words would be a suspicion.
package synthetic

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"time"

	"github.com/kvcanary/kvcanary/canary"
)

// Tenant is the number of the synthetic tenant in the ids of its canaries.
const Tenant = canary.MaxTenant

// Plan is what is planted, and how often. All fields must be set.
type Plan struct {
	Coder *canary.Coder
	Run   int           // of the ids; another one for every start, so that no id comes twice
	Model string        // that is asked
	Words int           // of the longest prompt
	Every time.Duration // between two prompts, on average
	// TokensPerDay bounds what they cost, prompts and answers together.
	TokensPerDay int
}

// Plant is one prompt.
type Plant struct {
	ID   canary.ID
	Body []byte // of a request to chat/completions
	// Tokens is what it is taken to cost before the engine says what it did:
	// two a word, since a word of the list is one or two tokens, and the template.
	Tokens int
}

// lengths are the parts of Words that prompts have, in turn: so the pages that
// are left behind are not always the same ones of a pool.
var lengths = []float64{1, 0.25, 0.5, 0.75}

// Nth is the nth prompt, from 0 on. The same plan has the same prompts.
func (p Plan) Nth(n int) Plant {
	const perRun = canary.MaxSeq + 1
	id := canary.MakeID((p.Run+n/perRun)%(canary.MaxRun+1), Tenant, n%perRun)
	words := max(2*canary.MinWords, int(float64(p.Words)*lengths[n%len(lengths)]))
	text, err := io.ReadAll(p.Coder.Words(id, 0, min(words, canary.MaxWords)))
	if err != nil {
		panic("kvcanary: internal error: canary words cannot be read: " + err.Error())
	}
	body, err := json.Marshal(map[string]any{
		"model": p.Model, "max_tokens": 1, "temperature": 0,
		"messages": []map[string]string{{"role": "user", "content": string(text)}},
	})
	if err != nil {
		panic("kvcanary: internal error: canary words are no JSON: " + err.Error())
	}
	return Plant{ID: id, Body: body, Tokens: 2*words + 64}
}

// wait is how long to wait before a prompt, after so many failures in a row:
// up to half more or less than planned, so that it meets no rhythm of the
// engine's, and longer for an engine that is in trouble. random is in [0, 1).
func (p Plan) wait(random float64, failures int) time.Duration {
	d := float64(p.Every) * (0.5 + random)
	return time.Duration(min(d*math.Exp2(float64(min(failures, 6))), float64(math.MaxInt64/2)))
}

// budget is what may be spent: it grows evenly over the day, up to an hour's
// worth, or one prompt's if that is more.
type budget struct {
	perDay float64
	most   float64
	have   float64
	at     time.Time
}

func (b *budget) grow(now time.Time) {
	if passed := now.Sub(b.at); passed > 0 {
		b.have = min(b.most, b.have+b.perDay*passed.Hours()/24)
	}
	b.at = now
}

// enough reports whether n tokens may be spent. A debt, of a prompt that cost
// more than it was taken for, is worked off first.
func (b *budget) enough(n int) bool { return b.have >= float64(n) }

// Edges are what touches the world.
type Edges struct {
	// Send sends a prompt as the guard's own tenant, past admission and watch
	// like any other, and returns the tokens that it cost; 0 if the engine did
	// not say.
	Send   func(context.Context, Plant) (tokens int, err error)
	Now    func() time.Time
	Random func() float64 // in [0, 1)
	Log    *slog.Logger
}

// Keep plants until ctx ends.
func (p Plan) Keep(ctx context.Context, e Edges) {
	hour := float64(p.TokensPerDay) / 24
	most := max(hour, float64(p.Nth(0).Tokens))
	b := budget{perDay: float64(p.TokensPerDay), most: most, have: most, at: e.Now()}
	failures, poor := 0, false
	for n := 0; ; {
		timer := time.NewTimer(p.wait(e.Random(), failures))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		plant := p.Nth(n)
		b.grow(e.Now())
		if !b.enough(plant.Tokens) {
			if !poor {
				e.Log.Info("the synthetic tenant waits for its budget", "tokens_per_day", p.TokensPerDay)
			}
			poor = true
			continue
		}
		poor = false
		n++ // an id is never sent twice, whatever became of it
		cost, err := e.Send(ctx, plant)
		if cost <= 0 {
			cost = plant.Tokens
		}
		b.have -= float64(cost)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if failures++; failures == 1 {
				e.Log.Warn("the synthetic tenant could not plant", "why", err.Error())
			}
		default:
			failures = 0
		}
	}
}
