package guard

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Tracing is where spans go and what they say of the guard.
type Tracing struct {
	URL      string            // of the collector, OTLP over HTTP: http://127.0.0.1:4318/v1/traces
	Headers  map[string]string // to send with them: secrets
	Client   *http.Client      // that sends them
	Random   io.Reader         // of ids
	Ratio    float64           // of requests that are traced, 0 to 1
	Version  string            // of kvcanary
	Instance string            // of the guard: where it listens
	// Upstreams says where each is, by its name; Trace asks it.
	Upstreams func(name string) TracedUpstream
	Log       *slog.Logger // is told what could not be sent; nil for nobody
	Metrics   *Metrics     // counts what could not be sent; nil for nobody
}

// TracedUpstream is what spans say of an upstream.
type TracedUpstream struct {
	Host string // server.address
	Port int    // server.port; 0 unknown
}

// Tracer sends a span for each request to a collector of OpenTelemetry, in the
// JSON form of OTLP, with the attributes of the conventions for generative AI.
// Requests never wait for it. Every request begins a trace of its own: what
// clients say about traces is not believed, since some engines keep state by it.
//
// The form is opentelemetry.io/docs/specs/otlp (JSON Protobuf encoding: ids in
// hexadecimal, 64-bit numbers as strings). It is written here and not by the
// library, which brings gRPC and eleven megabytes into a program that is a
// fence, and takes its configuration from environment variables too.
type Tracer struct {
	t     Tracing
	queue chan span
	stop  chan struct{}
	done  chan struct{}
	once  sync.Once
}

const (
	queuedSpans  = 2048
	batchedSpans = 256
	batchTime    = time.Second
	sendTime     = 5 * time.Second
)

// NewTracer starts a tracer; Close ends it.
func NewTracer(t Tracing) *Tracer {
	out := &Tracer{t: t, queue: make(chan span, queuedSpans), stop: make(chan struct{}), done: make(chan struct{})}
	go out.run()
	return out
}

// Trace takes a request that has ended. It never blocks; it is safe for
// concurrent use if Random is.
func (t *Tracer) Trace(r *Record) {
	if t == nil {
		return
	}
	var ids [24]byte
	if _, err := io.ReadFull(t.t.Random, ids[:]); err != nil {
		t.lost(1, fmt.Errorf("make the ids of a span: %w", err))
		return
	}
	// The last 56 bits of the trace id decide, as samplers of OpenTelemetry do.
	if float64(binary.BigEndian.Uint64(ids[8:16])>>8) >= t.t.Ratio*(1<<56) {
		return
	}
	select {
	case t.queue <- t.span(r, ids):
	default:
		t.lost(1, errors.New("too many spans wait"))
	}
}

// Close sends what waits, until ctx ends.
func (t *Tracer) Close(ctx context.Context) {
	t.once.Do(func() { close(t.stop) })
	defer t.t.Client.CloseIdleConnections()
	select {
	case <-t.done:
	case <-ctx.Done():
	}
}

func (t *Tracer) run() {
	defer close(t.done)
	tick := time.NewTicker(batchTime)
	defer tick.Stop()
	var batch []span
	for {
		last := false
		select {
		case s := <-t.queue:
			if batch = append(batch, s); len(batch) < batchedSpans {
				continue
			}
		case <-tick.C:
		case <-t.stop:
			last = true
			for n := len(t.queue); n > 0; n-- {
				batch = append(batch, <-t.queue)
			}
		}
		if len(batch) > 0 {
			if err := t.send(batch); err != nil {
				t.lost(len(batch), err)
			}
			batch = batch[:0]
		}
		if last {
			return
		}
	}
}

// send gives a batch to the collector. One that it does not take is lost: a
// collector that is down must not make a guard grow.
func (t *Tracer) send(batch []span) error {
	body, err := json.Marshal(t.request(batch))
	if err != nil {
		return fmt.Errorf("write spans as JSON: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), sendTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.t.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("send spans: %w", err)
	}
	for name, value := range t.t.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := t.t.Client.Do(req)
	if err != nil {
		return fmt.Errorf("send spans: %w", err)
	}
	defer res.Body.Close()
	io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("send spans: the collector answers %d", res.StatusCode)
	}
	return nil
}

func (t *Tracer) lost(n int, err error) {
	t.t.Metrics.SpansDropped(n)
	if t.t.Log != nil {
		t.t.Log.Warn("spans not sent", "spans", n, "trouble", oneLine(err))
	}
}

