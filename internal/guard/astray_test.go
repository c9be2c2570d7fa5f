package guard

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kvcanary/kvcanary/canary"
)

// slowClient is a client's connection as HTTP/2 has it after a reset: writing
// fails, and what was to be written is still being sent.
type slowClient struct {
	header http.Header
	sent   [][]byte
	was    [][]byte
}

func (c *slowClient) Header() http.Header { return c.header }
func (c *slowClient) WriteHeader(int)     {}
func (c *slowClient) FlushError() error   { return nil }
func (c *slowClient) Write(p []byte) (int, error) {
	c.sent, c.was = append(c.sent, p), append(c.was, bytes.Clone(p))
	return 0, errors.New("the stream was reset")
}

// TestNothingIsUsedAgainThatMayBeUnderWay: what a failed write may still be
// sending is never overwritten with another request's answer.
func TestNothingIsUsedAgainThatMayBeUnderWay(t *testing.T) {
	for _, audit := range []bool{false, true} {
		for _, kind := range []string{"application/json", "text/event-stream"} {
			var letter atomic.Value
			letter.Store("a")
			engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", kind)
				text := `{"choices":[{"message":{"content":"` + strings.Repeat(letter.Load().(string), 1500) + `"}}]}`
				if kind != "application/json" {
					text = "data: " + text + "\n\n"
				}
				io.WriteString(w, text)
			}))
			f := guardBefore(t, engine.URL, func(o *Options) {
				o.Watch = Watch{Audit: audit, Coders: []*canary.Coder{canary.New(canary.Key{1})}}
			})
			ask := func(w http.ResponseWriter) {
				defer func() { recover() }() // how a handler has the connection closed
				r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(chat))
				r.Header.Set("Content-Type", "application/json")
				f.ServeHTTP(w, r)
			}
			gone := &slowClient{header: http.Header{}}
			ask(gone)
			letter.Store("b")
			for range 4 {
				rec := httptest.NewRecorder()
				if ask(rec); !strings.Contains(rec.Body.String(), "bbb") {
					t.Fatalf("audit %v, %s: %d %q", audit, kind, rec.Code, rec.Body)
				}
			}
			if len(gone.sent) == 0 {
				t.Fatalf("audit %v, %s: nothing was written", audit, kind)
			}
			for i := range gone.sent {
				if !bytes.Equal(gone.sent[i], gone.was[i]) {
					t.Errorf("audit %v, %s: what is under way to one client has become %.60q", audit, kind, gone.sent[i])
				}
			}
			engine.Close()
		}
	}
}
