package oracle_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/wire"
)

func TestForeignCanaryIsALeakInEveryChannel(t *testing.T) {
	for _, c := range []wire.Channel{wire.Content, wire.Reasoning, wire.ToolCalls, wire.Logprobs, wire.Header, wire.ErrorBody} {
		w := newWorld(t)
		w.served(0)
		w.served(1, string(c), "something, then "+w.words(0, 0, 500, 12)+" and more")
		w.expect(w.judge("leak"), "leak 1/bob from 0/ada in "+string(c)+", 12 words at 500")
	}
}

func TestShortCanaryIsALeak(t *testing.T) {
	w := newWorld(t)
	a := w.served(0)
	w.served(1, "content", "My ref is "+a.Token+".")
	j := w.judge("leak")
	w.expect(j, "leak 1/bob from 0/ada in content, 0 words at 0")
	if got := j.Findings[0].Evidence.Text; got != a.Token {
		t.Errorf("evidence %q", got)
	}
}

func TestLeakInARefusal(t *testing.T) {
	w := newWorld(t)
	w.served(0)
	e := w.served(1, "error", `cannot parse "`+w.words(0, 0, 0, 9)+`"`)
	e.Answer.Refusal = &wire.Refusal{Kind: wire.RefusedOther, Status: 400}
	w.expect(w.judge("leak"), "leak 1/bob from 0/ada in error, 9 words at 0")
}

func TestLeakToTheSameTenantIsALeak(t *testing.T) {
	w := newWorld(t)
	w.served(0)
	w.served(0, "content", w.words(0, 0, 3, 8))
	w.expect(w.judge("leak"), "leak 1/ada from 0/ada in content, 8 words at 3")
}

func TestLeakFromAnEarlierRun(t *testing.T) {
	w := newWorld(t)
	w.served(0, "content", w.coder.Token(canary.MakeID(thisRun-1, 1, 40)))
	w.served(0, "content", w.coder.Token(canary.MakeID(thisRun, 1, 40)))
	j := w.judge("leak")
	w.expect(j,
		"leak 0/ada from run 6 in content, 0 words at 0",
		"leak 1/ada from run 7 in content, 0 words at 0")
	if !strings.Contains(j.Findings[0].Explain, "run 6, an earlier run") || !strings.Contains(j.Findings[1].Explain, "earlier run with the same key and seed") {
		t.Errorf("explained as %q and %q", j.Findings[0].Explain, j.Findings[1].Explain)
	}
}

// Each exchange, channel and sender is told once, with the longest run; the
// raw bytes only where nothing decoded shows it.
func TestLeaksAreToldOnce(t *testing.T) {
	w := newWorld(t)
	a, b := w.served(0), w.served(1)
	content := strings.Join([]string{
		w.words(0, 0, 40, 8), "x1", w.words(0, 0, 90, 15), "x2", a.Token, "x3", w.words(1, 1, 10, 9),
	}, "; ")
	w.served(2, "content", content, "reasoning", w.words(0, 0, 0, 8))
	w.served(2, "content", "nothing")
	raw := map[int]string{
		2: `{"content":"` + content + `"}`,
		3: `: ` + w.words(1, 1, 200, 11) + "\n" + b.Token,
	}
	j := w.judgeWith("leak", func(c *oracle.Case) {
		c.RawBytes = func(e *wire.Exchange) []byte { return []byte(raw[e.Seq]) }
	})
	w.expect(j,
		"leak 2/cyd from 0/ada in content, 15 words at 90",
		"leak 2/cyd from 1/bob in content, 9 words at 10",
		"leak 2/cyd from 0/ada in reasoning, 8 words at 0",
		"leak 3/cyd from 1/bob in raw, 11 words at 200")
}

// Evidence is made again from the key: nothing else of an answer is shown.
func TestEvidenceShowsOnlyOurOwnWords(t *testing.T) {
	w := newWorld(t)
	w.served(0)
	leaked := w.words(0, 0, 7, 30)
	w.served(1, "content", "password hunter2 "+strings.ToUpper(strings.ReplaceAll(leaked, " ", "\n* "))+" hunter2")
	j := w.judge("leak")
	w.expect(j, "leak 1/bob from 0/ada in content, 30 words at 7")
	if got, want := j.Findings[0].Evidence.Text, w.words(0, 0, 7, 20); got != want {
		t.Errorf("evidence %q, want %q", got, want)
	}
	all, err := json.Marshal(j.Findings)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(all), "hunter2") {
		t.Errorf("somebody else's text is shown: %s", all)
	}
}

func TestControlsCountAsHitsAndNotAsLeaks(t *testing.T) {
	w := newWorld(t)
	control := canary.MakeID(thisRun, 0, canary.MaxSeq)
	w.served(0, "content", w.coder.Token(control))
	j := w.judgeWith("leak", func(c *oracle.Case) { c.Controls = []canary.ID{control} })
	w.expect(j)
	if j.ControlHits != 1 {
		t.Errorf("%d control hits", j.ControlHits)
	}
}

