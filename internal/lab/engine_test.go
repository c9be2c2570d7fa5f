package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/model"
	"github.com/kvcanary/kvcanary/internal/lab/node"
)

func TestAnswersFromItsPrompt(t *testing.T) {
	e := startPipe(t, roomy)
	for i, n := range []int{100, 300, 1000, 4000, 16_000} {
		prompt, value := recall(rand.New(rand.NewPCG(uint64(i), 1)), n)
		got := serve(t, e, Request{Tokens: prompt, MaxTokens: 64})
		if got.err != nil || strings.TrimSpace(got.text) != value {
			t.Fatalf("%d tokens: got %q, %v, want %q", n, got.text, got.err, value)
		}
		if want := (Done{Finish: "stop", PromptTokens: len(prompt), CompletionTokens: len(got.text)}); *got.done != want {
			t.Errorf("%d tokens: got %+v, want %+v", n, *got.done, want)
		}
	}
	idle(t, e)
}

// TestRecallSweep is the claim as it stands: 200 of 200 from 100 to 64,000 tokens.
func TestRecallSweep(t *testing.T) {
	trials, lengths := 4, []int{100, 1000}
	if *sweep {
		trials, lengths = 200, []int{100, 1000, 8000, 64_000}
	}
	e := startPipe(t, Config{Context: 66_000, PrefillPool: 131_072, DecodePool: 262_144, PageSize: 64})
	for _, n := range lengths {
		good := 0
		for i := range trials {
			prompt, value := recall(rand.New(rand.NewPCG(uint64(i), uint64(n))), n)
			if got := serve(t, e, Request{Tokens: prompt, MaxTokens: 64}); strings.TrimSpace(got.text) == value {
				good++
			}
		}
		t.Logf("%d tokens: %d of %d", n, good, trials)
		if good != trials {
			t.Errorf("%d tokens: %d of %d recalled", n, good, trials)
		}
	}
}

// Sixteen at a time, hot and cold, long and short: each gets the very answer
// that the model gives when it runs alone over a cache of its own.
func TestConcurrentAnswersEqualTheModels(t *testing.T) {
	m := model.New()
	for rounds, policy := range []string{"lifo", "fifo", "sort"} {
		cfg := tiny()
		cfg.Policy = policy
		e := startPipe(t, cfg)
		var clients sync.WaitGroup
		for i := range 16 {
			clients.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(i), 2))
				for range rounds/2 + 1 {
					tokens, _ := recall(rng, 100+rng.IntN(500))
					if rng.IntN(2) == 0 {
						tokens = babble(rng)
					}
					r := Request{Tokens: tokens, MaxTokens: 1 + rng.IntN(40), Temperature: float64(rng.IntN(2)), Seed: rng.Uint64()}
					want := direct(m, r.Tokens, r.MaxTokens, node.Sampling{Temperature: r.Temperature, Seed: r.Seed})
					if got := collect(e.Submit(t.Context(), r)); got.text != want || got.err != nil {
						t.Errorf("%s: got %q, %v, want %q", policy, got.text, got.err, want)
					}
				}
			})
		}
		clients.Wait()
		idle(t, e)
	}
}

func TestSeedDecidesTheAnswer(t *testing.T) {
	e := startPipe(t, Small())
	rng := rand.New(rand.NewPCG(1, 3))
	text := chat("code one: " + words(rng, 8) + "\ncode one: " + words(rng, 8) + "\ncode one: " + words(rng, 8) + "\ncode one:")
	answers := map[string]bool{}
	for seed := range uint64(20) {
		r := Request{Tokens: text, MaxTokens: 20, Temperature: 1, Seed: seed}
		a, b := serve(t, e, r), serve(t, e, r)
		if a.text != b.text {
			t.Fatalf("seed %d answers %q and %q", seed, a.text, b.text)
		}
		answers[a.text] = true
	}
	if len(answers) < 2 {
		t.Errorf("20 seeds, one answer: %v", answers)
	}
}

func TestLimits(t *testing.T) {
	e := startPipe(t, Small())
	rng := rand.New(rand.NewPCG(1, 4))
	prompt := func(n int) []byte { return chat(words(rng, n-2)) }
	for _, c := range []struct {
		tokens, max int
		want        string
	}{
		{10_633, 5, ""},
		{10_634, 5, "Input length (10634 tokens) exceeds the maximum allowed length (10634 tokens). Use a shorter input or enable --allow-auto-truncate."},
		{16_384, 5, "The input (16384 tokens) is longer than the model's context length (16384 tokens)."},
		{16_000, 385, "Requested token count exceeds the model's maximum context length of 16384 tokens. You requested a total of 16385 tokens: 16000 tokens from the input messages and 385 tokens for the completion."},
	} {
		got := serve(t, e, Request{Tokens: prompt(c.tokens), MaxTokens: c.max})
		if c.want == "" {
			if got.err != nil {
				t.Errorf("%d tokens: %+v", c.tokens, got.err)
			}
		} else if got.err == nil || got.err.Status != 400 || got.err.Type != "BadRequestError" || !strings.HasPrefix(got.err.Message, c.want) {
			t.Errorf("%d tokens: %+v, %+v", c.tokens, got.done, got.err)
		}
	}
	if got := serve(t, e, Request{MaxTokens: 1}); got.err == nil || got.err.Status != 400 {
		t.Errorf("no prompt: %+v", got)
	}
	idle(t, e)
	s := e.State()
	if s.Context != 16_384 || s.MaxInput != 10_634 || s.PrefillPool != 10_640 || s.DecodePool != 20_480 || s.PageSize != 16 || s.Broken != "" {
		t.Errorf("state: %+v", s)
	}
}

