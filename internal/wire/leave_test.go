package wire

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// talker answers with a piece of text each time that it is asked for one, and
// says when its client is gone.
func talker(t *testing.T, o Options) (c *Client, more chan string, gone chan struct{}) {
	more, gone = make(chan string), make(chan struct{})
	c = serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		defer close(gone)
		for {
			select {
			case s := <-more:
				fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", s)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}, o)
	return c, more, gone
}

func left(t *testing.T, a *Answer) {
	t.Helper()
	if a.Failure == nil || a.Failure.Kind != FailedCanceled || a.Refusal != nil {
		t.Errorf("ended as %+v, %+v, want a client that went away", a.Failure, a.Refusal)
	}
}

// A client that goes away once it has sent its prompt is gone for the target, too.
func TestHangupOncePromptIsSent(t *testing.T) {
	for _, after := range []time.Duration{0, time.Millisecond} {
		c, _, gone := talker(t, Options{})
		left(t, c.Do(t.Context(), Request{Messages: prompt("x").Messages, Stream: true, Hangup: Hangup{Sent: true, After: after}}))
		<-gone
	}
}

// What has come before a client goes away is kept.
func TestHangupInTheMiddleOfAnAnswer(t *testing.T) {
	c, more, gone := talker(t, Options{})
	go func() {
		more <- "one "
		more <- "two "
	}()
	a := c.Do(t.Context(), Request{Messages: prompt("x").Messages, Stream: true, Hangup: Hangup{Text: 8}})
	left(t, a)
	if got := a.Text(Content); got != "one two " || !strings.Contains(string(a.Raw.Bytes), "two") || a.FirstToken.IsZero() {
		t.Errorf("kept %q and %q", got, a.Raw.Bytes)
	}
	<-gone
}

// An answer that is complete before its client would go away is an answer.
func TestHangupTooLate(t *testing.T) {
	for _, h := range []Hangup{{Text: 1 << 20}, {Sent: true, After: time.Hour}} {
		c := serve(t, answer(200, "text/event-stream", goodStream), Options{})
		if a := c.Do(t.Context(), Request{Messages: prompt("x").Messages, Stream: true, Hangup: h}); !a.Served() {
			t.Errorf("%+v: %+v", h, a.Failure)
		}
	}
}

// A slow reader gets the same answer, in small pieces.
func TestPace(t *testing.T) {
	long := strings.Repeat("a", 4*paceChunk)
	c := serve(t, answer(200, "application/json", `{"choices":[{"message":{"content":"`+long+`"},"finish_reason":"stop"}]}`), Options{})
	a := c.Do(t.Context(), Request{Messages: prompt("x").Messages, Pace: time.Microsecond})
	if !a.Served() || a.Text(Content) != long {
		t.Errorf("got %q, %+v", a.Text(Content), a.Failure)
	}
	r := &paced{t.Context(), strings.NewReader(long), 1}
	if n, err := r.Read(make([]byte, 4*paceChunk)); n != paceChunk || err != nil {
		t.Errorf("read %d, %v at a time", n, err)
	}
}

// Equal names make equal headers; a target that takes no name in the body is
// asked again without.
func TestRequestNames(t *testing.T) {
	var heads []http.Header
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		heads = append(heads, r.Header)
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"rid"`) {
			w.WriteHeader(400)
			io.WriteString(w, `{"error":{"message":"Unrecognized request argument supplied: request_id","param":"request_id"}}`)
			return
		}
		io.WriteString(w, goodStream)
	}, Options{})
	for range 2 {
		if a := c.Do(t.Context(), Request{Messages: prompt("x").Messages, RequestID: "same", TraceID: "one"}); !a.Served() {
			t.Fatalf("%+v", a.Refusal)
		}
	}
	c.Do(t.Context(), Request{Messages: prompt("x").Messages})
	if len(heads) != 4 {
		t.Fatalf("asked %d times", len(heads))
	}
	for _, h := range heads[:3] {
		if h.Get("X-Request-Id") != "same" || h.Get("Traceparent") != traceparent("one") {
			t.Errorf("headers %v", h)
		}
	}
	if h := heads[3]; h.Get("X-Request-Id")+h.Get("Traceparent") != "" {
		t.Errorf("headers of a request without a name: %v", h)
	}
	if p := traceparent("one"); len(p) != 55 || p == traceparent("two") {
		t.Errorf("traceparent %q", p)
	}
}
