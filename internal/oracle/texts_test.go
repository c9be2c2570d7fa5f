package oracle_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// strand joins pieces as the client does.
func strand(c wire.Channel, pieces ...string) wire.Strand {
	s := wire.Strand{Channel: c, Text: strings.Join(pieces, "")}
	at := 0
	for i, p := range pieces {
		if i > 0 {
			s.Cuts = append(s.Cuts, at)
		}
		at += len(p)
	}
	return s
}

// A canary that came in pieces is found with the spaces that it has, and with
// those that it lost.
func TestLeakInPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		a := w.served(0)
		leaked := w.words(0, 0, 40, 12)
		var pieces []string
		if rapid.Bool().Draw(t, "a word a piece") {
			pieces = strings.Fields(leaked)
		} else {
			for len(leaked) > 0 {
				n := min(len(leaked), rapid.IntRange(1, 30).Draw(t, "bytes"))
				pieces, leaked = append(pieces, leaked[:n]), leaked[n:]
			}
		}
		e := w.served(1, "content", "noted")
		e.Answer.Joined = []wire.Strand{strand(wire.Raw, pieces...), strand(wire.Reasoning, pieces...), strand(wire.Raw, a.Nonces[1][:4], a.Nonces[1][4:])}
		w.expect(w.judge("leak"), "leak 1/bob from 0/ada in reasoning, 12 words at 40")
		w.expect(w.judge("misroute"), "leak 1/bob from 0/ada in raw, 0 words at 0")
	})
}

// What stands in a prompt may stand in its answer, also where it came there
// from another exchange, and what that one's answer carried.
func TestHeldTextIsNoLeak(t *testing.T) {
	w := newWorld(t)
	w.served(0)
	w.served(1, "content", w.words(0, 0, 3, 9)) // the leak
	first, second := w.words(0, 0, 7, 12), w.words(1, 1, 7, 12)
	said := strings.Join([]string{first, w.all[0].Nonces[0], second, w.all[1].Nonces[2], w.all[1].Token}, " / ")
	w.served(2, "content", said).Holds = []int{1}
	w.served(2, "content", w.words(0, 0, 7, 12)).Holds = []int{2} // it holds what was said, not what was held
	w.all[2].Answer.Usage = &wire.Usage{Prompt: 2000}
	w.again(2, 8, 2008, said)
	w.served(2, "content", said)
	w.expect(w.judge("leak"),
		"leak 1/bob from 0/ada in content, 9 words at 3",
		"leak 3/cyd from 0/ada in content, 12 words at 7",
		"leak 5/cyd from 0/ada in content, 12 words at 7",
		"leak 5/cyd from 1/bob in content, 12 words at 7")
	w.expect(w.judge("misroute"),
		"leak 2/cyd from 0/ada in content, 0 words at 0",
		"leak 4/ada from 0/ada in content, 0 words at 0",
		"leak 5/cyd from 0/ada in content, 0 words at 0",
		"leak 5/cyd from 1/bob in content, 0 words at 0")
}

func TestPageHint(t *testing.T) {
	w := newWorld(t)
	w.served(0).SentBytes = 6300
	w.all[0].SentTokens = 1000
	w.served(1, "content", w.words(0, 0, 500, 12))
	for size, want := range map[int]string{0: "", 16: "35", 64: "8"} {
		j := w.judgeWith("leak", func(c *oracle.Case) { c.PageSize = size })
		if len(j.Findings) != 1 || j.Findings[0].Evidence.PageHint != want {
			t.Errorf("pages of %d: %+v, want %q", size, j.Findings, want)
		}
	}
}

// Judging that is broken off says so; what it had seen by then counts.
func TestJudgingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	w := newWorld(t)
	w.served(0)
	w.served(1, "content", w.words(0, 0, 0, 9))
	w.served(1, "content", strings.Repeat("x-", 1<<22)+w.words(0, 0, 0, 9))
	c := oracle.Case{Coder: w.coder, Run: thisRun, Exchanges: w.all, RawBytes: func(e *wire.Exchange) []byte {
		if e.Seq == 1 {
			cancel()
		}
		return nil
	}}
	for _, o := range oracle.All()[:2] {
		j := o.Judge(ctx, c)
		if !strings.Contains(j.Unsure, "interrupted") {
			t.Errorf("%s: unsure %q", o.Name, j.Unsure)
		}
		if want := map[string]int{"leak": 1}[o.Name]; len(j.Findings) != want {
			t.Errorf("%s: %s", o.Name, fmt.Sprint(j.Findings))
		}
	}
}

// A canary that leaks through any field of the events of a stream, cut in two
// at any byte or into words, is found, and so is a nonce.
func TestLeakThroughAnyFieldCutAnywhere(t *testing.T) {
	for _, format := range []string{
		`{"choices":[{"index":0,"delta":{"content":%q}}]}`,
		`{"choices":[{"delta":{"new_field":{"deep":[%q]}}}]}`,
		`{"choices":[{"index":0,"delta":{"content":[{"type":"x","y":{"z":%q}}]}}],"id":"chatcmpl-0123456789abcdef"}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"thinking_delta","thinking":%q}}`,
		`{"type":"response.output_text.delta","item_id":"msg_0123456789","output_index":0,"content_index":0,"delta":%q}`,
		`{"message":{"role":"assistant","content":%q},"done":false}`,
		`{"choices":[{"index":0,"logprobs":{"content":[{"token":%q,"top_logprobs":[{"token":"no"}]}]}}]}`,
		`[%q,{"n":1}]`,
		`%q`,
	} {
		w := newWorld(t)
		a := w.served(0)
		leaked := w.words(0, 0, 40, 10) + ". " + a.Nonces[1]
		cuts := [][]string{strings.SplitAfter(leaked, " ")}
		for i := range leaked {
			cuts = append(cuts, []string{leaked[:i], leaked[i:]})
		}
		e := w.served(1, "content", "noted")
		for _, pieces := range cuts {
			var stream strings.Builder
			for _, p := range pieces {
				fmt.Fprintf(&stream, "data: "+format+"\n\n", p)
			}
			var over bool
			if e.Answer.Joined, over = wire.Join([]byte(stream.String())); over {
				t.Fatal("over a bound")
			}
			for _, o := range []string{"leak", "misroute"} {
				if j := w.judge(o); len(j.Findings) != 1 || *j.Findings[0].FromExchange != 0 || o == "leak" && j.Findings[0].Evidence.Words != 10 {
					t.Fatalf("%s: %s finds %+v in %q", format, o, j.Findings, pieces)
				}
			}
		}
	}
}
