package lab

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// tiny has the small engine's proportions at a quarter of its size.
func tiny() Config {
	return Config{Context: 4096, PrefillPool: 2656, DecodePool: 5120, PageSize: 16}
}

// overlong is the length of a prompt that prefill refuses and decode would take.
func overlong(cfg Config) int { return cfg.Context * 3 / 4 }

// longestPiece is the longest piece of text that occurs in one of others, with
// the special tokens that no client can send taken as separators.
func longestPiece(text string, others []string) string {
	best := ""
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r < 4 }) {
		for from := range part {
			for _, o := range others {
				for len(part)-from > len(best) && strings.Contains(o, part[from:from+len(best)+1]) {
					best = part[from : from+len(best)+1]
				}
			}
		}
	}
	return best
}

// incident serves other tenants' prompts until the decode pool has been used
// up once, then one that is too long, and reports what came of that.
func incident(t *testing.T, cfg Config, seed uint64) (got result, own string, others []string) {
	e := startPipe(t, cfg)
	rng := rand.New(rand.NewPCG(seed, 10))
	for range 11 {
		text := words(rng, cfg.DecodePool/10)
		others = append(others, text)
		if got := serve(t, e, Request{Tokens: chat(text), MaxTokens: 4}); got.err != nil {
			t.Fatal(got.err)
		}
	}
	own = words(rng, overlong(cfg)-2)
	got = serve(t, e, Request{Tokens: chat(own), MaxTokens: 48})
	idle(t, e)
	return got, own, others
}

func TestIncidentServesSomebodyElsesText(t *testing.T) {
	for _, c := range []struct {
		engine       Config
		policy, mode string
		usage        int
	}{
		{tiny(), "lifo", "", 1}, {tiny(), "fifo", "", 1},
		{tiny(), "sort", ":decode_usage", overlong(tiny())}, {Small(), "sort", ":prefill_usage", 1},
	} {
		cfg := c.engine
		cfg.Policy, cfg.Faults = c.policy, []string{"stale_reserve" + c.mode}
		got, own, others := incident(t, cfg, 1)
		if got.err != nil {
			t.Fatalf("%+v: %+v", c, got.err)
		}
		if got.done.PromptTokens != c.usage {
			t.Errorf("%+v: usage says %d tokens", c, got.done.PromptTokens)
		}
		if piece := longestPiece(got.text, others); len(piece) < 24 || strings.Contains(own, piece) {
			t.Errorf("%+v: only %q of the answer %q is somebody else's", c, piece, got.text)
		}
	}
}

func TestRetireRefuses(t *testing.T) {
	cfg := tiny()
	cfg.Faults, cfg.Defences = []string{"stale_reserve"}, []string{"retire"}
	got, _, _ := incident(t, cfg, 1)
	if got.err == nil || got.err.Status != 400 || !strings.Contains(got.err.Message, "Input length (3072 tokens) exceeds the maximum allowed length (2650 tokens)") || got.text != "" {
		t.Errorf("got %q, %+v", got.text, got.err)
	}
}

func TestZeroOnAllocShowsNobodysText(t *testing.T) {
	cfg := tiny()
	cfg.Faults, cfg.Defences = []string{"stale_reserve"}, []string{"zero_on_alloc"}
	got, _, others := incident(t, cfg, 1)
	if piece := longestPiece(got.text, others); got.err != nil || len(piece) > 6 {
		t.Errorf("got %q, %+v, of which %q is somebody else's", got.text, got.err, piece)
	}
}

// The control: the same traffic with a prompt that fits, and with an engine
// without the fault.
func TestNothingLeaksWithoutTheFault(t *testing.T) {
	cfg := tiny()
	if got, _, _ := incident(t, cfg, 1); got.err == nil || got.err.Status != 400 {
		t.Errorf("got %q, %+v", got.text, got.err)
	}
	cfg.PrefillPool = cfg.DecodePool
	got, _, others := incident(t, cfg, 1)
	if piece := longestPiece(got.text, others); got.err != nil || got.done.PromptTokens != overlong(cfg) || len(piece) > 6 {
		t.Errorf("got %q, %+v, of which %q is somebody else's", got.text, got.err, piece)
	}
}

// Full scale, the incident's own numbers: 681,280 of 1,048,576 tokens.
func TestFullScaleIncident(t *testing.T) {
	if !*sweep {
		// The small one has the same proportions and runs above; this checks
		// that the numbers themselves are taken.
		if err := Full().Validate(); err != nil {
			t.Fatal(err)
		}
		return
	}
	cfg := Full()
	cfg.Faults = []string{"stale_reserve"}
	e := startPipe(t, cfg)
	rng := rand.New(rand.NewPCG(1, 11))
	var others []string
	for range 30 {
		others = append(others, words(rng, 45_000))
		if got := serve(t, e, Request{Tokens: chat(others[len(others)-1]), MaxTokens: 2}); got.err != nil {
			t.Fatal(got.err)
		}
	}
	got := serve(t, e, Request{Tokens: chat(words(rng, 700_000)), MaxTokens: 40})
	piece := longestPiece(got.text, others)
	t.Logf("answer %q, usage %+v", got.text, got.done)
	if got.err != nil || len(piece) < 20 {
		t.Errorf("got %q, %+v", got.text, got.err)
	}
}
