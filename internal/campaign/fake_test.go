package campaign

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// fakeTarget is a Client without a network: a tokenizer, a limit and an answer.
type fakeTarget struct {
	tokenize func(messages []string) int // nil takes a token for each byte
	counts   bool                        // has a tokenizer that can be asked
	noUsage  bool
	limit    int // longest prompt that is served, tokens; 0 for none
	// answer overrides what is answered; nil from it takes the usual answer.
	answer func(ctx context.Context, call int, prompt string) *wire.Answer

	mu     sync.Mutex
	calls  int
	asked  int // questions to the tokenizer
	tokens int // prompt tokens received
	texts  []string
}

func (f *fakeTarget) size(messages []wire.Message) (int, string) {
	texts := make([]string, len(messages))
	for i, m := range messages {
		b, err := io.ReadAll(m.Text.Open())
		if err != nil || int64(len(b)) != m.Text.Size() {
			panic(fmt.Sprintf("prompt text: %d bytes where %d were promised, %v", len(b), m.Text.Size(), err))
		}
		texts[i] = string(b)
	}
	if f.tokenize != nil {
		return f.tokenize(texts), strings.Join(texts, "\n")
	}
	return byteTokens(texts), strings.Join(texts, "\n")
}

func (f *fakeTarget) CountTokens(_ context.Context, _, _ string, messages []wire.Message) (int, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.counts {
		return 0, false, nil
	}
	f.asked++
	n, _ := f.size(messages)
	return n, true, nil
}

func (f *fakeTarget) Do(ctx context.Context, r wire.Request) *wire.Answer {
	n, prompt := f.size(r.Messages)
	f.mu.Lock()
	call := f.calls
	f.calls++
	f.tokens += n
	f.texts = append(f.texts, prompt)
	f.mu.Unlock()
	if ctx.Err() != nil {
		return &wire.Answer{Failure: &wire.Failure{Kind: wire.FailedCanceled, Message: "stopped"}}
	}
	if f.answer != nil {
		if a := f.answer(ctx, call, prompt); a != nil {
			return a
		}
	}
	if f.limit > 0 && n > f.limit {
		return refused(wire.RefusedContext, 400, "too long")
	}
	a := served("noted")
	if !f.noUsage {
		a.Usage = &wire.Usage{Prompt: n, Completion: 5}
	}
	return a
}

func served(text string) *wire.Answer {
	now := time.Now()
	return &wire.Answer{
		Status: 200, Finish: "stop", Start: now, End: now,
		Pieces: []wire.Piece{{Channel: wire.Content, Text: text}},
		Raw:    wire.Blob{Bytes: []byte(text), Size: int64(len(text))},
	}
}

func refused(kind wire.RefusalKind, status int, message string) *wire.Answer {
	return &wire.Answer{Status: status, Refusal: &wire.Refusal{Kind: kind, Status: status, Message: message}}
}

func failed(kind wire.FailureKind, message string) *wire.Answer {
	return &wire.Answer{Failure: &wire.Failure{Kind: kind, Message: message}}
}

// byteTokens takes a token for each byte and three for the frame of a message.
func byteTokens(texts []string) int {
	n := 1
	for _, t := range texts {
		n += len(t) + 3
	}
	return n
}

// wordTokens is a tokenizer of learned pieces: up to five letters make a
// token, a longer word two, and every run of other bytes but spaces one.
func wordTokens(texts []string) int {
	n := 5
	for _, t := range texts {
		n += 4
		for _, w := range strings.Fields(t) {
			n += 1 + len(w)/6
		}
	}
	return n
}

// script is a protocol that sends fixed batches.
type script struct {
	batches [][]probe.Send
	missing string
	found   probe.Found

	env   probe.Env
	next  int
	seen  [][]wire.Exchange
	after func(n int) // called before batch n is handed out
}

