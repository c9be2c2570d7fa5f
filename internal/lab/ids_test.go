package lab

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
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

// second sends a request twice, the first time for a long answer, and returns
// what comes of the second one. The first is given up after that.
func second(t *testing.T, e *Engine, r Request) result {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	long := r
	long.MaxTokens = 3500
	first := e.Submit(ctx, long)
	<-first
	got := serve(t, e, r)
	cancel()
	collect(first)
	idle(t, e)
	return got
}

func TestIDInUse(t *testing.T) {
	cfg := tiny()
	cfg.Faults = []string{"id_reuse"}
	e := startPipe(t, cfg)
	rng := rand.New(rand.NewPCG(1, 42))
	eventually(t, "a request refused because its name is taken", func() bool {
		got := second(t, e, Request{Name: "x", Tokens: babble(rng), MaxTokens: 2})
		return got.err != nil && *got.err == *idInUse
	})
	if got := serve(t, e, Request{Name: "y", Tokens: babble(rng), MaxTokens: 2}); got.err != nil {
		t.Errorf("another name: got %+v", got.err)
	}
	if got := serve(t, e, Request{Tokens: babble(rng), MaxTokens: 2}); got.err != nil {
		t.Errorf("no name: got %+v", got.err)
	}
}

// With duplicates refused nobody waits for a name, and what is late for one that
// has been given up finds the next all the same.
func TestLiveIDsAreRefused(t *testing.T) {
	cfg := tiny()
	cfg.Faults, cfg.Defences, cfg.TimeLimit = []string{"id_reuse"}, []string{"live_ids"}, 20*time.Second
	e := startProcesses(t, cfg)
	rng := rand.New(rand.NewPCG(1, 46))
	eventually(t, "a second of a name that is refused without waiting", func() bool {
		ctx, cancel := context.WithCancel(t.Context())
		first := e.Submit(ctx, Request{Name: "x", Tokens: babble(rng), MaxTokens: 3500})
		<-first
		second := e.Submit(t.Context(), Request{Name: "x", Tokens: babble(rng), MaxTokens: 2})
		ended := len(second) == 1
		got := collect(second)
		cancel()
		collect(first)
		return ended && got.err != nil && *got.err == *idInUse
	})
	within(t, 2*time.Minute, "an answer that is somebody else's", func() bool {
		got, value := again(t, e, rng)
		return got.text != "" && !strings.HasPrefix(value, strings.TrimSpace(got.text))
	})
}

// A trace is what several requests have in common, on purpose.
func TestTracesAsIDs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 44))
	start := func(defences ...string) *Engine {
		cfg := tiny()
		cfg.Faults, cfg.Defences = []string{"id_reuse:trace_id"}, defences
		return startPipe(t, cfg)
	}
	e := start()
	eventually(t, "a request refused because its trace is taken", func() bool {
		got := second(t, e, Request{Trace: "t", Tokens: babble(rng), MaxTokens: 2})
		return got.err != nil && *got.err == *idInUse
	})
	for range 3 {
		if got := second(t, e, Request{Name: "x", Tokens: babble(rng), MaxTokens: 2}); got.err != nil {
			t.Errorf("one of no trace gets %+v", got.err)
		}
	}
	e = start("unique_ids")
	for range 3 {
		if got := second(t, e, Request{Trace: "t", Tokens: babble(rng), MaxTokens: 2}); got.err != nil {
			t.Errorf("with unique ids: %+v", got.err)
		}
	}
}

// Two requests of one second: what is the first one's goes to the second.
func TestClockAsID(t *testing.T) {
	for _, c := range []struct {
		faults, defences []string
		apart            time.Duration
		mixes            bool
	}{
		{nil, nil, 0, false}, {[]string{"id_reuse:coarse_clock"}, nil, 0, true},
		{[]string{"id_reuse:coarse_clock"}, nil, time.Second, false}, {[]string{"id_reuse:coarse_clock"}, []string{"unique_ids"}, 0, false},
	} {
		var ticks atomic.Int64
		cfg := tiny()
		cfg.Faults, cfg.Defences = c.faults, c.defences
		cfg.Now = func() time.Time { return time.Unix(1000, 0).Add(c.apart * time.Duration(ticks.Add(1))) }
		e := startPipe(t, cfg)
		rng := rand.New(rand.NewPCG(1, 45))
		a, b := words(rng, 23), words(rng, 23)
		first := e.Submit(t.Context(), Request{Tokens: chat(strings.Repeat(a, 10)), MaxTokens: 60})
		second := e.Submit(t.Context(), Request{Tokens: chat(strings.Repeat(b, 10)), MaxTokens: 200})
		gotB, gotA := collect(second), collect(first)
		if mixed := len(foreign(gotB.text, b, []string{a, b})) > 5 || gotA.err != nil; mixed != c.mixes {
			t.Errorf("%v %v, %v apart: the first gets %q, %+v, the second %q", c.faults, c.defences, c.apart, gotA.text, gotA.err, gotB.text)
		}
		idle(t, e)
		if n := len(e.desk.calls) + len(e.desk.ids) + len(e.desk.lost); n > 0 {
			t.Errorf("%d are left at the desk", n)
		}
	}
}

// The door refuses what one of the nodes would refuse, in the same words.
func TestAdmission(t *testing.T) {
	refusal := func(c Config, tokens, answer int) Error {
		e := startPipe(t, c)
		got := serve(t, e, Request{Tokens: make([]byte, tokens), MaxTokens: answer})
		if got.err == nil {
			return Error{}
		}
		return *got.err
	}
	for _, c := range []struct{ prefill, decode, tokens, answer int }{
		{2656, 5120, 2650, 1}, {2656, 5120, 2649, 1}, {5120, 2656, 2650, 1}, {2656, 5120, 4096, 1}, {2656, 5120, 5000, 1},
		{2656, 5120, 3000, 2000},
	} {
		cfg := Config{Context: 4096, PrefillPool: c.prefill, DecodePool: c.decode, PageSize: 16}
		door := refusal(cfg, c.tokens, c.answer)
		cfg.Faults = []string{"id_reuse"} // has nothing to do with it
		if nodes := refusal(cfg, c.tokens, c.answer); door != nodes {
			t.Errorf("%+v: the door says %+v, the nodes %+v", c, door, nodes)
		}
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
