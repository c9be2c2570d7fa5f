package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// withoutTimes is a result as it must be whether or not its run was interrupted.
func withoutTimes(t failer, r *Result) string {
	t.Helper()
	c := *r
	c.Started, c.Ended, c.Resumed = time.Time{}, time.Time{}, 0
	c.Protocols = slices.Clone(c.Protocols)
	for i := range c.Protocols {
		c.Protocols[i].Seconds = 0
	}
	b, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// interruptible is a campaign of two protocols with a leak in it: every ninth
// prompt is answered with words of the one before, with bytes that are no UTF-8
// beside them.
func interruptible(f *fakeTarget, n, length int, refuse bool) Config {
	base := f.answer
	f.answer = func(ctx context.Context, call int, prompt string) *wire.Answer {
		if base != nil {
			if a := base(ctx, call, prompt); a != nil {
				return a
			}
		}
		words := strings.Fields(prompt)
		a := served("you said " + strings.Join(words[len(words)-4:], " ") + "\xff")
		if strings.HasSuffix(words[len(words)/2], "a") {
			a = served(strings.Join(words[len(words)/2:], " "))
		}
		a.Header = map[string][]string{"X-Said": {words[0]}}
		a.Usage = &wire.Usage{Prompt: len(prompt) + 7, Completion: 9}
		if refuse && len(prompt) > length {
			return refused(wire.RefusedContext, 400, "too long")
		}
		return a
	}
	again := 0
	repeat := fillerSend(0)
	repeat.Again, repeat.Pad = &again, 3
	first := &script{batches: [][]probe.Send{sends(n, length), {repeat}, sends(1, 2*length), sends(n, length+50)}}
	second := &script{batches: [][]probe.Send{sends(1, length), sends(n, 3*length/2)}}
	echo := oracle.Oracle{Name: "echo", Judge: func(_ context.Context, c oracle.Case) (j oracle.Judgement) {
		for _, e := range c.Exchanges {
			if e.Echoes(2) || strings.Contains(string(c.RawBytes(&e)), "\xff") && e.Answer.Header.Get("X-Said") == "" {
				j.Findings = append(j.Findings, oracle.Finding{Kind: oracle.Truncation, Protocol: e.Protocol, Exchange: e.Seq, Tenant: e.Tenant, Explain: e.Answer.Text(wire.Content)})
			}
		}
		return j
	}}
	cfg := config(f, first.protocol("smoke"), second.protocol("boundary"))
	cfg.Oracles = append(cfg.Oracles, echo)
	return cfg
}

// stop is a run and the moment at which it is stopped.
type stop struct {
	n, length, concurrency  int
	counts, refuse, byWords bool
	killed                  bool // or else interrupted
	budget                  Budget
	at                      float64 // how far it is, from 0 to 1
}

var stops = rapid.Custom(func(t *rapid.T) stop {
	return stop{
		n: rapid.IntRange(1, 4).Draw(t, "batch"), length: rapid.IntRange(300, 900).Draw(t, "length"),
		concurrency: rapid.IntRange(1, 4).Draw(t, "concurrency"),
		counts:      rapid.Bool().Draw(t, "tokenizer"), refuse: rapid.Bool().Draw(t, "refuses"), byWords: rapid.Bool().Draw(t, "tokens are words"),
		killed: rapid.Bool().Draw(t, "killed"),
		budget: Budget{Tokens: rapid.SampledFrom([]int{0, 20000}).Draw(t, "tokens"), Requests: rapid.SampledFrom([]int{0, 9}).Draw(t, "requests")},
		at:     rapid.Float64Range(0, 0.999).Draw(t, "at"),
	}
})

// A run that is killed or stopped at any moment and goes on comes to what it
// would have come to, and sends nothing twice that was answered.
func TestResumedRunsComeToTheSame(t *testing.T) {
	for i := range 24 {
		s := stops.Example(i)
		t.Run(fmt.Sprintf("%+v", s), func(t *testing.T) { stopAndGoOn(t, s) })
	}
}

func stopAndGoOn(t *testing.T, s stop) {
	root := t.TempDir()
	campaign := func(f *fakeTarget, dir string) Config {
		if f.counts = s.counts; s.byWords {
			f.tokenize = wordTokens
		}
		cfg := interruptible(f, s.n, s.length, s.refuse)
		cfg.Concurrency, cfg.Budget, cfg.OutDir = s.concurrency, s.budget, filepath.Join(root, dir)
		return cfg
	}
	whole := &fakeTarget{}
	want := mustRun(t, campaign(whole, "whole"))

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	before := &fakeTarget{answer: func(ctx context.Context, call int, _ string) *wire.Answer {
		if call == int(s.at*float64(whole.calls)) {
			if err := os.CopyFS(filepath.Join(root, "killed"), os.DirFS(filepath.Join(root, "stopped"))); err != nil {
				t.Error(err)
			}
			cancel()
		}
		if ctx.Err() != nil {
			return failed(wire.FailedCanceled, "stopped")
		}
		return nil
	}}
	stopped, err := Run(ctx, campaign(before, "stopped"))
	if err != nil || !stopped.Resumable {
		t.Fatalf("stopped run: %+v, %v", stopped, err)
	}
	dir := filepath.Join(root, map[bool]string{true: "killed", false: "stopped"}[s.killed])
	plan, err := Unfinished(dir)
	if err != nil || plan == nil || plan.Seed != 7 {
		t.Fatalf("unfinished: %+v, %v", plan, err)
	}
	l, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	done := 0
	for i := range l.kept {
		if l.kept[i].ended() {
			done++
		}
	}
	after := &fakeTarget{}
	cfg := campaign(after, filepath.Base(dir))
	cfg.Resume = true
	got := mustRun(t, cfg)
	if a, b := withoutTimes(t, got), withoutTimes(t, want); a != b {
		t.Errorf("the resumed run came to\n%s\nthe whole one to\n%s", a, b)
	}
	if got.Resumed != done || after.calls != whole.calls-done {
		t.Errorf("%d of %d exchanges were done, %d taken over, %d made", done, whole.calls, got.Resumed, after.calls)
	}
	l, err = Load(dir)
	if err != nil || len(l.Exchanges) != whole.calls || l.Result == nil {
		t.Errorf("%d exchanges in the directory, %v", len(l.Exchanges), err)
	}
	if _, err := Unfinished(dir); !errors.Is(err, ErrConfig) {
		t.Errorf("the run has ended, yet %v", err)
	}
}

// interrupted makes a run that was stopped at its third exchange.
func interrupted(t *testing.T) Config {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg := interruptible(&fakeTarget{answer: func(_ context.Context, call int, _ string) *wire.Answer {
		if call >= 2 {
			cancel()
			return failed(wire.FailedCanceled, "stopped")
		}
		return nil
	}}, 2, 400, false)
	cfg.OutDir, cfg.Concurrency = filepath.Join(t.TempDir(), "run"), 1
	if _, err := Run(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	next := interruptible(&fakeTarget{}, 2, 400, false)
	next.OutDir, next.Resume = cfg.OutDir, true
	return next
}

func TestAnotherPlanDoesNotGoOn(t *testing.T) {
	cfg := interrupted(t)
	plan, err := os.ReadFile(filepath.Join(cfg.OutDir, planFile))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(*Config)
		says  string
	}{
		"target":    {func(c *Config) { c.Target.BaseURL = "http://127.0.0.1:2/v1" }, "base URL http://127.0.0.1:1/v1, this one has http://127.0.0.1:2/v1"},
		"model":     {func(c *Config) { c.Target.Model = "other" }, "model fake, this one has other"},
		"seed":      {func(c *Config) { c.Seed = 8 }, "seed 7, this one has 8"},
		"key":       {func(c *Config) { c.Key[0]++ }, "made with canary key"},
		"protocols": {func(c *Config) { c.Protocols = c.Protocols[:1] }, "protocols smoke, boundary, this one has smoke"},
		"tenants":   {func(c *Config) { c.Tenants = []Tenant{{Name: "b"}} }, "tenants a, this one has b"},
		"budget":    {func(c *Config) { c.Budget.Tokens = 5 }, "token budget 0, this one has 5"},
		"facts":     {func(c *Config) { c.Facts.Pool = 5 }, "made with facts"},
		"version":   {func(c *Config) { c.Version = "next" }, "version test, this one has next"},
		"prompts": {func(c *Config) {
			c.Protocols[0] = (&script{batches: [][]probe.Send{sends(2, 500)}}).protocol("smoke")
		}, "exchange 0 of the interrupted run is not the one that this run makes, sent_bytes differs"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeTarget{}
			next := cfg
			next.Protocols, next.Client = slices.Clone(cfg.Protocols), f
			c.spoil(&next)
			res, err := Run(t.Context(), next)
			if res != nil || !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.says) || f.calls > 0 {
				t.Errorf("result %v after %d calls, error %v", res, f.calls, err)
			}
			if now, _ := os.ReadFile(filepath.Join(cfg.OutDir, planFile)); string(now) != string(plan) {
				t.Error("the plan on disk has changed")
			}
		})
	}
	cfg.Budget.Time, cfg.Concurrency = time.Hour, 3 // these may differ
	if res := mustRun(t, cfg); res.Resumed != 2 || res.Resumable {
		t.Errorf("%d taken over, resumable %v", res.Resumed, res.Resumable)
	}
}