func TestTruncatesOnlyWhenTold(t *testing.T) {
	cfg := Small()
	cfg.AutoTruncate = true
	e := startPipe(t, cfg)
	got := serve(t, e, Request{Tokens: chat(words(rand.New(rand.NewPCG(1, 5)), 12_000)), MaxTokens: 5})
	if got.err != nil || got.done.PromptTokens != 10_633 {
		t.Errorf("got %+v, %+v", got.done, got.err)
	}
	if !e.State().AutoTruncate {
		t.Error("the state does not say so")
	}
}

// Clients that go away, at any moment, leave nothing behind.
func TestDisconnectFreesPages(t *testing.T) {
	e := startPipe(t, Small())
	var clients sync.WaitGroup
	for i := range 16 {
		clients.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 6))
			for range 4 {
				ctx, cancel := context.WithCancel(t.Context())
				tokens, most := babble(rng), rng.IntN(40)
				if rng.IntN(2) == 0 {
					tokens, most = chat(words(rng, 4000)), 0
				}
				events := e.Submit(ctx, Request{Tokens: tokens, MaxTokens: 1000})
				for range most {
					<-events
				}
				cancel()
				var last Event
				for last = range events {
				}
				if last.Error == nil && last.Done == nil {
					t.Error("an answer without an end")
				}
			}
		})
	}
	clients.Wait()
	idle(t, e)
	if got := serve(t, e, Request{Tokens: chat("Reply with 'noted' only."), MaxTokens: 10}); got.text != "noted" {
		t.Errorf("afterwards: %+v", got)
	}
}

// A client that reads nothing holds nobody up.
func TestSlowClient(t *testing.T) {
	e := startPipe(t, Small())
	rng := rand.New(rand.NewPCG(1, 7))
	slow := e.Submit(t.Context(), Request{Tokens: babble(rng), MaxTokens: 300})
	for range 3 {
		prompt, value := recall(rng, 200)
		if got := serve(t, e, Request{Tokens: prompt, MaxTokens: 50}); strings.TrimSpace(got.text) != value {
			t.Errorf("got %+v", got)
		}
	}
	idle(t, e)
	if got := collect(slow); len(got.text) != 300 || got.done == nil || got.done.Finish != "length" {
		t.Errorf("got %d tokens, %+v, %+v", len(got.text), got.done, got.err)
	}
}

func TestCloseEndsRequests(t *testing.T) {
	e, err := StartPipe(Small())
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 8))
	var open []<-chan Event
	for i := range 8 {
		events := e.Submit(t.Context(), Request{Tokens: babble(rng), MaxTokens: 2000})
		if i%2 == 0 {
			<-events
		}
		open = append(open, events)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, events := range open {
		if got := collect(events); got.err == nil || got.err.Status != 503 || got.err.Message != "engine is shutting down" {
			t.Errorf("got %+v", got.err)
		}
	}
	if got := serve(t, e, Request{Tokens: babble(rng), MaxTokens: 1}); got.err == nil || got.err.Status != 503 {
		t.Errorf("after the end: %+v", got)
	}
	if err := e.Close(); err != nil || e.State().Broken == "" {
		t.Errorf("a second time: %v, %q", err, e.State().Broken)
	}
}

// A client that has not kept up hears why the engine ends, as the others do.
func TestSlowClientHearsWhatIsLost(t *testing.T) {
	e := startPipe(t, Small())
	events := e.Submit(t.Context(), Request{Tokens: babble(rand.New(rand.NewPCG(1, 9))), MaxTokens: 2000})
	eventually(t, "a queue of tokens", func() bool { return len(events) == cap(events) })
	e.gone(handoff.ToDecode)
	if got := collect(events); got.err == nil || got.err.Message != "decode node is gone" {
		t.Errorf("got %+v", got.err)
	}
	if err := e.Wait(); err == nil {
		t.Error("the engine ends as if it had been closed")
	}
	e.err = nil // Close shall not report it again
}

// What comes from a node that the router has no use for ends the engine, not the process.
func TestEngineEndsOnNonsense(t *testing.T) {
	e := startPipe(t, Small())
	e.stray(&node.Inbound{From: handoff.ToDecode, Frame: node.Frame{Event: handoff.Event{Kind: handoff.Run, Room: 1}}})
	if err := e.Wait(); err == nil || !strings.Contains(fmt.Sprint(err), "not for the router") {
		t.Errorf("got %v", err)
	}
	e.err = nil // Close shall not report it again
}

// BenchmarkEngine measures whole requests: tokens a second of the prompt until
// the first token of the answer is here, and of the rest of the answer.
func BenchmarkEngine(b *testing.B) {
	for _, size := range []struct {
		name string
		n    int
	}{{"1k", 1 << 10}, {"16k", 1 << 14}, {"256k", 1 << 18}, {"1M", 1 << 20}} {
		b.Run(size.name, func(b *testing.B) {
			pool := size.n + 1024
			e := startPipe(b, Config{Context: pool, PrefillPool: pool, DecodePool: pool, PageSize: 64})
			rng := rand.New(rand.NewPCG(1, 9))
			tokens := chat(words(rng, size.n-250) + strings.Repeat(words(rng, 23), 10))
			const answer = 33
			var first, rest time.Duration
			for b.Loop() {
				start := time.Now()
				events := e.Submit(b.Context(), Request{Tokens: tokens, MaxTokens: answer})
				<-events
				first += time.Since(start)
				start = time.Now()
				if got := collect(events); len(got.text) != answer-1 {
					b.Fatalf("got %+v", got)
				}
				rest += time.Since(start)
			}
			b.ReportMetric(float64(len(tokens)*b.N)/first.Seconds(), "prompt-tokens/s")
			b.ReportMetric(float64((answer-1)*b.N)/rest.Seconds(), "answer-tokens/s")
		})
	}
}
