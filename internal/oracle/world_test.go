package oracle_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/wire"
)

const thisRun = 7

var names = []string{"ada", "bob", "cyd"}

// world makes exchanges as a campaign would, one a minute.
type world struct {
	t     rapid.TB
	coder *canary.Coder
	all   []wire.Exchange
}

func newWorld(t rapid.TB) *world {
	return &world{t: t, coder: canary.New(canary.Key{1, 2, 3})}
}

// served adds an exchange of a tenant that was answered with these pieces,
// given as channel and text in turns.
func (w *world) served(tenant int, pieces ...string) *wire.Exchange {
	seq := len(w.all)
	id := canary.MakeID(thisRun, tenant, seq)
	start := time.Date(2026, 11, 30, 0, seq, 0, 0, time.UTC)
	e := wire.Exchange{
		Seq: seq, ID: uint64(id), Protocol: "straddle", Purpose: wire.Plant, Tenant: names[tenant],
		SentTokens: 1000, SentExact: true, MaxTokens: 192, Asked: -1, Token: w.coder.Token(id),
		Answer: &wire.Answer{Status: 200, Finish: "stop", Start: start, End: start.Add(time.Second)},
	}
	for place := range e.Nonces {
		e.Nonces[place] = w.coder.Nonce(id, place)
	}
	for i := 0; i+1 < len(pieces); i += 2 {
		e.Answer.Pieces = append(e.Answer.Pieces, wire.Piece{Channel: wire.Channel(pieces[i]), Text: pieces[i+1]})
	}
	w.all = append(w.all, e)
	return &w.all[seq]
}

// sized is served with the numbers that fail_open and truncation judge by.
func (w *world) sized(p wire.Purpose, limit, sent, used int, text string) *wire.Exchange {
	e := w.served(0, "content", text)
	e.Purpose, e.Limit, e.SentTokens = p, limit, sent
	if used > 0 {
		e.Answer.Usage = &wire.Usage{Prompt: used, Completion: 10}
	}
	return e
}

// words are n words of the canary of exchange seq of a tenant, from word at.
func (w *world) words(tenant, seq, at, n int) string {
	b, err := io.ReadAll(w.coder.Words(canary.MakeID(thisRun, tenant, seq), at, n))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

func (w *world) judge(name string) oracle.Judgement {
	return w.judgeWith(name, func(*oracle.Case) {})
}

func (w *world) judgeWith(name string, change func(*oracle.Case)) oracle.Judgement {
	w.t.Helper()
	for _, o := range oracle.All() {
		if o.Name == name {
			c := oracle.Case{Coder: w.coder, Run: thisRun, Exchanges: w.all, All: w.all}
			change(&c)
			return o.Judge(context.Background(), c)
		}
	}
	w.t.Fatalf("no oracle %s", name)
	return oracle.Judgement{}
}

// short is a finding as the tests compare it.
func short(f oracle.Finding) string {
	from := f.FromTenant
	if f.FromExchange != nil {
		from = fmt.Sprintf("%d/%s", *f.FromExchange, f.FromTenant)
	} else if f.Evidence.FromRun != nil {
		from = fmt.Sprintf("run %d", *f.Evidence.FromRun)
	}
	s := fmt.Sprintf("%s %d/%s", f.Kind, f.Exchange, f.Tenant)
	if from != "" {
		s += fmt.Sprintf(" from %s in %s, %d words at %d", from, f.Channel, f.Evidence.Words, f.Evidence.Offset)
	}
	return s
}

func (w *world) expect(j oracle.Judgement, want ...string) {
	w.t.Helper()
	var got []string
	for _, f := range j.Findings {
		got = append(got, short(f))
		if f.Explain == "" || strings.Contains(f.Explain, "\n") || f.Protocol != "straddle" {
			w.t.Errorf("finding is not one sentence of its protocol: %+v", f)
		}
	}
	if g, x := strings.Join(got, "\n"), strings.Join(want, "\n"); g != x {
		w.t.Errorf("findings:\n%s\nwant:\n%s", g, x)
	}
}
