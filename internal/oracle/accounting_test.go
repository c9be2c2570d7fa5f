package oracle_test

import (
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/wire"
)

func piece(c wire.Channel, text string) wire.Piece { return wire.Piece{Channel: c, Text: text} }

// honest adds the short prompts that a campaign starts with, counted as used says.
func (w *world) honest(used func(sent int) int) {
	for _, sent := range []int{192, 640, 2048} {
		w.sized(wire.Size, 0, sent, used(sent), "noted")
	}
}

func right(sent int) int { return sent }

// asking makes an exchange ask for a nonce, and answer with it.
func asking(e *wire.Exchange, place int, echo bool) *wire.Exchange {
	e.Asked = place
	if echo {
		e.Answer.Pieces = []wire.Piece{piece("content", e.Nonces[place])}
	}
	return e
}

func TestAccounting(t *testing.T) {
	const limit = 10640
	for _, c := range []struct {
		name       string
		make       func(w *world)
		failOpen   string
		truncation string
	}{
		{"the incident, from one request", func(w *world) {
			w.sized(wire.Size, 0, 681281, 1, "somebody's text")
		}, "fail_open 0/ada", ""},
		{"the incident, limit known", func(w *world) {
			w.honest(right)
			asking(w.sized(wire.Under, limit, 10593, 10593, ""), 0, true)
			asking(w.sized(wire.Over, limit, 10641, 1, "somebody's text"), 0, false)
		}, "fail_open 4/ada", ""},
		{"the incident, counted by the node that had the full length", func(w *world) {
			w.honest(right)
			asking(w.sized(wire.Under, limit, 10593, 10593, ""), 1, true)
			asking(w.sized(wire.Over, limit, 10641, 10641, "somebody's text"), 1, false)
		}, "fail_open 4/ada", ""},
		{"within the engine's margin below the nominal limit", func(w *world) {
			w.honest(right)
			asking(w.sized(wire.Under, limit, 10586, 10586, ""), 1, true)
			asking(w.sized(wire.Over, limit, 10634, 10634, "somebody's text"), 1, false)
		}, "fail_open 4/ada", ""},
		{"served over the limit, and properly", func(w *world) {
			w.honest(right)
			asking(w.sized(wire.Under, limit, 10593, 10593, ""), 0, true)
			asking(w.sized(wire.Over, limit, 10641, 10641, ""), 0, true)
		}, "", ""},
		{"a model that does not echo under the limit either", func(w *world) {
			w.honest(right)
			asking(w.sized(wire.Under, limit, 10593, 10593, "noted"), 0, false)
			asking(w.sized(wire.Over, limit, 10641, 10641, "noted"), 0, false)
		}, "", ""},
		{"a model that echoes now and then", func(w *world) {
			w.honest(right)
			asking(w.sized(wire.Under, limit, 10593, 10593, ""), 0, true)
			asking(w.sized(wire.Under, limit, 10593, 10593, "noted"), 0, false)
			asking(w.sized(wire.Over, limit, 10641, 10641, "noted"), 0, false)
		}, "", ""},
		{"no control arm", func(w *world) {
			w.honest(right)
			asking(w.sized(wire.Over, limit, 10641, 10641, "noted"), 0, false)
		}, "", ""},
		{"the answer went into reasoning", func(w *world) {
			w.honest(right)
			asking(w.sized(wire.Under, limit, 10593, 10593, ""), 0, true)
			e := asking(w.sized(wire.Over, limit, 10641, 10641, ""), 0, false)
			e.Answer.Finish = "length"
			e.Answer.Pieces = []wire.Piece{piece("reasoning", "the user wants")}
		}, "", ""},
		{"200, length, and nothing", func(w *world) {
			w.honest(right)
			e := w.sized(wire.Over, limit, 10641, 10641, "")
			e.Answer.Finish = "length"
		}, "fail_open 3/ada", ""},
		{"the same as messages and responses have it", func(w *world) {
			w.honest(right)
			w.sized(wire.Over, limit, 10641, 10641, "").Answer.Finish = "max_tokens"
			w.sized(wire.Over, limit, 10642, 10642, "").Answer.Finish = "max_output_tokens"
		}, "fail_open 3/ada\nfail_open 4/ada", ""},
		{"length and nothing but reasoning that was counted", func(w *world) {
			w.honest(right)
			e := w.sized(wire.Over, limit, 10641, 10641, "")
			e.Answer.Finish, e.Answer.Usage.Reasoning = "length", 10
		}, "", ""},
		{"length and nothing under the limit", func(w *world) {
			w.honest(right)
			w.sized(wire.Under, limit, 10593, 10593, "").Answer.Finish = "length"
		}, "", ""},
		{"over a limit that the target itself has named", func(w *world) {
			w.honest(right)
			asking(w.sized(wire.Under, 0, 4000, 4000, ""), 0, true)
			r := w.sized(wire.Size, 0, 9000, 0, "")
			r.Answer.Refusal = &wire.Refusal{Kind: wire.RefusedPool, Status: 400, Limit: 8193}
			asking(w.sized(wire.Size, 0, 9001, 9001, "somebody's text"), 0, false)
		}, "fail_open 5/ada", ""},
		{"a named limit for prompt and answer together is none of the prompt", func(w *world) {
			w.honest(right)
			asking(w.sized(wire.Under, 0, 4000, 4000, ""), 0, true)
			r := w.sized(wire.Size, 0, 9000, 0, "")
			r.Answer.Refusal = &wire.Refusal{Kind: wire.RefusedOutput, Status: 400, Limit: 8193}
			asking(w.sized(wire.Size, 0, 9001, 9001, "noted"), 0, false)
		}, "", ""},
		{"refused over the limit", func(w *world) {
			w.honest(right)
			r := w.sized(wire.Over, limit, 10641, 1, "")
			r.Answer.Refusal = &wire.Refusal{Kind: wire.RefusedPool, Status: 400, Limit: 10634}
		}, "", ""},
		{"broken over the limit", func(w *world) {
			w.honest(right)
			w.sized(wire.Over, limit, 10641, 1, "").Answer.Failure = &wire.Failure{Kind: wire.FailedCut}
		}, "", ""},
		{"no usage at all", func(w *world) {
			w.honest(func(int) int { return 0 })
			w.sized(wire.Over, limit, 10641, 0, "noted")
		}, "", ""},
		{"a target that always counts ten", func(w *world) {
			w.honest(func(int) int { return 10 })
			w.sized(wire.Over, limit, 10641, 10, "noted")
		}, "", ""},
		{"one short prompt with a small count and nothing to hold it against", func(w *world) {
			w.sized(wire.Unrelated, 0, 300, 1, "noted")
		}, "", ""},
		{"half of it dropped", func(w *world) {
			w.honest(right)
			w.sized(wire.Size, 0, 16384, 8192, "noted")
		}, "", "truncation 3/ada"},
		{"half of it dropped, and its nonce", func(w *world) {
			w.honest(right)
			asking(w.sized(wire.Under, limit, 10593, 10593, ""), 0, true)
			asking(w.sized(wire.Over, limit, 10641, 5000, "noted"), 0, false)
		}, "", "truncation 4/ada"},
		{"a page dropped of a prompt that can be counted to the token", func(w *world) {
			w.honest(right)
			w.sized(wire.Over, limit, 10704, 10640, "noted")
		}, "", "truncation 3/ada"},
		{"the same, estimated", func(w *world) {
			w.honest(right)
			w.sized(wire.Over, limit, 10704, 10640, "noted").SentExact = false
		}, "", ""},
		{"its start dropped", func(w *world) {
			w.honest(func(sent int) int { return sent + sent/50 }) // not to the token
			asking(w.sized(wire.Size, 0, 8000, 8160, ""), 2, true)
			asking(w.sized(wire.Size, 0, 16384, 15900, "noted"), 0, false)
		}, "", "truncation 4/ada"},
		{"a target that counts by a factor", func(w *world) {
			w.honest(func(sent int) int { return sent * 8 / 10 })
			w.sized(wire.Size, 0, 16384, 13107, "noted")
		}, "", ""},
		{"a target that counts by a factor, and drops half", func(w *world) {
			w.honest(func(sent int) int { return sent * 8 / 10 })
			w.sized(wire.Size, 0, 16384, 6500, "noted")
		}, "", "truncation 3/ada"},
		{"a target that adds a hidden prompt", func(w *world) {
			w.honest(func(sent int) int { return sent + 700 })
			w.sized(wire.Size, 0, 16384, 17084, "noted")
		}, "", ""},
		{"a target that leaves something out", func(w *world) {
			w.honest(func(sent int) int { return max(1, sent-150) })
			w.sized(wire.Size, 0, 16384, 16234, "noted")
		}, "", ""},
		{"cached tokens counted apart", func(w *world) {
			w.honest(right)
			w.sized(wire.Size, 0, 16384, 384, "noted").Answer.Usage.Cached = 16000
		}, "", ""},
		{"an estimate with nothing to go by", func(w *world) {
			w.sized(wire.Plant, 0, 500, 350, "noted").SentExact = false
		}, "", ""},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			w := newWorld(t)
			c.make(w)
			for name, want := range map[string]string{"fail_open": c.failOpen, "truncation": c.truncation} {
				if want == "" {
					w.expect(w.judge(name))
				} else {
					w.expect(w.judge(name), want)
				}
			}
			w.expect(w.judge("leak"))
			w.expect(w.judge("misroute"))
		})
	}
}

// The sentence holds the numbers that it rests on.
func TestExplanationsNameTheirNumbers(t *testing.T) {
	w := newWorld(t)
	w.honest(right)
	asking(w.sized(wire.Under, 10640, 10593, 10593, ""), 0, true)
	w.sized(wire.Over, 10640, 10641, 1, "somebody's text")
	asking(w.sized(wire.Over, 10640, 10642, 10642, "somebody's text"), 0, false)
	w.sized(wire.Size, 0, 16384, 8192, "noted")
	for i, f := range append(w.judge("fail_open").Findings, w.judge("truncation").Findings...) {
		for _, want := range [][]string{{"10641", "10640", "status 200", "only 1 "}, {"10642", "10640", "1 of 1"}, {"16384", "8192"}}[i] {
			if !strings.Contains(f.Explain, want) {
				t.Errorf("%q does not say %q", f.Explain, want)
			}
		}
		if strings.Contains(f.Explain, "somebody") {
			t.Errorf("%q shows the answer", f.Explain)
		}
	}
}
