package campaign

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// A prompt that is sent again is the same but for its padding, and as long as
// was counted, and the padding.
func TestPromptIsSentAgain(t *testing.T) {
	for name, c := range map[string]struct {
		tokenize func([]string) int
		unit     string
	}{"pieces": {wordTokens, " a"}, "bytes": {byteTokens, "."}} {
		t.Run(name, func(t *testing.T) {
			seq := 0
			longer := func(pad int) []probe.Send {
				s := fillerSend(900)
				s.Again, s.Pad = &seq, pad
				return []probe.Send{s}
			}
			s := &script{batches: [][]probe.Send{sends(1, 900), longer(33), longer(7)}}
			f := &fakeTarget{tokenize: c.tokenize}
			res := mustRun(t, config(f, s.protocol("size")))
			if res.Verdict != Clean {
				t.Fatalf("%s: %s", res.Verdict, res.Reason)
			}
			base := s.seen[0][0]
			used, _ := base.Used()
			for i, pad := range []int{33, 7} {
				e := s.seen[1+i][0]
				// Only what has been seen to count is relied on.
				if e.ID != base.ID || e.Nonces != base.Nonces || *e.Again != 0 || e.Pad != pad || e.SentTokens != used+pad || e.SentExact != (i > 0) {
					t.Errorf("%+v", e)
				}
				if n, _ := e.Used(); n != used+pad {
					t.Errorf("%d tokens, want %d", n, used+pad)
				}
				if strings.ReplaceAll(f.texts[1+i], strings.Repeat(c.unit, pad), "") != strings.ReplaceAll(f.texts[0], strings.Repeat(c.unit, pad), "") {
					t.Errorf("not the same prompt:\n%s\n%s", f.texts[0], f.texts[1+i])
				}
			}
		})
	}
}

// dropping is a server without a tokenizer that drops the oldest messages,
// without a word, until the rest fits.
type dropping struct{ limit int }

func (d dropping) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var c chat
	if r.URL.Path != "/v1/chat/completions" || json.NewDecoder(r.Body).Decode(&c) != nil {
		http.NotFound(w, r)
		return
	}
	used := func() int {
		var texts []string
		for _, m := range c.Messages {
			texts = append(texts, m.Content)
		}
		return wordTokens(texts)
	}
	for used() > d.limit && len(c.Messages) > 1 {
		c.Messages = c.Messages[1:]
	}
	reply(w, c.Stream, "xq zjv", min(used(), d.limit), true)
}

// The limit of a target that cuts prompts is found to the token and named for
// what it is, though its model says nothing that makes sense.
func TestTargetThatDropsOldMessages(t *testing.T) {
	for _, limit := range []int{1500, 2047} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) { findDropping(t, limit) })
	}
}

func findDropping(t *testing.T, limit int) {
	res := mustRun(t, real(t, dropping{limit}))
	if l := res.Limits; l.AcceptedMax != limit || l.RejectedMin != limit+1 || l.Estimated || l.Rejection != "answered with HTTP 200 in place of a refusal" {
		t.Errorf("limits %+v, want %d", l, limit)
	}
	if got := kinds(res); res.Verdict != Violation || got[oracle.Truncation] == 0 || len(got) != 1 {
		t.Errorf("verdict %s, findings %v", res.Verdict, got)
	}
	for _, p := range res.Protocols {
		cut := p.Name == "boundary" || p.Name == "straddle"
		if want := map[bool]Verdict{true: Violation, false: Inconclusive}[cut]; p.Verdict != want || cut != (p.Reason == "") {
			t.Errorf("%s: %s (%s)", p.Name, p.Verdict, p.Reason)
		}
	}
	if err := runSchema(t).Validate(asJSON(t, res)); err != nil {
		t.Error(err)
	}
}

// small is a server whose cache holds less than its window: it says so with
// status 500, of a long prompt, and of any while others are under way. Prompts
// take their time, so that there is one to leave in.
type small struct {
	pool, window int
	busy         chan struct{}
}

