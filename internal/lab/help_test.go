package lab

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/model"
	"github.com/kvcanary/kvcanary/internal/lab/node"
)

// sweep widens the tests from what shows the point to what is claimed.
var sweep = flag.Bool("sweep", false, "run the long sweeps")

// roomy serves all prompts up to 16k.
var roomy = Config{Context: 17_000, PrefillPool: 20_480, DecodePool: 40_960, PageSize: 16}

func startPipe(t testing.TB, cfg Config) *Engine {
	t.Helper()
	e, err := StartPipe(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e
}

// result is all of an answer.
type result struct {
	text string
	done *Done
	err  *Error
}

func collect(events <-chan Event) (r result) {
	var text []byte
	for e := range events {
		if r.done != nil || r.err != nil {
			panic("an event after the last one")
		}
		if e.Done == nil && e.Error == nil {
			text = append(text, e.Token)
		}
		r.done, r.err = e.Done, e.Error
	}
	r.text = string(text)
	return r
}

func serve(t testing.TB, b Backend, r Request) result {
	t.Helper()
	got := collect(b.Submit(t.Context(), r))
	if (got.done == nil) == (got.err == nil) {
		t.Fatalf("want one of Done and Error, got %v and %v", got.done, got.err)
	}
	return got
}

func chat(text string) []byte {
	return model.Template(nil, []model.Message{{Role: model.RoleUser, Text: text}})
}

// words is n bytes of words that nobody else uses.
func words(rng *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		for range 4 + rng.IntN(5) {
			b.WriteByte(byte('a' + rng.IntN(26)))
		}
		b.WriteByte(' ')
	}
	return b.String()[:n]
}

const key = "Internal ref for this session:"

// recall is a prompt of about n tokens that asks for a value stated at its
// start, middle or end.
func recall(rng *rand.Rand, n int) (prompt []byte, value string) {
	value = fmt.Sprintf("%s-%06d", strings.ToUpper(words(rng, 4)), rng.IntN(1e6))
	filler := words(rng, max(n-2*len(key)-len(value)-5, 0))
	cut := []int{0, len(filler) / 2, len(filler)}[rng.IntN(3)]
	return chat(filler[:cut] + "\n" + key + " " + value + "\n" + filler[cut:] + "\n" + key), value
}

// babble is a prompt whose answer goes on for as long as it may.
func babble(rng *rand.Rand) []byte { return chat(strings.Repeat(words(rng, 23), 10)) }

// direct is the answer of the model by itself, without an engine.
func direct(m *model.Model, tokens []byte, maxNew int, s node.Sampling) string {
	c := model.NewCache(1, len(tokens)+maxNew)
	table := model.Table{0}
	var out []byte
	next := tokens
	for pos := 0; len(out) < maxNew; {
		m.Write(c, table, pos, next)
		pos += len(next)
		logits := m.Logits(c, table, pos-1, next[len(next)-1], 1)
		token := s.Choose(&logits, len(out))
		if token == model.EndOfTurn {
			break
		}
		out = append(out, token)
		next = []byte{token}
	}
	return string(out)
}

// eventually waits for something that another goroutine or process brings about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	within(t, time.Minute, what, ok)
}

func within(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func idle(t testing.TB, e *Engine) {
	t.Helper()
	eventually(t, "all pages free", func() bool {
		s := e.State()
		return s.PrefillUsed == 0 && s.DecodeUsed == 0 && s.Running == 0 && s.Waiting == 0
	})
}
