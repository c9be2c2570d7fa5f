package admit

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
)

func gateOf(s *counting, p Policy) *Gate {
	l := limiterOf(io.Discard)
	l.o.Given = Given{Tokens: 100}
	l = NewLimiter(l.o)
	g := &Gate{Limiter: l, Policy: p, Now: time.Now}
	if s != nil {
		g.Counter = counterOf(s, "vllm")
	}
	return g
}

func TestGate(t *testing.T) {
	closed := Policy{}
	pictures := Policy{OpaqueTokens: 40}
	open := Policy{Open: true}
	for name, c := range map[string]struct {
		s       *counting
		p       Policy
		b       Body
		words   int
		first   Verdict
		verdict Verdict
		reason  Reason
		status  int
		says    string
	}{
		"short":                    {&counting{}, closed, Body{Bytes: 100}, 50, Pass, Pass, ByBound, 0, ""},
		"counted":                  {&counting{}, closed, Body{Bytes: 300}, 100, Count, Pass, ByCount, 0, ""},
		"counted, too long":        {&counting{}, closed, Body{Bytes: 300}, 101, Count, Refuse, TooLong, 400, "101 tokens > 100 maximum (exactly 101, limit 100"},
		"nothing counts":           {nil, closed, Body{Bytes: 300}, 90, Refuse, Refuse, NotCounted, 400, "nothing is counted here"},
		"nothing counts, open":     {nil, open, Body{Bytes: 300}, 90, Pass, Pass, NotCounted, 0, ""},
		"no endpoint":              {&counting{status: 404}, closed, Body{Bytes: 300}, 90, Count, Refuse, NotCounted, 400, "do not prove that it fits: send less"},
		"no endpoint, open":        {&counting{status: 404}, open, Body{Bytes: 300}, 90, Count, Pass, NotCounted, 0, ""},
		"the engine is in trouble": {&counting{status: 500}, closed, Body{Bytes: 300}, 90, Count, Refuse, NotCounted, 503, "HTTP 500"},
		"a lying count":            {&counting{most: 20}, closed, Body{Bytes: 300}, 400, Count, Refuse, NotCounted, 503, "cannot be relied on"},
		"over the engine's own":    {&counting{refuses: 95}, closed, Body{Bytes: 300}, 96, Count, Refuse, TooLong, 400, "at least 101"},
		"a picture":                {&counting{}, closed, Body{Bytes: 30, Opaque: 1}, 5, Count, Refuse, NotCounted, 400, "set opaque_tokens"},
		"pictures with a bound":    {&counting{}, pictures, Body{Bytes: 300, Opaque: 2}, 20, Count, Pass, ByCount, 0, ""},
		"more pictures than fit":   {&counting{}, pictures, Body{Bytes: 300, Opaque: 2}, 21, Count, Refuse, NotCounted, 400, "at most 101 tokens"},
		"tools of unknown size":    {&counting{}, closed, Body{Bytes: 300, Structured: 90, Depth: 3}, 5, Count, Refuse, NotCounted, 400, "set structured_factor"},
		"tools that are counted":   {&counting{tools: true}, closed, Body{Bytes: 300, Structured: 90, Depth: 3}, 5, Count, Pass, ByCount, 0, ""},
		"the bytes say more of it": {&counting{}, Policy{StructuredFactor: 1}, Body{Bytes: 95, Structured: 90, Opaque: 0}, 50, Pass, Pass, ByBound, 0, ""},
		"admission off":            {&counting{}, Policy{Off: true}, Body{Bytes: 1 << 40}, 5, Pass, Pass, NotAsked, 0, ""},
	} {
		g := gateOf(c.s, c.p)
		if d := g.Decide("m", c.b); d.Verdict != c.first {
			t.Errorf("%s: at first %+v", name, d)
		}
		d, _ := g.Count(t.Context(), "m", c.b, Question{Dialect: "openai", Body: chat(c.words)})
		if d.Verdict != c.verdict || d.Reason != c.reason || d.Error.Status != c.status || !strings.Contains(d.Error.Message, c.says) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// A gate that was made with nothing but an address finds out all that it needs.
func TestNewGate(t *testing.T) {
	engine, tokens := newFake(10_640, 16_384), &counting{}
	both := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/tokenize") {
			tokens.ServeHTTP(w, r)
			return
		}
		engine.ServeHTTP(w, r)
	})
	g := NewGate(GateOptions{
		Upstream: "u", URL: "http://u/v1", Engine: "auto", Client: &http.Client{Transport: inMemory{"u": both}},
		Policy: Default(), Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if d := g.Decide("m", Body{Bytes: 10}); d.Reason != NoLimit || d.Error.Status != 503 {
		t.Errorf("before it was measured: %+v", d)
	}
	g.Limiter.Measure(t.Context())
	if d := g.Decide("m", Body{Bytes: 9609}); d.Reason != ByBound {
		t.Errorf("%+v", d)
	}
	d, s := g.Count(t.Context(), "m", Body{Bytes: 9610}, Question{Dialect: "openai", Body: chat(10_633)})
	if d.Reason != ByCount || s.AtMost != 10_633 {
		t.Errorf("%+v, %+v", d, s)
	}
	if d, _ := g.Count(t.Context(), "m", Body{Bytes: 30_000}, Question{Dialect: "openai", Body: chat(10_634)}); d.Reason != TooLong {
		t.Errorf("%+v", d)
	}
	if g := NewGate(GateOptions{NoCount: true, Workers: []string{"http://a", "http://b"}}); g.Counter != nil || len(g.Limiter.o.Sources) != 2 {
		t.Errorf("%+v", g)
	}
}

// What a prompt that its bytes decide costs: nearly all are such.
func BenchmarkDecide(b *testing.B) {
	g := gateOf(nil, Default())
	g.Limiter = NewLimiter(LimiterOptions{Given: Given{Tokens: 100_000}})
	body := Body{Bytes: 20_000, Wide: 300, Structured: 50, Depth: 5}
	b.ReportAllocs()
	for b.Loop() {
		if g.Decide("m", body).Verdict != Pass {
			b.Fatal("refused")
		}
	}
}