// What looks like a leak and is none.
func TestInnocentAnswers(t *testing.T) {
	other := canary.New(canary.Key{9})
	post := `canary = "CANARY-" + "".join(random.choices(string.ascii_lowercase + string.digits, k=16))
print(f"[A] canary planted: {canary}") # CANARY-gyn2p8zlm0bbcae8, CANARY-NEVER-0123456789ab`
	for name, answer := range map[string]func(w *world, own canary.ID) string{
		"own prompt":          func(w *world, own canary.ID) string { return w.words(own.Tenant(), own.Seq(), 0, 400) },
		"own token and nonce": func(w *world, own canary.ID) string { return w.coder.Token(own) + " " + w.coder.Nonce(own, 1) },
		"another tool's":      func(*world, canary.ID) string { return "CANARY-0123456789abcdef CANARY-aaaaaaaaaaaaaaaa" },
		"another key's": func(_ *world, own canary.ID) string {
			return other.Token(canary.MakeID(thisRun, 0, 0)) + " " + other.Nonce(own, 0)
		},
		"the post":        func(*world, canary.ID) string { return post },
		"seven words":     func(w *world, _ canary.ID) string { return w.words(0, 0, 100, 7) + " stop " + w.words(0, 0, 300, 7) },
		"words backwards": func(w *world, _ canary.ID) string { return backwards(w.words(0, 0, 0, 60)) },
		"a cut token":     func(w *world, _ canary.ID) string { return w.all[0].Token[:20] },
		"nothing":         func(*world, canary.ID) string { return "" },
	} {
		w := newWorld(t)
		w.served(0)
		own := canary.ID(w.served(1).ID)
		w.all[1].Answer.Pieces = []wire.Piece{{Channel: wire.Content, Text: answer(w, own)}, {Channel: wire.Header, Text: "Date: now"}}
		for _, o := range oracle.All() {
			j := w.judgeWith(o.Name, func(c *oracle.Case) {
				c.RawBytes = func(e *wire.Exchange) []byte { return []byte(e.Answer.Text(wire.Content)) }
			})
			if len(j.Findings)+j.ControlHits > 0 {
				t.Errorf("%s: %s finds %+v", name, o.Name, j.Findings)
			}
		}
	}
}

func backwards(s string) string {
	words := strings.Fields(s)
	for i, j := 0, len(words)-1; i < j; i, j = i+1, j-1 {
		words[i], words[j] = words[j], words[i]
	}
	return strings.Join(words, " ")
}

// Words of the list in any order are no canary: all pieces of own and foreign
// canaries shorter than a run, however they are mixed, stay silent.
func TestMixedWordsAreNoLeak(t *testing.T) {
	w := newWorld(t)
	w.served(0)
	bag := strings.Fields(w.words(0, 0, 0, 2000))
	rapid.Check(t, func(t *rapid.T) {
		pick := rapid.SliceOfN(rapid.IntRange(0, len(bag)-1), 0, 200).Draw(t, "words")
		var b strings.Builder
		for i, p := range pick {
			if i > 0 && p == pick[i-1]+1 {
				b.WriteString("x ") // two in their own order are cut apart
			}
			b.WriteString(bag[p] + " ")
		}
		w := newWorld(t)
		w.served(0)
		w.served(1, "content", b.String())
		if j := w.judge("leak"); len(j.Findings) > 0 {
			t.Fatalf("finds %+v in %q", j.Findings, b.String())
		}
	})
}

// Any run of eight or more words, from anywhere, is named to the word.
func TestAnyRunIsNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		tenant := rapid.IntRange(0, 2).Draw(t, "tenant")
		for range 3 {
			w.served(tenant)
		}
		seq := rapid.IntRange(0, 2).Draw(t, "sender")
		at, n := rapid.IntRange(0, 5000).Draw(t, "offset"), rapid.IntRange(8, 60).Draw(t, "words")
		w.served(1, "content", w.words(tenant, seq, at, n))
		j := w.judge("leak")
		if len(j.Findings) != 1 {
			t.Fatalf("%d findings", len(j.Findings))
		}
		f := j.Findings[0]
		if *f.FromExchange != seq || f.FromTenant != names[tenant] || f.Evidence.Offset != at || f.Evidence.Words != n {
			t.Errorf("%s", short(f))
		}
	})
}

// An answer cannot carry what is sent only after it: a seed was used again.
func TestLeakFromBeforeItWasSent(t *testing.T) {
	w := newWorld(t)
	e := w.served(0)
	late := w.served(1)
	at := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	e.Answer.Pieces = append(e.Answer.Pieces, wire.Piece{Channel: wire.Content, Text: late.Token})
	e.Answer.Start, e.Answer.End = at, at.Add(time.Second)
	late.Answer.Start, late.Answer.End = at.Add(2*time.Second), at.Add(3*time.Second)
	j := w.judge("leak")
	if len(j.Findings) != 1 || j.Findings[0].FromExchange != nil || !strings.Contains(j.Findings[0].Explain, "same key and seed") {
		t.Errorf("%+v", j.Findings)
	}
}
