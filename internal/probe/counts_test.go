package probe

import (
	"testing"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// churned sends what churn asks for to a target that counts prompts, and returns
// how many exchanges that took.
func churned(count func(s Send, tokens int) int) int {
	plan := newChurn(Env{Tenants: 2, Seed: 1, MaxAnswer: 160, Pool: 4096, Context: 8192})
	var done []wire.Exchange
	for seq := 0; ; {
		batch := plan.Next(done)
		if len(batch) == 0 {
			return seq
		}
		done = nil
		for _, s := range batch {
			e := wire.Exchange{Seq: seq, Purpose: s.Purpose, Arm: s.Arm, Asked: s.Asked, SentTokens: max(s.Tokens, 320), SentExact: true, Left: s.Hangup.Any()}
			e.Answer = &wire.Answer{Failure: &wire.Failure{Kind: wire.FailedCanceled}}
			if !e.Left {
				e.Answer = &wire.Answer{Status: 200, Finish: "stop", Usage: &wire.Usage{Prompt: count(s, e.SentTokens)}}
			}
			done = append(done, e)
			seq++
		}
	}
}

// Where a prompt beside others was counted as another one, churn looks on: that
// one's text crosses in few of these cases. A target that counts by rules of its
// own, the same in quiet and beside others, is not asked for more.
func TestChurnLooksOnWhereCountsAreAnothers(t *testing.T) {
	exact := churned(func(_ Send, tokens int) int { return tokens })
	looksOn := exact + doubtfulChases*(1+fewFollowers)
	once := func(counted int) func(Send, int) int {
		loaded := 0
		return func(s Send, tokens int) int {
			if s.Arm == wire.ArmLoad {
				if loaded++; loaded == 60 {
					return counted
				}
			}
			return tokens
		}
	}
	for name, c := range map[string]struct {
		count func(Send, int) int
		want  int
	}{
		"another's, longer":  {once(1024), looksOn},
		"another's, shorter": {once(64), looksOn},
		"a constant more":    {func(_ Send, tokens int) int { return tokens + 300 }, exact},
		"a factor":           {func(_ Send, tokens int) int { return tokens * 5 / 4 }, exact},
		"a few words more beside others": {func(s Send, tokens int) int {
			if s.Arm == wire.ArmLoad {
				return tokens + 12
			}
			return tokens
		}, exact},
		"rounded up":   {func(_ Send, tokens int) int { return (tokens + 63) / 64 * 64 }, exact},
		"the same":     {func(Send, int) int { return 7 }, exact},
		"none at all":  {func(Send, int) int { return 0 }, exact},
		"none of one":  {once(0), exact},
		"negative one": {once(-5), exact},
	} {
		if got := churned(c.count); got != c.want {
			t.Errorf("%s: %d exchanges, want %d", name, got, c.want)
		}
	}
}
