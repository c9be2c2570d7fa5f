package wire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// speaker is a server that speaks some dialects and nothing else.
func speaker(t *testing.T, asked *atomic.Int32, dialects ...string) string {
	mux := http.NewServeMux()
	for _, f := range fixtures {
		for _, d := range dialects {
			if d == f.dialect {
				mux.HandleFunc("POST "+f.path, answer(200, "application/json", f.document))
			}
		}
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		speaks string
		suffix string // of the base URL
		want   string
		asks   int
	}{
		{"openai", "", "openai", 1},
		{"responses", "", "responses", 2},
		{"anthropic", "/v1", "anthropic", 3},
		{"ollama", "", "ollama", 4},
		{"openai responses anthropic ollama", "/v1/", "openai", 1},
		// The address says it: nobody is asked.
		{"", "/v1/chat/completions", "openai", 0},
		{"", "/v1/responses", "responses", 0},
		{"", "/v1/messages/", "anthropic", 0},
		{"", "/api/chat", "ollama", 0},
	} {
		var asked atomic.Int32
		url := speaker(t, &asked, strings.Fields(c.speaks)...)
		d, err := Detect(context.Background(), Options{BaseURL: url + c.suffix}, "", "m")
		if err != nil || d.Dialect != c.want || int(asked.Load()) != c.asks || d.Requests != c.asks || d.Why == "" {
			t.Errorf("%+v: %+v, %v, asked %d", c, d, err, asked.Load())
		}
		if c.asks > 0 && d.Tokens != 9 {
			t.Errorf("%+v: %d tokens", c, d.Tokens)
		}
	}
}

func TestDetectByHint(t *testing.T) {
	for base, want := range map[string]string{
		"http://h:1": "openai", "https://api.anthropic.com": "anthropic", "https://api.z.ai/api/anthropic": "anthropic",
		"http://127.0.0.1:11434/api": "ollama", "http://127.0.0.1:11434": "openai", "https://openrouter.ai/api": "openai",
	} {
		if got := likely(base); got[0] != want || len(got) != len(Dialects()) {
			t.Errorf("%s: %v", base, got)
		}
	}
}

// A target that declines a greeting in the words of an API speaks its dialect;
// one that declines everything is taken for the likeliest.
func TestDetectByRefusal(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		asks   int
	}{
		{404, `{"error":{"message":"The model 'x' does not exist","code":"model_not_found"}}`, 1},
		{429, `{"error":{"message":"slow down"}}`, 1},
		{401, `{"error":{"message":"no"}}`, 5},
		{500, `{"error":{"message":"oops"}}`, 4},
		{400, `{"error":{"message":"the last turn must be a user's"}}`, 4},
	} {
		var asked atomic.Int32
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			answer(c.status, "application/json", c.body)(w, r)
		}))
		d, err := Detect(context.Background(), Options{BaseURL: srv.URL}, "sk-some-key", "m")
		if err != nil || d.Dialect != "openai" || int(asked.Load()) != c.asks || d.Requests != c.asks {
			t.Errorf("%d: %+v, %v, asked %d", c.status, d, err, asked.Load())
		}
		srv.Close()
	}
}

func TestDetectNothing(t *testing.T) {
	for _, h := range []http.HandlerFunc{http.NotFound, answer(200, "text/html", "<p>It works!"), answer(200, "application/json", `{"ok":true}`)} {
		srv := httptest.NewServer(h)
		_, err := Detect(context.Background(), Options{BaseURL: srv.URL}, "", "m")
		if err == nil || !strings.Contains(err.Error(), "none of the dialects") || !strings.Contains(err.Error(), "ollama") {
			t.Errorf("%v", err)
		}
		srv.Close()
	}
	_, err := Detect(context.Background(), Options{BaseURL: "http://127.0.0.1:1"}, "", "m")
	var call *CallError
	if !errors.As(err, &call) || call.Failure.Kind != FailedConnect {
		t.Errorf("nobody there: %v", err)
	}
	if _, err := Detect(context.Background(), Options{BaseURL: "nonsense"}, "", "m"); err == nil {
		t.Error("nonsense for a base URL")
	}
}

// LM Studio answers paths that it does not know with 200 and an error.
func TestDetectPastAnErrorIn200(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if r.URL.Path == anthropicFixture.path {
			io.WriteString(w, anthropicFixture.document)
			return
		}
		io.WriteString(w, `{"error":"Unexpected endpoint or method. (POST `+r.URL.Path+`)"}`)
	}))
	defer srv.Close()
	if d, err := Detect(context.Background(), Options{BaseURL: srv.URL}, "", "m"); err != nil || d.Dialect != "anthropic" {
		t.Errorf("%+v, %v", d, err)
	}
}
