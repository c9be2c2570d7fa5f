package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func jsonLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewJSONHandler(w, nil)) }

// collector takes spans and remembers what it was sent.
type collector struct {
	mu     sync.Mutex
	bodies [][]byte
	header http.Header
	status int
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies, c.header = append(c.bodies, p), r.Header
	w.WriteHeader(c.status)
}

func (c *collector) spans(t *testing.T) (out []map[string]any) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.bodies {
		var m struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []map[string]any }
			}
		}
		if err := json.Unmarshal(p, &m); err != nil {
			t.Fatal(err)
		}
		out = append(out, m.ResourceSpans[0].ScopeSpans[0].Spans...)
	}
	return out
}

func newTestTracer(t *testing.T, status int, ratio float64) (*Tracer, *collector, *Metrics, *bytes.Buffer) {
	c := &collector{status: status}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	_, m := newTestMetrics(State{})
	logged := &bytes.Buffer{}
	return NewTracer(Tracing{
		URL: s.URL + "/v1/traces", Headers: map[string]string{"x-team": "secret"}, Client: s.Client(), Ratio: ratio, Version: "1.0", Instance: "127.0.0.1:8080",
		Random: rand.NewChaCha8([32]byte{1}), Upstreams: func(string) TracedUpstream { return TracedUpstream{"engine.internal", 30000} },
		Log: jsonLogger(logged), Metrics: m,
	}), c, m, logged
}

func traced() *Record {
	return &Record{
		ID: "kvg-1", Start: time.Unix(1_700_000_000, 7), Total: 1500 * time.Millisecond, Blocked: 1499 * time.Millisecond, FirstByte: time.Second,
		Tenant: "alpha", Upstream: "glm", Engine: "sglang", Dialect: "openai", Route: "/v1/chat/completions", Model: "zai-org/GLM-5", Stream: true, Status: 200,
		Verdict: "pass", Reason: "fits", BodyBytes: 321, PromptTokens: 12, OutputTokens: 34, LimitTokens: 10_640,
	}
}

// The bytes that go to a collector, as they were read by the JSON unmarshaler
// of OpenTelemetry's own collector.
func TestSpansAreWhatACollectorReads(t *testing.T) {
	tracer, c, _, _ := newTestTracer(t, 200, 1)
	tracer.Trace(traced())
	leak := traced()
	leak.Code, leak.Findings = "leak_stopped", []Finding{{Kind: "leak", Explain: "words"}}
	tracer.Trace(leak)
	tracer.Close(t.Context())
	if c.header.Get("Content-Type") != "application/json" || c.header.Get("X-Team") != "secret" {
		t.Errorf("headers %v", c.header)
	}
	var got bytes.Buffer
	if err := json.Indent(&got, c.bodies[0], "", " "); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/spans.json")
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(want)) != got.String() {
		t.Errorf("got\n%s", got.String())
	}
}

func TestWhatClientsWriteIsNoSpan(t *testing.T) {
	tracer, c, _, _ := newTestTracer(t, 200, 1)
	r := traced()
	r.Model = "please repeat the last prompt"
	tracer.Trace(r)
	tracer.Close(t.Context())
	spans := c.spans(t)
	if len(spans) != 1 || spans[0]["name"] != "chat" || bytes.Contains(c.bodies[0], []byte("repeat")) {
		t.Errorf("%v", spans)
	}
}

func TestAShareIsTraced(t *testing.T) {
	tracer, c, m, _ := newTestTracer(t, 200, 0.25)
	const n = 1000
	for range n {
		tracer.Trace(traced())
	}
	tracer.Close(t.Context())
	if got := len(c.spans(t)); got < n/5 || got > n*3/10 {
		t.Errorf("%d of %d traced at a ratio of 0.25", got, n)
	}
	none, c, _, _ := newTestTracer(t, 200, 0)
	none.Trace(traced())
	none.Close(t.Context())
	if len(c.bodies) != 0 || testutil.ToFloat64(m.spans) != 0 {
		t.Errorf("%d sent at a ratio of 0", len(c.bodies))
	}
}

// A collector that fails costs spans and nothing else.
func TestSpansThatCannotBeSentAreCounted(t *testing.T) {
	tracer, _, m, logged := newTestTracer(t, 503, 1)
	for range 3 {
		tracer.Trace(traced())
	}
	tracer.Close(t.Context())
	if got := testutil.ToFloat64(m.spans); got != 3 {
		t.Errorf("%v spans dropped, want 3", got)
	}
	if !strings.Contains(logged.String(), "the collector answers 503") || strings.Contains(logged.String(), "secret") {
		t.Errorf("logged %s", logged.String())
	}
}

func TestAStalledCollectorHoldsNobodyUp(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(release) })
	_, m := newTestMetrics(State{})
	tracer := NewTracer(Tracing{URL: s.URL, Client: s.Client(), Ratio: 1, Random: rand.NewChaCha8([32]byte{1}), Metrics: m, Upstreams: func(string) TracedUpstream { return TracedUpstream{} }})
	const n = queuedSpans + 3*batchedSpans
	for range n {
		tracer.Trace(traced())
	}
	if got := testutil.ToFloat64(m.spans); got < n-queuedSpans-batchedSpans {
		t.Errorf("%v dropped, want %d or more", got, n-queuedSpans-batchedSpans)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tracer.Close(ended)
}
