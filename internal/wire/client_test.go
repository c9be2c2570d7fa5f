package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestBaseURL(t *testing.T) {
	for _, c := range []struct{ base, api, root string }{
		{"http://h:8000", "http://h:8000/v1", "http://h:8000"},
		{"http://h:8000/", "http://h:8000/v1", "http://h:8000"},
		{" http://h:8000/v1/ ", "http://h:8000/v1", "http://h:8000"},
		{"http://h/v1/chat/completions", "http://h/v1", "http://h"},
		{"https://openrouter.ai/api", "https://openrouter.ai/api/v1", "https://openrouter.ai/api"},
		{"https://api.z.ai/api/paas/v4", "https://api.z.ai/api/paas/v4", "https://api.z.ai/api/paas"},
		{"https://g.test/v1beta/openai/", "https://g.test/v1beta/openai", "https://g.test/v1beta/openai"},
		{"http://[::1]:8000/vllm", "http://[::1]:8000/vllm/v1", "http://[::1]:8000/vllm"},
	} {
		cl, err := NewClient(Options{BaseURL: c.base})
		if err != nil || cl.api != c.api || cl.root != c.root {
			t.Errorf("%s: %+v, %v", c.base, cl, err)
		}
	}
}

func TestBadOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o600)
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, `scheme ""`},
		{Options{BaseURL: "localhost:8000"}, `scheme "localhost"`},
		{Options{BaseURL: "127.0.0.1:8000"}, "cannot be parsed"},
		{Options{BaseURL: "ftp://h"}, `scheme "ftp"`},
		{Options{BaseURL: "http://"}, "names no host"},
		{Options{BaseURL: "http://:80/v1"}, "names no host"},
		{Options{BaseURL: "http://user:sk-marked-secret@h/"}, "user or password"},
		{Options{BaseURL: "http://sk-marked-secret%zz@h/"}, "cannot be parsed"},
		{Options{BaseURL: "http://h/v1?key=sk-marked-secret"}, "query"},
		{Options{BaseURL: "http://h/#x"}, "fragment"},
		{Options{BaseURL: "http://h", Dialect: "esperanto"}, "use one of openai"},
		{Options{BaseURL: "http://h", SpillDir: file}, "not a directory"},
		{Options{BaseURL: "http://h", SpillDir: file + "-missing"}, "spill directory"},
	} {
		_, err := NewClient(c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}

// fussy is a server that refuses fields, and counts what it was asked.
func fussy(t *testing.T, refuse map[string]string) (*Client, *atomic.Int32, func() string) {
	var n atomic.Int32
	var last atomic.Value
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		body, _ := io.ReadAll(r.Body)
		last.Store(string(body))
		var doc map[string]any
		json.Unmarshal(body, &doc)
		for field, words := range refuse {
			if _, has := doc[field]; has {
				w.WriteHeader(400)
				fmt.Fprintf(w, `{"error":{"message":%q}}`, words)
				return
			}
		}
		io.WriteString(w, goodStream)
	}, Options{SpillDir: t.TempDir(), KeepInMemory: 1})
	return c, &n, func() string { return last.Load().(string) }
}

func TestRefusedFieldsAreLearned(t *testing.T) {
	c, n, last := fussy(t, map[string]string{
		"max_tokens":     "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
		"stream_options": "Unrecognized request argument supplied: stream_options",
		"temperature":    "Unsupported value: 'temperature' does not support 0 with this model.",
	})
	a := c.Do(context.Background(), prompt("hi"))
	if !a.Served() || a.Resent != 3 || n.Load() != 4 {
		t.Fatalf("resent %d, asked %d, refusal %+v", a.Resent, n.Load(), a.Refusal)
	}
	want := `{"model":"m","messages":[{"role":"user","content":"hi"}],"max_completion_tokens":8,"stream":true}`
	if last() != want {
		t.Errorf("body %s", last())
	}
	if a = c.Do(context.Background(), prompt("hi")); a.Resent != 0 || n.Load() != 5 {
		t.Errorf("asked again: resent %d", a.Resent)
	}
	if left, _ := filepath.Glob(filepath.Join(c.o.SpillDir, "*")); len(left) != 2 {
		t.Errorf("raw files of answers that were thrown away: %v", left)
	}
}

// A target that refuses both names of a field, or one that we do not send, is
// not asked for ever.
func TestRefusedFieldsEnd(t *testing.T) {
	no := "Unsupported parameter: '%s' is not supported with this model."
	c, n, _ := fussy(t, map[string]string{"max_tokens": fmt.Sprintf(no, "max_tokens"), "max_completion_tokens": fmt.Sprintf(no, "max_completion_tokens")})
	a := c.Do(context.Background(), prompt("hi"))
	wantRefusal(t, a, RefusedParameter, "not supported")
	if n.Load() > 4 {
		t.Errorf("asked %d times", n.Load())
	}
	c, n, _ = fussy(t, map[string]string{"model": fmt.Sprintf(no, "model")})
	wantRefusal(t, c.Do(context.Background(), prompt("hi")), RefusedParameter, "not supported")
	if n.Load() != 1 {
		t.Errorf("asked %d times", n.Load())
	}
}

func TestRefusedFieldsUnderConcurrency(t *testing.T) {
	c, _, _ := fussy(t, map[string]string{"max_tokens": "Unsupported parameter: 'max_tokens'"})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if a := c.Do(context.Background(), prompt("hi")); !a.Served() {
				t.Errorf("refusal %+v", a.Refusal)
			}
		})
	}
	wg.Wait()
}

