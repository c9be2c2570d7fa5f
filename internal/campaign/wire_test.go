package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// server speaks the OpenAI API: it continues whatever stood earlier in the
// prompt behind the words that the prompt ends with, and counts bytes.
type server struct {
	prefill   time.Duration // before every answer: time to leave in
	limit     int
	over      string // what happens to longer prompts: "refuse", "leak", "truncate"
	tokenizer bool
	usage     bool

	mu   sync.Mutex
	past []string // long prompts of everybody
}

type chat struct {
	Stream   bool
	Messages []struct{ Role, Content string }
}

func (c *chat) text() (string, int) {
	var b strings.Builder
	for _, m := range c.Messages {
		b.WriteString(m.Content + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n"), b.Len() + 2*len(c.Messages) + 3
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var c chat
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil && r.Method == http.MethodPost {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text, n := c.text()
	switch {
	case r.URL.Path == "/tokenize" && s.tokenizer:
		fmt.Fprintf(w, `{"count":%d,"max_model_len":%d}`, n, s.limit)
	case r.URL.Path == "/v1/chat/completions":
		select {
		case <-time.After(s.prefill):
			s.chat(w, c.Stream, text, n)
		case <-r.Context().Done():
		}
	default:
		http.NotFound(w, r)
	}
}

func (s *server) chat(w http.ResponseWriter, stream bool, text string, n int) {
	w.Header().Set("Content-Type", "application/json")
	used, answer := n, continued(text)
	if n > s.limit {
		switch s.over {
		case "refuse":
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"message":"This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.","type":"invalid_request_error","code":"context_length_exceeded"}}`, s.limit, n)
			return
		case "leak":
			used, answer = 1, s.stale()
		case "truncate":
			used, answer = s.limit, continued(text[n-s.limit:])
		}
	}
	if len(text) > 200 {
		s.mu.Lock()
		s.past = append(s.past, text)
		s.mu.Unlock()
	}
	reply(w, stream, answer, used, s.usage)
}

// stale is a piece of the last long prompt but one.
func (s *server) stale() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.past) == 0 {
		return ""
	}
	words := strings.Fields(s.past[len(s.past)-1])
	return strings.Join(words[len(words)/2:min(len(words), len(words)/2+24)], " ")
}

func continued(text string) string {
	key := text[max(0, len(text)-10):]
	if i := strings.Index(text[:len(text)-len(key)], key); i >= 0 {
		line, _, _ := strings.Cut(text[i+len(key):], "\n")
		return strings.TrimSpace(line)
	}
	return "There is none."
}

func reply(w http.ResponseWriter, stream bool, answer string, used int, withUsage bool) {
	content, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	usage := ""
	if withUsage {
		usage = fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":%d}`, used, len(answer))
	}
	if !stream {
		fmt.Fprintf(w, `{"id":"x","model":"echo","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}]%s}`, content, usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":\"stop\"}]}\n\n", content)
	if withUsage {
		fmt.Fprintf(w, "data: {\"choices\":[]%s}\n\n", usage)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// real is a campaign of the real protocols and oracles over the real client.
func real(t *testing.T, handler http.Handler) Config {
	t.Helper()
	srv := httptest.NewServer(handler)
	out := filepath.Join(t.TempDir(), "run")
	spill, err := MakeDir(out)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	client, err := wire.NewClient(wire.Options{BaseURL: srv.URL + "/v1", SpillDir: spill, HTTP: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		srv.Close()
		goleak.VerifyNone(t)
	})
	return Config{
		Target:    Target{BaseURL: srv.URL + "/v1", Model: "echo", Dialect: "openai"},
		Tenants:   []Tenant{{"a", "sk-tenant-a-000"}, {"b", "sk-tenant-b-000"}},
		Protocols: probe.All(), Oracles: oracle.All(),
		Seed: 3, Key: testKey(), OutDir: out, Client: client, Version: "test",
	}
}

func kinds(r *Result) map[oracle.Kind]int {
	out := map[oracle.Kind]int{}
	for _, f := range r.Findings {
		out[f.Kind]++
	}
	return out
}

func TestSoundTargetEndsClean(t *testing.T) {
	for name, limit := range map[string]int{"with tokenizer": 6000, "without": 40000} {
		t.Run(name, func(t *testing.T) {
			tokenizer := limit == 6000
			cfg := real(t, &server{prefill: 20 * time.Millisecond, limit: limit, over: "refuse", tokenizer: tokenizer, usage: true})
			res := mustRun(t, cfg)
			for _, p := range res.Protocols {
				if p.Verdict != Clean || p.Bound == nil || p.Bound.RateUpper <= 0 {
					t.Errorf("%s: %s (%s)", p.Name, p.Verdict, p.Reason)
				}
			}
			if res.Verdict != Clean || len(res.Findings) > 0 {
				t.Errorf("verdict %s, findings %+v", res.Verdict, res.Findings)
			}
			if l := res.Limits; tokenizer && (l.AcceptedMax != 6000 || l.RejectedMin != 6001) || !strings.Contains(l.Rejection, "HTTP 400, context") {
				t.Errorf("limits %+v", l)
			}
			if err := runSchema(t).Validate(asJSON(t, res)); err != nil {
				t.Error(err)
			}
			l, err := Load(cfg.OutDir)
			if err != nil || len(l.Exchanges) != res.Spent.Exchanges {
				t.Errorf("loaded %+v, %v", l, err)
			}
		})
	}
}

func TestLeakingTarget(t *testing.T) {
	res := mustRun(t, real(t, &server{limit: 6000, over: "leak", tokenizer: true, usage: true}))
	if got := kinds(res); res.Verdict != Leak || got[oracle.Leak] == 0 || got[oracle.FailOpen] == 0 {
		t.Errorf("verdict %s, findings %v", res.Verdict, got)
	}
	for _, f := range res.Findings {
		if f.Kind == oracle.Leak && (f.FromExchange == nil || *f.FromExchange == f.Exchange || f.Evidence.Words < 8) {
			t.Errorf("finding %+v", f)
		}
	}
}

func TestTruncatingTarget(t *testing.T) {
	res := mustRun(t, real(t, &server{limit: 6000, over: "truncate", tokenizer: true, usage: true}))
	if got := kinds(res); res.Verdict != Violation || got[oracle.Truncation] == 0 || got[oracle.Leak] != 0 {
		t.Errorf("verdict %s, findings %v", res.Verdict, got)
	}
}

func TestTargetsThatAreNone(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		says    string
	}{
		"401": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":{"message":"Incorrect API key provided: sk-tenant-a-000."}}`)
		}, "HTTP 401"},
		"404 model": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error":{"message":"The model 'echo' does not exist","code":"model_not_found"}}`)
		}, "HTTP 404"},
		"HTML": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<!doctype html><html><body>Welcome</body></html>")
		}, "HTML"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := real(t, c.handler)
			res, err := Run(context.Background(), cfg)
			var target *TargetError
			if !errors.As(err, &target) || !strings.Contains(target.Reason, c.says) || strings.Contains(target.Reason, "sk-tenant") {
				t.Fatalf("error %v", err)
			}
			if l, err := Load(cfg.OutDir); err != nil || l.Result == nil || l.Result.Verdict != Inconclusive || res.Verdict != Inconclusive {
				t.Errorf("kept %+v, %v", l, err)
			}
		})
	}
}

func TestUnreachableTarget(t *testing.T) {
	cfg := real(t, http.NotFoundHandler())
	client, err := wire.NewClient(wire.Options{BaseURL: "http://127.0.0.1:1/v1"})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Client = client
	_, err = Run(context.Background(), cfg)
	var target *TargetError
	if !errors.As(err, &target) || strings.Contains(target.Reason, "\n") {
		t.Errorf("error %v", err)
	}
}

// An answer that never ends is given up when the campaign is.
func TestInterruptedOverTheWire(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cfg := real(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "completions") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"on and \"}}]}\n\n")
			w.(http.Flusher).Flush()
			cancel()
			time.Sleep(time.Millisecond)
		}
	}))
	res, err := Run(ctx, cfg)
	if err != nil || res.Verdict != Inconclusive || res.Reason != "interrupted" {
		t.Errorf("%+v, %v", res, err)
	}
}

var value = regexp.MustCompile(`\b[a-z0-9]{5}-[a-z0-9]{5}\b`)

// obeying is an answer to a prompt that holds whatever it may have asked for:
// its end, and all of its values.
func obeying(prompt string) string {
	return prompt[max(0, len(prompt)-200):] + "\n" + strings.Join(value.FindAllString(prompt, -1), " ")
}
