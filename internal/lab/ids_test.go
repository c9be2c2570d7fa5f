package lab

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// again sends two requests of one name, the second as soon as the first has
// been given up in the middle of its answer, and returns what the second gets.
func again(t *testing.T, e *Engine, rng *rand.Rand) (got result, value string) {
	ctx, cancel := context.WithCancel(t.Context())
	first := e.Submit(ctx, Request{Name: "x", Tokens: babble(rng), MaxTokens: 400})
	for range rng.IntN(6) + 1 {
		if ev, open := <-first; !open || ev.Error != nil {
			break
		}
	}
	cancel()
	prompt, value := recall(rng, 200)
	for {
		got = collect(e.Submit(t.Context(), Request{Name: "x", Tokens: prompt, MaxTokens: 24}))
		if got.err == nil || got.err.Message != idInUse.Message {
			return got, value
		}
	}
}

// Where a client's id is all that a request is known by, what is late for one
// finds the next of the same name. Where requests are numbered, it finds nobody.
func TestReusedIDs(t *testing.T) {
	start := func(faults ...string) *Engine {
		cfg := tiny()
		cfg.Faults, cfg.TimeLimit = faults, time.Second
		return startProcesses(t, cfg)
	}
	rng := rand.New(rand.NewPCG(1, 41))
	e, leaked := start("id_reuse"), false
	within(t, 2*time.Minute, "an answer that is somebody else's", func() bool {
		got, value := again(t, e, rng)
		leaked = got.text != "" && !strings.HasPrefix(value, strings.TrimSpace(got.text))
		return leaked
	})
	e = start()
	for range 40 {
		if got, value := again(t, e, rng); got.err != nil || strings.TrimSpace(got.text) != value {
			t.Errorf("got %q, %+v, want %q", got.text, got.err, value)
		}
	}
}

func TestIDInUse(t *testing.T) {
	cfg := tiny()
	cfg.Faults = []string{"id_reuse"}
	e := startPipe(t, cfg)
	rng := rand.New(rand.NewPCG(1, 42))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := e.Submit(ctx, Request{Name: "x", Tokens: babble(rng), MaxTokens: 2000})
	<-first
	if got := serve(t, e, Request{Name: "x", Tokens: babble(rng), MaxTokens: 2}); got.err == nil || got.err.Status != 400 {
		t.Errorf("got %+v", got)
	}
	if got := serve(t, e, Request{Name: "y", Tokens: babble(rng), MaxTokens: 2}); got.err != nil {
		t.Errorf("another name: got %+v", got.err)
	}
	if got := serve(t, e, Request{Tokens: babble(rng), MaxTokens: 2}); got.err != nil {
		t.Errorf("no name: got %+v", got.err)
	}
}

func TestTimeLimit(t *testing.T) {
	cfg := tiny()
	cfg.TimeLimit = time.Millisecond
	e := startPipe(t, cfg)
	rng := rand.New(rand.NewPCG(1, 43))
	if got := serve(t, e, Request{Tokens: babble(rng), MaxTokens: 2000}); got.err == nil || got.err.Status != 504 || got.err.Type != "TimeoutError" {
		t.Errorf("got %+v", got.err)
	}
	idle(t, e)
}
