package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

var two = []Message{{Role: "system", Text: text("be \"brief\"")}, {Role: "user", Text: text("hi")}}

// counting serves tokenize at a path and counts all requests.
func counting(t *testing.T, path string, status int, body string) (*Client, *atomic.Int32) {
	var n atomic.Int32
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		got, _ := io.ReadAll(r.Body)
		if r.URL.Path != path {
			http.NotFound(w, r)
			return
		}
		var req struct {
			Model    string
			Messages []struct{ Role, Content string }
		}
		if err := json.Unmarshal(got, &req); err != nil || req.Model != "m" || len(req.Messages) != 2 || req.Messages[0].Content != `be "brief"` {
			t.Errorf("request %s: %v", got, err)
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}, Options{}), &n
}

func TestCountTokens(t *testing.T) {
	for _, c := range []struct {
		path, body string
		first      int32 // requests of the first count
		want       int
	}{
		{"/tokenize", `{"count":42,"max_model_len":8192,"tokens":[1,2,3]}`, 1, 42},
		{"/v1/tokenize", `{"tokens":[[1],{"count":7},"count"],"count":42}`, 2, 42},
		{"/tokenize", `{"":"count","x":null,"count":42`, 1, 42},
	} {
		cl, n := counting(t, c.path, 200, c.body)
		for i := range int32(3) {
			got, ok, err := cl.CountTokens(context.Background(), "", "m", two)
			if got != c.want || !ok || err != nil {
				t.Errorf("%s: %d, %v, %v", c.body, got, ok, err)
			}
			if n.Load() != c.first+i {
				t.Errorf("%s: %d requests after %d counts", c.path, n.Load(), i+1)
			}
		}
	}
}

func TestNoTokenizer(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
	}{
		{404, ""}, {405, ""}, {501, ""}, {400, `{"error":"content is required"}`}, {422, `{"detail":[{"loc":["body","prompt"],"msg":"field required"}]}`},
		{200, "<html></html>"}, {200, ""}, {200, `{"tokens":[]}`}, {200, `[1,2]`}, {200, `"count"`}, {200, `{"count":"many"}`}, {200, `{"count":0}`}, {200, `{"count":-4}`}, {200, `{"error":"no"}`},
	} {
		cl, n := counting(t, "/tokenize", c.status, c.body)
		for range 3 {
			if got, ok, err := cl.CountTokens(context.Background(), "", "m", two); got != 0 || ok || err != nil {
				t.Errorf("%d %s: %d, %v, %v", c.status, c.body, got, ok, err)
			}
		}
		if n.Load() != int32(len(countPaths)) {
			t.Errorf("%d %s: asked %d times", c.status, c.body, n.Load())
		}
	}
}

func TestCountErrors(t *testing.T) {
	for _, c := range []struct {
		status  int
		body    string
		refusal RefusalKind
	}{
		{401, "no", RefusedAuth}, {429, "no", RefusedRate}, {503, "", RefusedServer},
		{400, msg("This model's maximum context length is 8 tokens. However, your request has 9 input tokens."), RefusedContext},
	} {
		cl, _ := counting(t, "/tokenize", c.status, c.body)
		_, ok, err := cl.CountTokens(context.Background(), "", "m", two)
		e, is := errors.AsType[*CallError](err)
		if ok || !is || e.Refusal == nil || e.Refusal.Kind != c.refusal || !strings.Contains(err.Error(), fmt.Sprint(c.status)) {
			t.Errorf("%d: %v, %v", c.status, ok, err)
		}
		if _, ok, err := cl.CountTokens(context.Background(), "", "m", two); ok || err == nil {
			t.Errorf("%d: not asked again", c.status)
		}
	}
	for name, h := range map[string]http.HandlerFunc{
		"cut": func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			conn := hijack(w)
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"tokens\":[1,")
			conn.Close()
		},
		"silent": func(w http.ResponseWriter, r *http.Request) { flush(w, `{"tokens":[1,`); hang(r) },
	} {
		_, ok, err := serve(t, h, short).CountTokens(context.Background(), "", "m", two)
		e, is := errors.AsType[*CallError](err)
		want := map[string]FailureKind{"cut": FailedCut, "silent": FailedTimeout}[name]
		if ok || !is || e.Failure == nil || e.Failure.Kind != want {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
	if _, ok, err := serve(t, answer(200, "", ""), short).CountTokens(context.Background(), "", "m", []Message{{Role: "user", Text: broken{"x"}}}); ok || err == nil || !strings.Contains(err.Error(), "disk on fire") {
		t.Errorf("unreadable prompt: %v, %v", ok, err)
	}
}

// A long list of tokens is passed over, not kept.
func TestCountInBoundedMemory(t *testing.T) {
	const tokens = 1 << 18
	body := io.MultiReader(strings.NewReader(`{"tokens":[0`), io.LimitReader(endless(",123456"), 7*tokens), strings.NewReader(`],"count":262145}`))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n, err := readCount(body, "count")
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n != tokens+1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	// Without a collection in between, the heap would have grown to the sum.
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 8<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

func TestModels(t *testing.T) {
	list := `{"object":"list","data":[{"id":"a","max_model_len":8192},{"id":"b"},{"id":"c","context_length":5,"max_model_len":null},{"id":"d","context_window":6},{"id":"e","max_context_length":7},{"id":"f","max_input_tokens":-1}]}`
	var path string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) { path = r.URL.Path; io.WriteString(w, list) }, Options{})
	got, err := c.Models(context.Background(), "")
	if fmt.Sprint(got) != "[{a 8192} {b 0} {c 5} {d 6} {e 7} {f 0}]" || err != nil || path != "/v1/models" {
		t.Errorf("%v, %v at %s", got, err, path)
	}
	for _, body := range []string{"", "<html>", `{"error":"x"}`, `{"data":null}`, `[]`} {
		_, err := serve(t, answer(200, "", body), Options{}).Models(context.Background(), "")
		if e, ok := errors.AsType[*CallError](err); !ok || e.Failure == nil || e.Failure.Kind != FailedNotAPI {
			t.Errorf("%s: %v", body, err)
		}
	}
	_, err = serve(t, answer(401, "", "who?"), Options{}).Models(context.Background(), "")
	if e, ok := errors.AsType[*CallError](err); !ok || e.Refusal == nil || e.Refusal.Kind != RefusedAuth {
		t.Errorf("401: %v", err)
	}
	_, err = serve(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, io.LimitReader(endless(" "), 10<<30)) }, Options{MaxAnswerBytes: 1 << 20}).Models(context.Background(), "")
	if e, ok := errors.AsType[*CallError](err); !ok || e.Failure == nil || e.Failure.Kind != FailedTooBig {
		t.Errorf("endless: %v", err)
	}
}

func FuzzReadCount(f *testing.F) {
	for _, s := range []string{`{"count":1}`, `{"a":[{"count":2}],"count":3}`, `{`, `[]`, `{"count":1e99}`, ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := readCount(strings.NewReader(s), "count")
		if (n > 0) == (err != nil) {
			t.Errorf("%d, %v", n, err)
		}
	})
}
