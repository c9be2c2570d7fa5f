// Package clients tries the guard with clients that nobody here wrote: they are
// pointed at it and changed in nothing else.
package clients

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/guard"
	"github.com/kvcanary/kvcanary/internal/guard/admit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// How many tokens an engine can hold, for prompts that fit and one that does not.
const (
	roomy = 8 << 20
	tight = 20_000
)

// engine answers each path with what is laid out for it, and keeps what it was sent.
type engine struct {
	mu     sync.Mutex
	bodies []string
	heads  []http.Header
	left   chan struct{} // gets one for each client that has gone before its stream ended
	answer map[string]func(http.ResponseWriter, *http.Request)
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	e.mu.Lock()
	e.bodies, e.heads = append(e.bodies, string(body)), append(e.heads, r.Header.Clone())
	e.mu.Unlock()
	if f := e.answer[r.URL.Path]; f != nil {
		f(w, r)
		return
	}
	http.NotFound(w, r)
}

// seen is the newest body that came to the engine, and how many came.
func (e *engine) seen() (body string, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.bodies) == 0 {
		return "", 0
	}
	return e.bodies[len(e.bodies)-1], len(e.bodies)
}

// fence puts a guard before the engine: it judges every prompt, isolates its
// tenants and watches strictly, as it does by default. It returns its URL. The
// engine can hold so many tokens.
func (e *engine) fence(t *testing.T, limit int) string {
	t.Helper()
	e.left = make(chan struct{}, 8)
	upstream := httptest.NewServer(e)
	g, err := guard.New(guard.Options{
		Upstreams: []guard.Upstream{{Name: "engine", BaseURL: upstream.URL, Engine: "sglang", Given: admit.Given{Tokens: limit}}},
		Tenants:   guard.Tenants{Any: true},
		Admission: guard.Admission{Policy: admit.Default()},
		Watch:     guard.Watch{Coders: []*canary.Coder{canary.New(canary.Key{1})}},
		Limits:    guard.Limits{StallTime: 10 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := guard.NewServer(g, guard.Limits{}, slog.New(slog.DiscardHandler))
	over := make(chan struct{})
	go func() {
		defer close(over)
		server.Serve(l)
	}()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		server.Close()
		<-over
		g.Drain(t.Context())
		upstream.CloseClientConnections()
		upstream.Close()
	})
	return "http://" + l.Addr().String()
}

// document answers with JSON.
func document(status int, body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// counts answers with the length of the request: it takes a byte for a token.
func counts(member string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		document(200, fmt.Sprintf(`{%q:%d}`, member, r.ContentLength))(w, r)
	}
}

// stream answers with events, each sent by itself.
func stream(events ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			io.WriteString(w, e+"\n\n")
			w.(http.Flusher).Flush()
		}
	}
}

// endless streams one event again and again until the client has gone.
func (e *engine) endless(begin, again string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, begin)
		for r.Context().Err() == nil {
			io.WriteString(w, again+"\n\n")
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(time.Millisecond):
			}
		}
		e.left <- struct{}{}
	}
}

// wantLeft waits until the engine knows that the client has gone.
func (e *engine) wantLeft(t *testing.T) {
	t.Helper()
	select {
	case <-e.left:
	case <-time.After(time.Minute):
		t.Error("the engine goes on computing for a client that has gone")
	}
}

// large is a prompt of some four megabytes.
var large = strings.Repeat("It was a bright cold day and the clocks were striking. ", 75_000)
