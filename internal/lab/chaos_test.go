package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// busy is an engine with little memory for many clients, whose pages hold whole
// sentences and go from hand to hand.
func busy(faults ...string) Config {
	return Config{
		Context: 2048, PrefillPool: 32768, DecodePool: 32768, PageSize: 64, Policy: "lifo", Workers: 1,
		OneSided: true, Lag: 100 * time.Millisecond, TimeLimit: 10 * time.Second, Faults: faults,
	}
}

// crowd is many clients at once, of which some go away in the middle.
type crowd struct {
	engine *Engine
	values sync.Map // every value that some prompt holds

	opened, served, failed, left atomic.Int64
	leaks                        atomic.Int64 // answers with somebody else's value
	wrong                        atomic.Int64 // answers that are neither their own value nor somebody else's

	mu      sync.Mutex
	example string
}

// client asks for its own value again and again until ctx ends. Those who will
// go away have theirs on every page, so that a page of theirs is found wherever
// it lies.
func (c *crowd) client(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		c.opened.Add(1)
		n := 150 + rng.IntN(200)
		prompt, value := recall(rng, n)
		c.values.Store(value, true)
		if rng.IntN(10) < 3 {
			again := "\n" + key[len(key)-len("session:"):] + " " + value // as short as the model needs it
			prompt = chat(strings.Repeat(again, n/len(again)) + "\n" + key)
			c.leave(prompt, time.Duration(rng.Int64N(2*int64(c.engine.setup.Lag))))
			continue
		}
		got := collect(c.engine.Submit(context.Background(), Request{Tokens: prompt, MaxTokens: 24}))
		c.judge(got, value)
	}
}

// leave sends a prompt and goes away some time later.
func (c *crowd) leave(prompt []byte, after time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), after)
	defer cancel()
	collect(c.engine.Submit(ctx, Request{Tokens: prompt, MaxTokens: 24}))
	c.left.Add(1)
}

func (c *crowd) judge(got result, value string) {
	text := strings.TrimSpace(got.text)
	switch {
	case got.err == nil && text == value:
		c.served.Add(1)
		return
	case got.err != nil && strings.HasPrefix(value, text):
		c.failed.Add(1)
		time.Sleep(time.Millisecond) // while a node is dead there is nothing to wait for
		return
	}
	foreign := false
	c.values.Range(func(v, _ any) bool {
		foreign = v != value && strings.Contains(text, v.(string)[:8])
		return !foreign
	})
	if foreign {
		c.leaks.Add(1)
	} else {
		c.wrong.Add(1)
	}
	c.mu.Lock()
	c.example = fmt.Sprintf("%q in place of %q, %+v", text, value, got.err)
	c.mu.Unlock()
}

func (c *crowd) String() string {
	return fmt.Sprintf("%d opened: %d served, %d ended with an error, %d left; %d leaks, %d wrong (%s)",
		c.opened.Load(), c.served.Load(), c.failed.Load(), c.left.Load(), c.leaks.Load(), c.wrong.Load(), c.example)
}

// gather lets so many clients at an engine until enough says so, and waits for
// all of them. It fails if that takes longer than limit.
func (c *crowd) gather(t *testing.T, clients int, limit time.Duration, enough func(c *crowd) bool) *crowd {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { c.client(ctx, rand.New(rand.NewPCG(uint64(i), 31))) })
	}
	defer func() { cancel(); wg.Wait(); t.Log(c) }()
	within(t, limit, "enough has happened", func() bool { return enough(c) })
	return c
}

// kills kills a node now and then, or both, and counts. Between two times some
// requests are served, on a machine of any speed.
func (c *crowd) kills(ctx context.Context, every time.Duration, n *atomic.Int64) {
	rng := rand.New(rand.NewPCG(1, 32))
	roles := []string{"prefill", "decode"}
	for served := int64(0); ctx.Err() == nil; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
		if c.served.Load() < served+5 {
			continue
		}
		served = c.served.Load()
		rng.Shuffle(2, func(i, j int) { roles[i], roles[j] = roles[j], roles[i] })
		pids := c.engine.Pids()
		for _, role := range roles[:1+rng.IntN(4)/3] {
			if syscall.Kill(pids[role], syscall.SIGKILL) == nil {
				n.Add(1)
			}
		}
	}
}