func TestDirectoriesThatCannotGoOn(t *testing.T) {
	dir := t.TempDir()
	if plan, err := Unfinished(filepath.Join(dir, "none")); plan != nil || err != nil {
		t.Errorf("no directory: %v, %v", plan, err)
	}
	if plan, err := Unfinished(dir); plan != nil || err != nil {
		t.Errorf("empty directory: %v, %v", plan, err)
	}
	if _, err := MakeDir(dir); err != nil { // and killed behind that
		t.Fatal(err)
	}
	if plan, err := Unfinished(dir); plan != nil || err != nil {
		t.Errorf("directory without a plan: %v, %v", plan, err)
	}
	blank := config(&fakeTarget{}, one().protocol("smoke"))
	blank.OutDir = dir
	mustRun(t, blank)
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "letter"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Unfinished(dir); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "holds no run") {
		t.Errorf("somebody's directory: %v", err)
	}
	cfg := interrupted(t)
	name := filepath.Join(cfg.OutDir, heardFile(1))
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if res, err := Run(t.Context(), cfg); res != nil || err == nil || !strings.Contains(err.Error(), "what exchange 1 was answered") {
		t.Errorf("an answer that is gone: %v, %v", res, err)
	}
}

// Two runs never go on in one directory.
func TestDirectoryInUse(t *testing.T) {
	cfg := interrupted(t)
	d, _, err := reopen(cfg.OutDir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), cfg); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "another run is under way") {
		t.Errorf("error %v", err)
	}
	d.close()
	mustRun(t, cfg)
}