// The messages of OTLP that a guard sends.
type (
	otlpRequest struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	span struct {
		TraceID    string      `json:"traceId"`
		SpanID     string      `json:"spanId"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"`
		Start      string      `json:"startTimeUnixNano"`
		End        string      `json:"endTimeUnixNano"`
		Attributes []attribute `json:"attributes"`
		Status     spanStatus  `json:"status"`
	}
	spanStatus struct {
		Code    int    `json:"code,omitempty"`
		Message string `json:"message,omitempty"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		String *string  `json:"stringValue,omitempty"`
		Int    *string  `json:"intValue,omitempty"`
		Double *float64 `json:"doubleValue,omitempty"`
		Bool   *bool    `json:"boolValue,omitempty"`
	}
)

const (
	spanKindServer  = 2
	spanStatusError = 2
)

func (t *Tracer) request(batch []span) otlpRequest {
	return otlpRequest{[]resourceSpans{{
		Resource: resource{attributes(
			text("service.name", "kvcanary-guard"), text("service.version", t.t.Version), text("service.instance.id", t.t.Instance))},
		ScopeSpans: []scopeSpans{{scope{"github.com/kvcanary/kvcanary/internal/guard", t.t.Version}, batch}},
	}}}
}

// span is what a trace shows of a request.
func (t *Tracer) span(r *Record, ids [24]byte) span {
	operation, model := operationOf(r.Route), traceableModel(r.Model)
	name := r.Route
	if operation != "" {
		name = operation
		if model != "" {
			name += " " + model
		}
	}
	up := t.t.Upstreams(r.Upstream)
	s := span{
		TraceID: hex.EncodeToString(ids[:16]), SpanID: hex.EncodeToString(ids[16:]), Name: name, Kind: spanKindServer,
		Start: strconv.FormatInt(r.Start.UnixNano(), 10), End: strconv.FormatInt(r.Start.Add(r.Total).UnixNano(), 10),
		Attributes: attributes(
			text("gen_ai.operation.name", operation), text("gen_ai.provider.name", r.Engine), text("gen_ai.request.model", model),
			number("gen_ai.usage.input_tokens", r.PromptTokens), number("gen_ai.usage.output_tokens", r.OutputTokens),
			text("server.address", up.Host), number("server.port", up.Port),
			text("http.route", r.Route), number("http.response.status_code", r.Status), number("http.request.body.size", int(r.BodyBytes)),
			text("error.type", errorType(r)),
			text("kvcanary.request_id", r.ID), text("kvcanary.tenant", r.Tenant), text("kvcanary.upstream", r.Upstream),
			text("kvcanary.admission.verdict", r.Verdict), text("kvcanary.admission.reason", r.Reason),
			number("kvcanary.prompt.counted_tokens", r.CountedTokens), number("kvcanary.limit_tokens", r.LimitTokens),
			number("kvcanary.findings", len(r.Findings)), seconds("kvcanary.first_byte_seconds", r.FirstByte), seconds("kvcanary.overhead_seconds", own(r)),
			truthOf("kvcanary.stream", r.Stream),
		),
	}
	if why := errorType(r); why != "" && (r.Status >= 500 || len(r.Findings) > 0) {
		s.Status = spanStatus{spanStatusError, why}
	}
	return s
}

// errorType is the word of what went wrong, "" for nothing: one of few.
func errorType(r *Record) string {
	switch {
	case len(r.Findings) > 0:
		return word(metricFindings, r.Findings[0].Kind)
	case r.Code != "":
		return r.Code
	case r.Status >= 400:
		return strconv.Itoa(r.Status)
	case r.Status == 0:
		return codeGone
	}
	return ""
}

// operationOf is gen_ai.operation.name of a route, "" for one that generates
// nothing.
func operationOf(route string) string {
	switch route {
	case "/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat":
		return "chat"
	case "/v1/completions", "/api/generate":
		return "text_completion"
	case "/v1/embeddings":
		return "embeddings"
	}
	return ""
}

// traceableModel is a model's name as it may stand in a trace: a client could
// write anything into the field.
func traceableModel(s string) string {
	if len(s) > 128 {
		return ""
	}
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._:@/-", c) >= 0) {
			return ""
		}
	}
	return s
}

func attributes(all ...attribute) []attribute {
	out := all[:0]
	for _, a := range all {
		if a.Value != (value{}) {
			out = append(out, a)
		}
	}
	return out
}

func text(key, s string) attribute {
	if s == "" {
		return attribute{}
	}
	return attribute{key, value{String: &s}}
}

func number(key string, n int) attribute {
	if n == 0 {
		return attribute{}
	}
	s := strconv.Itoa(n)
	return attribute{key, value{Int: &s}}
}

func seconds(key string, d time.Duration) attribute {
	s := d.Seconds()
	return attribute{key, value{Double: &s}}
}

func truthOf(key string, b bool) attribute { return attribute{key, value{Bool: &b}} }