// Clients that go away, nodes that are killed: nobody gets anything of anybody
// else's, everybody gets an answer or an error, and no page is lost.
func TestChaos(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	clients, every, deaths := 8, 200*time.Millisecond, int64(6)
	lasting := time.Duration(0)
	if *sweep {
		clients, every, deaths, lasting = 64, 2*time.Second, 100, 5*time.Minute
	}
	cfg := busy()
	cfg.Restart, cfg.TimeLimit = true, 20*time.Second // of patience, on a machine that is busy
	if !*sweep {                                      // it would take gigabytes
		cfg.Trace = filepath.Join(t.TempDir(), "trace")
	}
	e := startProcesses(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	var dead atomic.Int64
	c, killer := &crowd{engine: e}, make(chan struct{})
	go func() { defer close(killer); c.kills(ctx, every, &dead) }()
	until := time.Now().Add(lasting)
	c.gather(t, clients, lasting+2*time.Minute, func(c *crowd) bool {
		return dead.Load() >= deaths && c.served.Load() > 40 && time.Now().After(until)
	})
	cancel()
	<-killer
	if c.leaks.Load()+c.wrong.Load() > 0 || c.failed.Load() == 0 || c.left.Load() == 0 {
		t.Errorf("%v, with %d kills", c, dead.Load())
	}
	eventually(t, "nodes that know each other", func() bool {
		pids := e.Pids()
		return alive(pids["prefill"]) && alive(pids["decode"]) && e.State().Broken == ""
	})
	idle(t, e)
	prompt, value := recall(rand.New(rand.NewPCG(1, 33)), 900)
	if got := serve(t, e, Request{Tokens: prompt, MaxTokens: 24}); strings.TrimSpace(got.text) != value {
		t.Errorf("afterwards: got %+v, want %q", got, value)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	nothingLeft(t, dir)
	if cfg.Trace != "" {
		replay(t, cfg.Trace)
	}
}

// leaks has the crowd at an engine with a fault until somebody is told what is
// another's; the long form with all the clients and kills of TestChaos.
func leaks(t *testing.T, fault string) {
	t.Helper()
	cfg, clients := busy(fault), 8
	if cfg.Restart = *sweep; *sweep {
		clients = 64
	}
	e := startProcesses(t, cfg)
	c, killer := &crowd{engine: e}, make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	var dead atomic.Int64
	go func() {
		defer close(killer)
		if *sweep {
			c.kills(ctx, 2*time.Second, &dead)
		}
	}()
	c.gather(t, clients, 2*time.Minute, func(c *crowd) bool {
		return c.leaks.Load() > 0 && (!*sweep || dead.Load() > 2)
	})
	cancel()
	<-killer
	t.Logf("%s: %d kills", fault, dead.Load())
	e.Close()
}

// The same crowd finds each fault: the test can fail. With a defence that stops
// it, it finds nothing foreign; one that only looks at a page's owner between two
// steps refuses some of what is foreign, and misses a page that has changed hands
// within one.
func TestChaosFindsFaults(t *testing.T) {
	for _, c := range []struct {
		fault, notices string
		stops          []string
	}{
		{"late_write", "", []string{"quiesce", "tags"}}, {"stale_source", "", []string{"generations"}}, {"double_owner", "owner_audit", []string{"tags"}},
	} {
		leaks(t, c.fault)
		for _, defence := range append(c.stops, strings.Fields(c.notices)...) {
			cfg := busy(c.fault)
			cfg.Defences = []string{defence}
			e := startProcesses(t, cfg)
			got := (&crowd{engine: e}).gather(t, 8, 2*time.Minute, func(crowd *crowd) bool {
				return crowd.left.Load() > 20 && (defence != c.notices || crowd.failed.Load() > 0)
			})
			if defence != c.notices && got.leaks.Load()+got.wrong.Load() > 0 {
				t.Errorf("%s with %s: %v", c.fault, defence, got)
			}
			if err := e.Close(); err != nil {
				t.Errorf("%s with %s: %v", c.fault, defence, err)
			}
		}
	}
}
