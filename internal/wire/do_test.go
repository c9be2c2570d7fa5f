package wire

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// text is a Text that is held in memory.
type text string

func (s text) Open() io.Reader { return strings.NewReader(string(s)) }
func (s text) Size() int64     { return int64(len(s)) }

// prompt is a small request.
func prompt(s string) Request {
	return Request{Model: "m", Messages: []Message{{Role: "user", Text: text(s)}}, MaxTokens: 8, Stream: true}
}

// serve starts a server and a client for it.
func serve(t testing.TB, h http.HandlerFunc, o Options) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return dial(t, srv.URL, o)
}

func dial(t testing.TB, url string, o Options) *Client {
	t.Helper()
	o.BaseURL = url
	c, err := NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// say answers with a status, a content type and a body, whatever is asked.
func answer(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func events(lines ...string) string {
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "data: %s\n\n", l)
	}
	return b.String()
}

const (
	chunkHello = `{"id":"c1","model":"m1","choices":[{"index":0,"delta":{"role":"assistant","content":"hello "}}]}`
	chunkWorld = `{"id":"c1","choices":[{"index":0,"delta":{"content":"world"}}]}`
	chunkStop  = `{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	chunkUsage = `{"id":"c1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3}}}`
)

var goodStream = events(chunkHello, chunkWorld, chunkStop, chunkUsage, "[DONE]")

func TestDoStream(t *testing.T) {
	c := serve(t, answer(200, "text/event-stream", goodStream), Options{})
	a := c.Do(context.Background(), prompt("hi"))
	if !a.Served() || a.Text(Content) != "hello world" || a.Finish != "stop" || a.ID != "c1" || a.Model != "m1" {
		t.Fatalf("answer %+v, refusal %+v, failure %+v", a, a.Refusal, a.Failure)
	}
	if a.Usage == nil || *a.Usage != (Usage{Prompt: 7, Completion: 2, Cached: 3}) {
		t.Errorf("usage %+v", a.Usage)
	}
	if string(a.Raw.Bytes) != goodStream || a.Raw.Size != int64(len(goodStream)) || a.Raw.Truncated {
		t.Errorf("raw %+v", a.Raw)
	}
	if a.Start.After(a.FirstToken) || a.FirstToken.After(a.End) || a.End.Sub(a.Start) > time.Minute {
		t.Errorf("times %v %v %v", a.Start, a.FirstToken, a.End)
	}
	if !strings.Contains(a.Text(Header), "Content-Type: text/event-stream\n") {
		t.Errorf("header piece %q", a.Text(Header))
	}
}

func TestDoDocument(t *testing.T) {
	c := serve(t, answer(200, "application/json", `{"id":"c2","model":"m","choices":[{"index":0,"message":{"content":"hello"},"finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`), Options{})
	r := prompt("hi")
	r.Stream = false
	a := c.Do(context.Background(), r)
	if !a.Served() || a.Text(Content) != "hello" || a.Finish != "length" || a.Usage.Prompt != 1 {
		t.Fatalf("answer %+v, refusal %+v, failure %+v", a, a.Refusal, a.Failure)
	}
}

// quiet is for servers whose complaints are expected.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
