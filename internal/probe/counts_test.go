package probe

import (
	"math/bits"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// churned sends what churn asks for to a target that counts prompts, and returns
// how many exchanges that took and what is missing. Where lengths are not exact
// they are taken to be longer and longer.
func churned(exact bool, count func(s Send, tokens int) int) (int, string) {
	plan := newChurn(Env{Tenants: 2, Seed: 1, MaxAnswer: 160, Pool: 4096, Context: 8192})
	var done []wire.Exchange
	for seq := 0; ; {
		batch := plan.Next(done)
		if len(batch) == 0 {
			return seq, plan.Missing()
		}
		done = nil
		for _, s := range batch {
			e := wire.Exchange{Seq: seq, Purpose: s.Purpose, Arm: s.Arm, Asked: s.Asked, SentTokens: max(s.Tokens, 320), SentExact: exact, SentBytes: int64(4 * max(s.Tokens, 320)), Left: s.Hangup.Any()}
			e.Answer = &wire.Answer{Failure: &wire.Failure{Kind: wire.FailedCanceled}}
			if !e.Left {
				e.Answer = &wire.Answer{Status: 200, Finish: "stop", Usage: &wire.Usage{Prompt: count(s, e.SentTokens)}}
			}
			if !exact {
				e.SentTokens += 2 * seq
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
	exact, missing := churned(true, func(_ Send, tokens int) int { return tokens })
	looksOn := exact + doubtfulChases*(1+fewFollowers)
	if missing != "" {
		t.Error(missing)
	}
	turns, loaded := 0, 0
	once := func(counted int) func(Send, int) int {
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
		"another's, longer":       {once(1024), looksOn},
		"another's, shorter":      {once(64), looksOn},
		"a constant more":         {func(_ Send, tokens int) int { return tokens + 300 }, exact},
		"a long text before each": {func(_ Send, tokens int) int { return tokens + 3000 }, exact},
		"one of two tokenizers": {func(_ Send, tokens int) int {
			if turns++; turns%3 == 0 {
				return tokens * 3 / 2
			}
			return tokens
		}, exact},
		"a power of two": {func(_ Send, tokens int) int { return 1 << bits.Len(uint(tokens-1)) }, exact},
		"a factor":       {func(_ Send, tokens int) int { return tokens * 5 / 4 }, exact},
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
		for _, counted := range []bool{true, false} {
			turns, loaded = 0, 0
			got, missing := churned(counted, c.count)
			if got != c.want {
				t.Errorf("%s, counted beforehand %v: %d exchanges, want %d", name, counted, got, c.want)
			}
			if says := strings.Contains(missing, "of the prompts beside others 1 were counted otherwise"); says != (c.want == looksOn) {
				t.Errorf("%s, counted beforehand %v: %q", name, counted, missing)
			}
		}
	}
}
