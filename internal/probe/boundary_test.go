package probe_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/probe"
)

func log2(n int) int { return int(math.Ceil(math.Log2(float64(max(n, 2))))) }

// Whatever the limit, and however little the target says about it, the search
// ends at the token.
func TestBoundaryFindsAnyLimitExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := newTarget()
		usages := []string{"right", "short", "over", "factor", "cached"}
		lowest := 200
		target.over = rapid.SampledFrom([]string{"refuse", "refuse_plain", "refuse_other", "refuse_sent", "truncate", "placeholder", "foreign", "server_error"}).Draw(t, "over")
		switch target.over {
		case "truncate":
			// Only a count that is right but for a constant shows a loss of one
			// token, and only after two prompts that were read whole.
			usages, lowest = usages[:3], 640
		case "placeholder":
			lowest = 700 // a shorter prompt does not collapse
		case "foreign":
			lowest = 640 // the echo counts once two prompts have shown it
		}
		target.limit = rapid.IntRange(lowest, 1<<20).Draw(t, "limit")
		target.usage = rapid.SampledFrom(usages).Draw(t, "usage")
		// Only the echo shows that a prompt was not read which is counted in full.
		target.mute = target.over != "foreign" && rapid.Bool().Draw(t, "mute")
		env := probe.Env{Tenants: rapid.IntRange(1, 3).Draw(t, "tenants"), MaxAnswer: 192}
		if rapid.Bool().Draw(t, "window known") {
			env.Context = rapid.IntRange(target.limit, 1<<21).Draw(t, "window")
		}
		plan := target.drive(probe.Boundary(), env)
		found := plan.(probe.Limiter).Found()
		if want := (probe.Found{AcceptedMax: target.limit, RejectedMin: target.limit + 1}); found != want {
			t.Fatalf("found %+v, want %+v; missing %q\n%s", found, want, plan.Missing(), tell(target, plan))
		}
		if m := plan.Missing(); m != "" {
			t.Errorf("found, and yet missing: %s", m)
		}
	})
}

// Where the limit is named the search costs a handful of prompts; where it is
// not, growth and bisection.
func TestBoundaryIsFrugal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := newTarget()
		target.limit = rapid.IntRange(2049, 1<<20).Draw(t, "limit")
		named := rapid.Bool().Draw(t, "named")
		if !named {
			target.over = "refuse_plain"
		}
		env := probe.Env{Tenants: 1, MaxAnswer: 192}
		target.drive(probe.Boundary(), env)
		grown := log2(target.limit/2048)/2 + 1
		most := 3 + grown + 3 // calibration, growth, the name and its neighbour, one streamed
		if !named {
			most = 3 + grown + log2(4*target.limit) + 1
		}
		if len(target.sent) > most {
			t.Errorf("%d prompts for a limit of %d, want at most %d", len(target.sent), target.limit, most)
		}
		for _, e := range target.sent {
			if e.SentTokens > 4*target.limit {
				t.Errorf("a prompt of %d tokens for a limit of %d", e.SentTokens, target.limit)
			}
		}
	})
}

func TestBoundaryWithoutTokenizerEndsWithinATenthOfAPercent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := newTarget()
		target.counts = false
		target.limit = rapid.IntRange(20_000, 1<<20).Draw(t, "limit")
		target.over = rapid.SampledFrom([]string{"refuse", "refuse_plain"}).Draw(t, "over")
		plan := target.drive(probe.Boundary(), probe.Env{Tenants: 1, MaxAnswer: 192})
		found := plan.(probe.Limiter).Found()
		if slack := target.limit / 400; found.AcceptedMax < target.limit-slack || found.AcceptedMax > target.limit+slack {
			t.Errorf("found %+v for a limit of %d; missing %q", found, target.limit, plan.Missing())
		}
	})
}

