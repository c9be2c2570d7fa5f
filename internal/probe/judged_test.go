package probe_test

import (
	"context"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// campaign runs all protocols against a target and returns what the oracles
// find in each: what is proven, and what statistical tests say besides.
func campaign(target *target, env probe.Env) (found, tested map[oracle.Kind][]oracle.Finding) {
	found, tested = map[oracle.Kind][]oracle.Finding{}, map[oracle.Kind][]oracle.Finding{}
	for _, p := range probe.All() {
		from := len(target.sent)
		plan := target.drive(p, env)
		if l, ok := plan.(probe.Limiter); ok {
			env.Found = l.Found()
		}
		for _, o := range oracle.All() {
			j := o.Judge(context.Background(), oracle.Case{Coder: target.coder, Run: run, Exchanges: target.sent[from:], All: target.sent})
			for _, f := range j.Findings {
				found[f.Kind] = append(found[f.Kind], f)
			}
			for _, test := range j.Tests {
				if test.P <= 1e-3 {
					tested[test.Finding.Kind] = append(tested[test.Finding.Kind], test.Finding)
				}
			}
		}
	}
	return found, tested
}

func anyEnv(t *rapid.T) probe.Env {
	return probe.Env{
		Tenants:   rapid.IntRange(1, 3).Draw(t, "tenants"),
		Seed:      rapid.Uint64().Draw(t, "seed"),
		Context:   rapid.SampledFrom([]int{0, 16384, 32768}).Draw(t, "context"),
		Pool:      rapid.SampledFrom([]int{0, 10640, 40000}).Draw(t, "pool"),
		PageSize:  rapid.SampledFrom([]int{0, 16, 64}).Draw(t, "page"),
		MaxAnswer: 192,
		MaxPrompt: 1 << 17,
	}
}

// Nothing is found in an honest target, whatever it is: strict or generous,
// with right, wrong or no counts, quoting its own prompt or never echoing.
func TestNothingIsFoundInAnHonestTarget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		target := newTarget()
		target.limit = rapid.SampledFrom([]int{3000, 10633, 16377, 1 << 30}).Draw(t, "limit")
		target.over = rapid.SampledFrom([]string{"refuse", "refuse_plain", "refuse_other", "refuse_output", "server_error"}).Draw(t, "over")
		target.usage = rapid.SampledFrom([]string{"right", "factor", "short", "over", "constant", "cached", "none", "circles"}).Draw(t, "usage")
		target.mute = rapid.Bool().Draw(t, "mute")
		target.counts = rapid.Bool().Draw(t, "counts")
		target.quotes = rapid.Bool().Draw(t, "quotes")
		found, tested := campaign(target, anyEnv(t))
		if len(found)+len(tested) > 0 {
			t.Errorf("found %+v, and by tests %+v", found, tested)
		}
	})
}

// A target that misbehaves over its limit is found out, whatever else is known
// of it, and only for what it does.
func TestMisbehaviourOverTheLimitIsFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		over       string
		want, none oracle.Kind
	}{
		{"placeholder", oracle.FailOpen, oracle.Truncation},
		{"foreign", oracle.FailOpen, oracle.Truncation},
		{"silent", oracle.FailOpen, oracle.Truncation},
		{"truncate", oracle.Truncation, oracle.FailOpen},
	} {
		t.Run(c.over, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				target := newTarget()
				target.limit, target.over = 10633, c.over
				env := anyEnv(t)
				env.Context, env.Pool = 16384, 10640
				// That long prompts lose their values, tests may say besides.
				found, _ := campaign(target, env)
				if len(found[c.want]) == 0 || len(found[c.none])+len(found[oracle.Leak])+len(found[oracle.Misroute]) > 0 {
					t.Errorf("found %+v", found)
				}
				for _, f := range found[c.want] {
					if e := target.sent[f.Exchange]; e.SentTokens <= target.limit {
						t.Errorf("exchange %d of %d tokens is under the limit: %s", f.Exchange, e.SentTokens, f.Explain)
					}
				}
			})
		})
	}
}

// Text of an earlier prompt in the answer to one over the limit is a leak, and
// is told with its sender.
func TestLeakOverTheLimitIsFound(t *testing.T) {
	target := newTarget()
	target.limit, target.over, target.leaks = 10633, "placeholder", true
	found, _ := campaign(target, probe.Env{Tenants: 2, Seed: 1, Context: 16384, Pool: 10640, PageSize: 16, MaxAnswer: 192})
	if len(found[oracle.Leak]) == 0 || len(found[oracle.FailOpen]) == 0 {
		t.Fatalf("found %+v", found)
	}
	for _, f := range found[oracle.Leak] {
		e, from := target.sent[f.Exchange], target.sent[*f.FromExchange]
		if e.SentTokens <= target.limit || from.Seq != e.Seq-1 || f.FromTenant != from.Tenant || f.Evidence.Words != 12 || f.Evidence.Offset != 40 {
			t.Errorf("%+v", f)
		}
	}
}

// wordsOf are twelve words of the canary of an exchange.
func (t *target) wordsOf(e *wire.Exchange) string {
	b, err := io.ReadAll(t.coder.Words(canary.ID(e.ID), 40, 12))
	if err != nil {
		panic(err)
	}
	return string(b)
}