func (s *script) Next(done []wire.Exchange) []probe.Send {
	if done != nil {
		s.seen = append(s.seen, done)
	}
	if s.next == len(s.batches) {
		return nil
	}
	if s.after != nil {
		s.after(s.next)
	}
	s.next++
	return s.batches[s.next-1]
}

func (s *script) Missing() string {
	if s.next < len(s.batches) {
		return "not all batches were sent"
	}
	return s.missing
}

func (s *script) Found() probe.Found { return s.found }

func (s *script) protocol(name string) probe.Protocol {
	return probe.Protocol{Name: name, Does: "sends what the test says", Start: func(e probe.Env) probe.Plan {
		s.env = e
		return s
	}}
}

// fillerSend is a prompt of canary text of that many tokens.
func fillerSend(tokens int) probe.Send {
	return probe.Send{
		Purpose: wire.Plant, Tokens: tokens, Asked: -1, MaxTokens: 16, Temperature: 0,
		Turns: []probe.Turn{
			{Role: "user", Parts: []probe.Part{
				{Kind: probe.Literal, Text: "Start code: "}, {Kind: probe.Nonce, N: 0},
				{Kind: probe.Literal, Text: "\nRef: "}, {Kind: probe.Filler, N: 2},
			}},
			{Role: "assistant", Parts: []probe.Part{{Kind: probe.Filler, N: 1}}},
			{Role: "user", Parts: []probe.Part{
				{Kind: probe.Literal, Text: "Ref: "}, {Kind: probe.Filler, N: 3}, {Kind: probe.Filler, N: 1},
				{Kind: probe.Literal, Text: "\n"}, {Kind: probe.Token},
				{Kind: probe.Literal, Text: "\nEnd code: "}, {Kind: probe.Nonce, N: 2},
				{Kind: probe.Literal, Text: "\nSay the end code."},
			}},
		},
	}
}

func sends(n, tokens int) []probe.Send {
	out := make([]probe.Send, n)
	for i := range out {
		out[i] = fillerSend(tokens)
	}
	return out
}

// scan is the smallest oracle that finds a leak by canary.
func scan() oracle.Oracle {
	return oracle.Oracle{Name: "scan", Judge: func(_ context.Context, c oracle.Case) (j oracle.Judgement) {
		for _, e := range c.Exchanges {
			var b strings.Builder
			for _, p := range e.Answer.Pieces {
				b.WriteString(p.Text + "\n")
			}
			b.Write(c.RawBytes(&e))
			for _, h := range c.Coder.Scan([]byte(b.String())) {
				for _, ctl := range c.Controls {
					if h.ID == ctl {
						j.ControlHits++
					}
				}
				if h.ID == canary.ID(e.ID) || h.ID.Run() != c.Run || h.ID.Seq() >= len(c.All) {
					continue
				}
				from := h.ID.Seq()
				j.Findings = append(j.Findings, oracle.Finding{
					Kind: oracle.Leak, Protocol: e.Protocol, Exchange: e.Seq, Tenant: e.Tenant,
					FromExchange: &from, FromTenant: c.All[from].Tenant, Channel: wire.Content,
					Explain: "the answer carries another exchange's canary",
				})
			}
		}
		return j
	}}
}

func testKey() (k canary.Key) {
	copy(k[:], "a key that only tests ever know.")
	return k
}

// config is a campaign of scripts against a fake.
func config(f *fakeTarget, protocols ...probe.Protocol) Config {
	return Config{
		Target:    Target{BaseURL: "http://127.0.0.1:1/v1", Model: "fake", Dialect: "openai"},
		Tenants:   []Tenant{{Name: "a"}},
		Protocols: protocols,
		Oracles:   []oracle.Oracle{scan()},
		Seed:      7,
		Key:       testKey(),
		Version:   "test",
		Client:    f,
	}
}

// failer is a test or a property.
type failer interface {
	Helper()
	Fatal(args ...any)
}

func mustRun(t failer, cfg Config) *Result {
	t.Helper()
	res, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return res
}
