package campaign

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// ErrRemade means that a run's prompts are not those that its plan and key make.
var ErrRemade = errors.New("the prompts are not those that were recorded")

// Remake makes the prompts of a run again from its plan and key, sends none of
// them, and compares each with what was recorded of it: its length, its nonces
// and the digest of what was sent. It returns how many agree.
func Remake(ctx context.Context, dir string, key canary.Key) (int, error) {
	l, err := Load(dir)
	if err != nil {
		return 0, err
	}
	if id := key.ID(); id != l.Plan.KeyID {
		return 0, fmt.Errorf("%w: the run was made with key %s, and this is %s: give --key-file", ErrConfig, l.Plan.KeyID, id)
	}
	n, err := l.remake(ctx, key, false)
	if errors.Is(err, ErrRemade) && slices.Contains(l.Plan.Protocols, "smoke") {
		// The published script's way of smoke goes by the same name.
		if again, err := l.remake(ctx, key, true); err == nil {
			return again, nil
		}
	}
	return n, err
}

func (l *Loaded) remake(ctx context.Context, key canary.Key, classic bool) (int, error) {
	p := l.Plan
	cfg := Config{
		Target: p.Target, Facts: p.Facts, Budget: Budget{Tokens: p.Budget.Tokens, Requests: p.Budget.Requests}, Before: Before{Tokens: p.Before.Tokens, Requests: p.Before.Requests},
		Pairs: p.Facts.Pairs, Concurrency: p.Concurrency, Seed: p.Seed, Key: key, Version: p.Version,
	}
	for _, name := range p.Tenants {
		cfg.Tenants = append(cfg.Tenants, Tenant{Name: name})
	}
	for _, name := range p.Protocols {
		i := slices.IndexFunc(probe.All(), func(x probe.Protocol) bool { return x.Name == name })
		if i < 0 {
			return 0, fmt.Errorf("this version has no protocol %s: use the one that made the run, %s", name, p.Version)
		}
		x := probe.All()[i]
		if classic && name == "smoke" {
			x = probe.Classic()
		}
		cfg.Protocols = append(cfg.Protocols, x)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cfg.Client = nobody{cancel}
	cfg, err := cfg.complete()
	if err != nil {
		return 0, err
	}
	r := newRunner(cfg)
	r.past = &past{dir: l.Path, plan: p, done: map[int]*kept{}}
	for i := range l.kept {
		if k := &l.kept[i]; k.ended() {
			r.past.done[k.Seq] = k
		}
	}
	r.run(ctx)
	if r.broken != nil {
		return r.result.Resumed, fmt.Errorf("%w: %w", ErrRemade, r.broken)
	}
	if left := len(r.past.done) - r.result.Resumed; left > 0 {
		made := slices.Sorted(maps.Keys(r.past.done))
		return r.result.Resumed, fmt.Errorf("%w: %d of %d exchanges, up to %d, are none that the plan makes", ErrRemade, left, len(made), made[len(made)-1])
	}
	return r.result.Resumed, nil
}

// nobody is a target that must not be asked: what a run would go on with ends it.
type nobody struct{ stop func() }

func (n nobody) Do(context.Context, wire.Request) *wire.Answer {
	n.stop()
	return &wire.Answer{Failure: &wire.Failure{Kind: wire.FailedCanceled, Message: "this is sent to nobody"}}
}

func (nobody) CountTokens(context.Context, string, string, []wire.Message) (int, bool, error) {
	return 0, false, nil
}

// digest is the SHA-256 of a prompt: of each message its role, its pictures and
// its text, each behind its length.
func digest(messages []wire.Message) string {
	h := sha256.New()
	for _, m := range messages {
		fmt.Fprintf(h, "%d %s %d ", len(m.Role), m.Role, len(m.Images))
		for _, image := range m.Images {
			fmt.Fprintf(h, "%d ", len(image))
			h.Write(image)
		}
		if m.Text == nil {
			continue
		}
		fmt.Fprintf(h, "%d ", m.Text.Size())
		// What cannot be read here cannot be sent either, and fails there.
		io.Copy(h, m.Text.Open())
	}
	return hex.EncodeToString(h.Sum(nil))
}