func (s small) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var c chat
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		http.NotFound(w, r)
		return
	}
	text, n := c.text()
	if r.URL.Path == "/tokenize" {
		fmt.Fprintf(w, `{"count":%d,"max_model_len":%d}`, n, s.window)
		return
	}
	select {
	case <-time.After(time.Duration(n) * 10 * time.Microsecond):
	case <-r.Context().Done():
		return
	}
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	default:
		n = s.pool + 1
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case n > s.window:
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":"This model's maximum context length is %d tokens. However, your messages resulted in %d tokens.","code":400}}`, s.window, n)
	case n > s.pool:
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, `{"error":{"message":"the kv cache does not have sufficient capacity to store this request","type":"InternalServerError","code":500}}`)
	default:
		reply(w, c.Stream, obeying(text), n, true) // its own prompt, quoted
	}
}

// A refusal for the traffic beside a prompt says nothing about its length, and
// does not keep the protocols from their coverage.
func TestTargetWithASmallCache(t *testing.T) {
	res := mustRun(t, real(t, small{pool: 3000, window: 6000, busy: make(chan struct{}, 3)}))
	if l := res.Limits; l.AcceptedMax != 3000 || l.RejectedMin != 3001 || l.Rejection != "HTTP 500, pool" {
		t.Errorf("limits %+v", l)
	}
	if res.Verdict != Clean || len(res.Findings) > 0 {
		t.Errorf("verdict %s (%s), findings %v", res.Verdict, res.Reason, kinds(res))
	}
}

func TestLimitsAreWhatIsKnownAfterTheAnswer(t *testing.T) {
	estimate := func(sent, used int, refusal *wire.Refusal) wire.Exchange {
		e := wire.Exchange{SentTokens: sent, Answer: served("x")}
		if used > 0 {
			e.Answer.Usage = &wire.Usage{Prompt: used}
		}
		e.Answer.Refusal = refusal
		return e
	}
	inside := refused(wire.RefusedPool, 200, "too long")
	inside.Refusal.InAnswer = true
	for name, c := range map[string]struct {
		all  []wire.Exchange
		want Limits
	}{
		"estimates give way to counts": {
			[]wire.Exchange{estimate(846, 1855, nil), estimate(947, 0, &wire.Refusal{Kind: wire.RefusedContext, Status: 400, Sent: 2066})},
			Limits{AcceptedMax: 1855, RejectedMin: 2066, Rejection: "HTTP 200, context"},
		},
		"a refused prompt that nobody counted": {
			[]wire.Exchange{estimate(846, 1855, nil), estimate(2100, 0, &wire.Refusal{Kind: wire.RefusedOutput})},
			Limits{AcceptedMax: 1855, RejectedMin: 2100, Rejection: "HTTP 200, output, prompt and answer together (0 asked for)", Estimated: true},
		},
		"an answer that says nothing of its length": {
			[]wire.Exchange{estimate(846, 1855, nil), estimate(2162, 0, nil)},
			Limits{AcceptedMax: 1855},
		},
		"no answer does": {
			[]wire.Exchange{estimate(846, 0, nil), estimate(2162, 0, nil)},
			Limits{AcceptedMax: 2162},
		},
		"refused otherwise in a stream": {
			[]wire.Exchange{
				{SentTokens: 900, SentExact: true, Answer: served("x")},
				{SentTokens: 901, SentExact: true, Answer: refused(wire.RefusedPool, 400, "too long")},
				{SentTokens: 901, SentExact: true, Stream: true, Answer: inside},
			},
			Limits{AcceptedMax: 900, RejectedMin: 901, Rejection: "HTTP 400, pool; streamed: HTTP 200 with an error inside"},
		},
		"refused for the traffic": {
			[]wire.Exchange{estimate(846, 1855, nil), estimate(500, 0, &wire.Refusal{Kind: wire.RefusedPool, Sent: 500})},
			Limits{AcceptedMax: 1855},
		},
	} {
		cfg, err := config(&fakeTarget{}, (&script{}).protocol("none")).complete()
		if err != nil {
			t.Fatal(err)
		}
		r := newRunner(cfg)
		r.all = c.all
		if got := r.limits(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
