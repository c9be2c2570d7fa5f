package lab

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
)

// reusing is a tiny engine with a prefix cache that holds two thousand tokens.
func reusing() Config {
	cfg := tiny()
	cfg.PrefixCache = 2048
	return cfg
}

// as is a chat of a tenant, to be answered greedily.
func as(tenant, text string) Request {
	return Request{Tenant: tenant, Tokens: chat(text), MaxTokens: 64}
}

func cached(t *testing.T, e *Engine, r Request) (tokens int, text string) {
	t.Helper()
	got := serve(t, e, r)
	if got.err != nil {
		t.Fatalf("%+v", got.err)
	}
	return got.done.CachedTokens, got.text
}

// A prompt that begins like one of the same tenant's is not computed again, and is
// answered as if it were.
func TestPrefixIsUsedAgain(t *testing.T) {
	e := startPipe(t, reusing())
	rng := rand.New(rand.NewPCG(1, 20))
	stem := words(rng, 1000)
	long := as("a", stem+" code one: sword fish\ncode one:")
	if n, text := cached(t, e, long); n != 0 || strings.TrimSpace(text) != "sword fish" {
		t.Errorf("cold: %d cached, %q", n, text)
	}
	if n, text := cached(t, e, long); n != (len(long.Tokens)-1)/16*16 || strings.TrimSpace(text) != "sword fish" {
		t.Errorf("again: %d of %d cached, %q", n, len(long.Tokens), text)
	}
	if n, text := cached(t, e, as("a", stem+" code two: red herring\ncode two:")); n != 1008-16 && n != 992 || strings.TrimSpace(text) != "red herring" {
		t.Errorf("another end: %d cached, %q", n, text)
	}
	if n, _ := cached(t, e, as("b", stem+" code two: red herring\ncode two:")); n != 0 {
		t.Errorf("another tenant: %d cached", n)
	}
	other := long
	other.Adapter = "ada"
	if n, text := cached(t, e, other); n != 0 || strings.TrimSpace(text) != "sword fish" {
		t.Errorf("another adapter: %d cached, %q", n, text)
	}
	idle(t, e)
}

// churn serves prompts of another tenant until the prefix cache, and its second
// tier, have been used up so many times.
func churn(t *testing.T, e *Engine, rng *rand.Rand, times int) (others []string) {
	t.Helper()
	s := e.State()
	for left := times * (s.PrefixCache + s.Tier); left > 0; left -= 400 {
		text := strings.Repeat("ref for this session: "+words(rng, 40)+". ", 7)[:400]
		others = append(others, text)
		cached(t, e, as("other", text))
	}
	return others
}

// abandoned is a long prompt whose client goes away while it is computed.
func abandoned(t *testing.T, e *Engine, r Request) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	events := e.Submit(ctx, r)
	eventually(t, "prefill is at it", func() bool { return e.State().PrefillUsed > 0 })
	cancel()
	for range events {
	}
	idle(t, e)
}

// brief leaves the first n cases, unless all of them are asked for.
func brief[Case any](cases []Case, n int) []Case {
	if *sweep {
		return cases
	}
	return cases[:n]
}

func TestEarlyPublishNeverWritten(t *testing.T) {
	cases := []struct {
		defences []string
		leaks    bool
	}{
		{nil, true}, {[]string{"publish_after_commit"}, false}, {[]string{"block_tags"}, false}, {[]string{"zero_on_alloc:all"}, false},
		{[]string{"block_tags:at_reserve"}, true}, {[]string{"salt"}, true}, {[]string{"full_compare"}, true}, {[]string{"zero_on_alloc"}, true},
	}
	if *sweep { // the handoff's defences say nothing about a block of the cache: a column of docs/verification.md
		for _, d := range handoffDefences {
			cases = append(cases, cases[0])
			cases[len(cases)-1].defences = []string{d}
		}
	}
	for _, c := range brief(cases, 4) {
		cfg := Config{Context: 4500, PrefillPool: 4500, DecodePool: 5120, PageSize: 16, PrefixCache: 2048, PrefillRate: 60_000}
		cfg.Faults, cfg.Defences = []string{"early_publish"}, c.defences
		e := startPipe(t, cfg)
		rng := rand.New(rand.NewPCG(3, 21))
		leaks, tries := "", 1
		if c.leaks {
			tries = 60 // an abort may come too late to be one
		}
		for range tries {
			if len(leaks) > 12 {
				break
			}
			others := churn(t, e, rng, 1)
			own := as("b", words(rng, 3000)+" ref for this session:")
			abandoned(t, e, own)
			_, text := cached(t, e, own)
			if piece := longestPiece(text, others); len(piece) > len(leaks) {
				leaks = piece
			}
		}
		if (len(leaks) > 12) != c.leaks {
			t.Errorf("%v: %q is somebody else's", c.defences, leaks)
		}
	}
}

// leave goes away after so many tokens of an answer.
func leave(t *testing.T, e *Engine, r Request, tokens int) {
	ctx, cancel := context.WithCancel(t.Context())
	events := e.Submit(ctx, r)
	for range tokens {
		<-events
	}
	cancel()
	for range events {
	}
}

// BenchmarkFirstToken is the time to the first token of a prompt that is new, and
// of one that is in the prefix cache.
func BenchmarkFirstToken(b *testing.B) {
	const size = 1 << 16
	for _, name := range []string{"new", "cached"} {
		b.Run(name, func(b *testing.B) {
			e := startPipe(b, Config{Context: 2 * size, PrefillPool: 2 * size, DecodePool: 2 * size, PageSize: 64, PrefixCache: 2 * size})
			rng := rand.New(rand.NewPCG(1, 33))
			r := as("a", words(rng, size-2))
			r.MaxTokens = 1
			collect(e.Submit(b.Context(), r))
			for b.Loop() {
				if name == "new" {
					b.StopTimer()
					r = as("a", words(rng, size-2))
					r.MaxTokens = 1
					b.StartTimer()
				}
				if got := collect(e.Submit(b.Context(), r)); got.err != nil {
					b.Fatalf("%+v", got.err)
				}
			}
		})
	}
}
