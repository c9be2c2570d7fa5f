package probe

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// crowd is a target with a small cache: alone every prompt is served, among
// others every so many are refused for want of room, in one of its ways.
type crowd struct {
	every int
	kind  wire.RefusalKind
	among int // prompts sent among others so far
}

func (c *crowd) answer(batch []Send, s Send) (a *wire.Answer, left bool) {
	if s.Hangup.Any() {
		return &wire.Answer{Failure: &wire.Failure{Kind: wire.FailedCanceled}}, true
	}
	if len(batch) > 1 && s.Arm == wire.ArmLoad {
		if c.among++; c.among%c.every == 0 {
			return &wire.Answer{Status: 500, Refusal: &wire.Refusal{Kind: c.kind, Status: 500}}, false
		}
	}
	return &wire.Answer{Status: 200, Finish: "stop", Pieces: []wire.Piece{{Channel: wire.Content, Text: "own-value"}}}, false
}

// drive sends what a plan asks for, in a crowd, and returns how many exchanges
// that took.
func (c *crowd) drive(plan Plan) int {
	var done []wire.Exchange
	for seq := 0; ; {
		batch := plan.Next(done)
		if len(batch) == 0 {
			return seq
		}
		done = nil
		for _, s := range batch {
			e := wire.Exchange{
				Seq: seq, Purpose: s.Purpose, Label: s.Label, Arm: s.Arm, Group: s.Group, Asked: s.Asked,
				SentTokens: max(s.Tokens, 320), Nonces: [3]string{"own-value", "own-value", "own-value"},
			}
			e.Answer, e.Left = c.answer(batch, s)
			done = append(done, e)
			seq++
		}
	}
}

// A target that has no room for a prompt among others, as a simulator with a
// small cache had none for one stream of 58, keeps no protocol from its coverage:
// what is missing is asked for again. Where nothing is missing, nothing is.
func TestCrowdIsMadeUpFor(t *testing.T) {
	plans := map[string]func(Env) Plan{
		"interleave": func(e Env) Plan { return newInterleave(e) },
		"churn":      func(e Env) Plan { return newChurn(e) },
		"roundtrip":  func(e Env) Plan { return newRoundtrip(e) },
	}
	env := Env{Tenants: 2, Seed: 1, MaxAnswer: 160, Pool: 4096, Context: 8192}
	const never = 1 << 30
	rapid.Check(t, func(t *rapid.T) {
		c := &crowd{
			every: rapid.IntRange(6, 60).Draw(t, "every"),
			kind:  rapid.SampledFrom([]wire.RefusalKind{wire.RefusedPool, wire.RefusedServer}).Draw(t, "kind"),
		}
		for name, start := range plans {
			plan := start(env)
			c.among = 0
			n := c.drive(plan)
			if m := plan.Missing(); m != "" {
				t.Errorf("%s, one of %d refused: %s", name, c.every, m)
			}
			quiet := (&crowd{every: never}).drive(start(env))
			if refused := c.among / c.every; refused == 0 && n != quiet || refused > 0 && n <= quiet {
				t.Errorf("%s, %d refused: %d exchanges, %d where none is", name, refused, n, quiet)
			}
		}
	})
}

// A prompt longer than all that were served was refused for its length: it is
// not asked for again, and neither is what was refused for any other reason.
func TestLengthIsNotMadeUpFor(t *testing.T) {
	served := wire.Exchange{SentTokens: 500, Answer: &wire.Answer{Status: 200, Finish: "stop"}}
	refused := func(tokens int, k wire.RefusalKind) *wire.Exchange {
		return &wire.Exchange{SentTokens: tokens, Answer: &wire.Answer{Status: 500, Refusal: &wire.Refusal{Kind: k}}}
	}
	for name, c := range map[string]struct {
		e    *wire.Exchange
		want int
	}{
		"as long":    {refused(500, wire.RefusedPool), 1},
		"longer":     {refused(501, wire.RefusedPool), 0},
		"rate limit": {refused(400, wire.RefusedRate), 0},
		"its server": {refused(400, wire.RefusedServer), 1},
		"broken off": {&wire.Exchange{SentTokens: 400, Answer: &wire.Answer{Failure: &wire.Failure{Kind: wire.FailedCut}}}, 0},
		"not sent":   {&wire.Exchange{SentTokens: 400}, 0},
	} {
		var all tally
		all.count(&served)
		all.count(c.e)
		if all.crowded != c.want {
			t.Errorf("%s: %d are made up for, want %d", name, all.crowded, c.want)
		}
	}
}