// Every protocol makes the same exchanges again when it goes on in another
// sitting, those that hang up and those that measure times as well.
func TestEveryProtocolGoesOn(t *testing.T) {
	limited := &server{prefill: 20 * time.Millisecond, limit: 6000, over: "refuse", tokenizer: true, usage: true}
	var calls, stopAt atomic.Int64
	var stop atomic.Pointer[context.CancelFunc]
	cfg := real(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "completions") && calls.Add(1) == stopAt.Load() {
			(*stop.Load())()
		}
		limited.ServeHTTP(w, r)
	}))
	for n := range 7 {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stop.Store(&cancel)
		stopAt.Store(calls.Load() + 12 + 11*int64(n))
		cfg.Resume = n > 0
		res, err := Run(ctx, cfg)
		if err != nil {
			t.Fatalf("sitting %d: %v", n, err)
		}
		if !res.Resumable {
			t.Fatalf("sitting %d has ended: %s (%s), %d exchanges", n, res.Verdict, res.Reason, res.Spent.Exchanges)
		}
	}
	res := mustRun(t, cfg)
	if res.Resumable || len(res.Protocols) != len(cfg.Protocols) || len(res.Findings) > 0 {
		t.Errorf("%d of %d protocols, resumable %v, findings %+v", len(res.Protocols), len(cfg.Protocols), res.Resumable, res.Findings)
	}
	for _, p := range res.Protocols {
		if p.Verdict != Clean {
			t.Errorf("%s: %s (%s)", p.Name, p.Verdict, p.Reason)
		}
	}
	l, err := Load(cfg.OutDir)
	if err != nil || len(l.Exchanges) != res.Spent.Exchanges {
		t.Errorf("%d exchanges kept of %d, %v", len(l.Exchanges), res.Spent.Exchanges, err)
	}
}