// Where prompts cannot be counted beforehand the limit is found to the token
// all the same: by sending a prompt that was counted again, with padding.
func TestBoundaryWithoutTokenizerIsExactBelow32k(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := newTarget()
		target.counts, target.mute = false, rapid.Bool().Draw(t, "mute")
		target.usage = rapid.SampledFrom([]string{"right", "circles"}).Draw(t, "usage")
		target.blur = rapid.Float64Range(0, 1).Draw(t, "blur")
		target.limit = rapid.IntRange(1000, 30_000).Draw(t, "limit")
		target.over = rapid.SampledFrom([]string{"refuse", "refuse_plain", "refuse_sent", "server_error", "truncate", "drop", "drop_refuse"}).Draw(t, "over")
		if strings.HasPrefix(target.over, "drop") {
			target.limit = min(target.limit, 3000) // a turn less is a lot less only there
		}
		env := probe.Env{Tenants: 2, MaxAnswer: 192}
		if rapid.Bool().Draw(t, "window known") {
			env.Context = rapid.IntRange(target.limit+1, 1<<17).Draw(t, "window")
		}
		plan := target.drive(probe.Boundary(), env)
		found := plan.(probe.Limiter).Found()
		if want := (probe.Found{AcceptedMax: target.limit, RejectedMin: target.limit + 1}); found != want || plan.Missing() != "" {
			t.Errorf("found %+v, want %+v; missing %q\n%s", found, want, plan.Missing(), tell(target, plan))
		}
	})
}

// A target that counts padding otherwise leaves an estimate, and says so.
func TestBoundaryWithoutTokenizerNorPadding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := newTarget()
		target.counts, target.padCost = false, rapid.SampledFrom([]float64{0.3, 0.5, 0.9, 1.1, 2, 3}).Draw(t, "cost")
		target.limit = rapid.IntRange(1000, 30_000).Draw(t, "limit")
		target.over = rapid.SampledFrom([]string{"refuse", "refuse_plain", "truncate"}).Draw(t, "over")
		plan := target.drive(probe.Boundary(), probe.Env{Tenants: 1, MaxAnswer: 192})
		found := plan.(probe.Limiter).Found()
		slack := max(64, target.limit/100)
		if target.over == "truncate" {
			slack = target.limit / 5 // less than a tenth cut off is not seen, and then the protocol says so
		}
		if found.AcceptedMax > target.limit || found.AcceptedMax < target.limit-slack || found.RejectedMin > target.limit+slack || plan.Missing() != "" && target.over != "truncate" {
			t.Errorf("found %+v for a limit of %d; missing %q\n%s", found, target.limit, plan.Missing(), tell(target, plan))
		}
	})
}

// A protocol never sends more than its budget allows, nor less than its prompt
// needs room for.
func TestProtocolsKeepTheirBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		env := probe.Env{
			Tenants:   rapid.IntRange(1, 3).Draw(t, "tenants"),
			Seed:      rapid.Uint64().Draw(t, "seed"),
			Context:   rapid.SampledFrom([]int{0, 2048, 16384}).Draw(t, "context"),
			Pool:      rapid.SampledFrom([]int{0, 1024, 10640, 65536}).Draw(t, "pool"),
			PageSize:  rapid.SampledFrom([]int{0, 1, 16, 64}).Draw(t, "page"),
			MaxPrompt: rapid.IntRange(1024, 1<<16).Draw(t, "budget"),
			MaxAnswer: 192,
		}
		target := newTarget()
		target.limit = rapid.IntRange(300, 1<<16).Draw(t, "limit")
		for _, p := range probe.All() {
			plan := target.drive(p, env)
			if l, ok := plan.(probe.Limiter); ok {
				env.Found = l.Found()
			}
		}
		for i, s := range target.sends {
			if s.Tokens > env.MaxPrompt {
				t.Errorf("prompt %d has %d tokens, the budget allows %d", i, s.Tokens, env.MaxPrompt)
			}
			if s.Tokens != 0 && s.Tokens < 128 || s.Tenant >= env.Tenants || s.MaxTokens < 1 {
				t.Errorf("prompt %d makes no sense: %+v", i, s)
			}
		}
	})
}