// Nothing is sent twice but for a refused field.
func TestNoRetries(t *testing.T) {
	for _, status := range []int{400, 401, 429, 500, 503} {
		var n atomic.Int32
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			n.Add(1)
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(status)
		}, Options{})
		c.Do(context.Background(), prompt("hi"))
		if n.Load() != 1 {
			t.Errorf("status %d: %d requests", status, n.Load())
		}
	}
	var n atomic.Int32
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if n.Add(1) == 2 { // on a connection that was used before
			hijack(w).Close()
			return
		}
		io.WriteString(w, goodStream)
	}, Options{})
	c.Do(context.Background(), prompt("hi"))
	wantFailure(t, c.Do(context.Background(), prompt("hi")), FailedCut, "before any answer")
	if n.Load() != 2 {
		t.Errorf("%d requests", n.Load())
	}
}

func TestRequestHeaders(t *testing.T) {
	var got http.Header
	var length int64
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got, length = r.Header, r.ContentLength
		io.WriteString(w, goodStream)
	}, Options{UserAgent: "ua/1"})
	r := prompt("hi")
	r.Key = "sk-1"
	c.Do(context.Background(), r)
	if got.Get("Authorization") != "Bearer sk-1" || got.Get("User-Agent") != "ua/1" || got.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", got)
	}
	if size, _ := bodySize(chatBody(r, quirks{})); length != size {
		t.Errorf("content length %d, want %d", length, size)
	}
	r.Key = ""
	if c.Do(context.Background(), r); got.Get("Authorization") != "" {
		t.Errorf("headers %v", got)
	}
}

// A connection is used again.
func TestKeepAlive(t *testing.T) {
	var conns atomic.Int32
	srv := httptest.NewUnstartedServer(answer(200, "text/event-stream", goodStream))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	c := dial(t, srv.URL, Options{})
	for range 20 {
		c.Do(context.Background(), prompt("hi"))
	}
	if conns.Load() != 1 {
		t.Errorf("%d connections for 20 exchanges", conns.Load())
	}
}

// TestKeyStaysSecret plants a key, has servers echo it wherever they can, and
// looks for it in all that comes back.
func TestKeyStaysSecret(t *testing.T) {
	const key = "sk-marked-secret-0123456789"
	dir := t.TempDir()
	echo := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			got := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
			if got != key {
				t.Errorf("the key did not arrive: %q", got)
			}
			w.Header().Set("X-Your-Key", got)
			w.Header().Set("Trailer", "X-Late")
			w.Header().Set("Location", "https://127.0.0.1:1/"+got+"?k="+got)
			w.WriteHeader(status)
			flush(w, strings.ReplaceAll(body, "KEY", got))
			w.Header().Set("X-Late", got)
		}
	}
	for name, h := range map[string]http.HandlerFunc{
		"401":         echo(401, `{"error":{"message":"Incorrect API key provided: KEY","code":"invalid_api_key"}}`),
		"500":         echo(500, `boom KEY`),
		"html":        echo(200, `<html><title>KEY</title>`),
		"redirect":    echo(307, `KEY`),
		"content":     echo(200, strings.ReplaceAll(goodStream, "world", "KEY")),
		"ids":         echo(200, strings.ReplaceAll(goodStream, "c1", "KEY")),
		"error in it": echo(200, events(`{"error":{"message":"KEY","code":"KEY"}}`)),
		"cut":         echo(200, events(strings.ReplaceAll(chunkHello, "hello", "KEY"))+"data: KEY"),
		"garbage":     echo(200, events("KEY")),
		"hang up":     func(w http.ResponseWriter, r *http.Request) { hijack(w).Close() },
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, h, Options{SpillDir: dir, KeepInMemory: 16})
			r := prompt("hi")
			r.Key = key
			a := c.Do(context.Background(), r)
			raw := string(a.Raw.Bytes)
			if a.Raw.Path != "" {
				b, err := os.ReadFile(a.Raw.Path)
				if err != nil {
					t.Fatal(err)
				}
				raw = string(b)
			}
			doc, _ := json.Marshal(a)
			_, models := c.Models(context.Background(), key)
			_, _, count := c.CountTokens(context.Background(), key, "m", r.Messages)
			all := fmt.Sprintf("%+v %+v %+v %s %s %v %v", a, a.Refusal, a.Failure, doc, raw, models, count)
			if strings.Contains(all, key) || strings.Contains(all, "marked-secret") {
				t.Errorf("the key is in %s", all)
			}
		})
	}
	r := prompt("hi")
	r.Key = "sk-marked-secret\n0123"
	a := serve(t, answer(200, "", goodStream), Options{}).Do(context.Background(), r)
	wantFailure(t, a, FailedRequest, "no header can carry")
	if strings.Contains(a.Failure.Message, "marked") {
		t.Errorf("the key is in %q", a.Failure.Message)
	}
}

func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, dog := newWatchdog(context.Background(), time.Minute, "no answer")
		for range 10 {
			time.Sleep(59 * time.Second)
			dog.touch()
		}
		dog.phase(time.Second, "no further byte")
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatal("barked early")
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		var s *stalled
		if !errors.As(context.Cause(ctx), &s) || s.Error() != "no further byte for 1s" {
			t.Fatalf("cause %v", context.Cause(ctx))
		}
		dog.stop()
	})
}
