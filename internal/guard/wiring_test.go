package guard

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/guard/admit"
)

// pooled is admission for an engine that holds so many tokens.
func pooled(tokens int) func(*Options) {
	return func(o *Options) {
		o.Upstreams[0].Given = admit.Given{Tokens: tokens}
		o.Admission = Admission{Policy: admit.Policy{TemplateTokens: 100}, NoCount: true}
	}
}

func TestPromptsThatDoNotFitNeverArrive(t *testing.T) {
	arrived := 0
	url := engine(t, func(w http.ResponseWriter, r *http.Request) {
		arrived++
		io.WriteString(w, `{}`)
	})
	f := guardBefore(t, url, pooled(1000))
	status, h, b := f.post(t, "/v1/chat/completions", chatOf(900))
	if status != 200 || h.Get("Kvcanary-Admission") != "pass" {
		t.Errorf("one that fits: %d %v %s", status, h, b)
	}
	status, h, b = f.post(t, "/v1/chat/completions", chatOf(901))
	if status != 400 || h.Get("Kvcanary-Admission") != "refuse" || !strings.Contains(b, "not_counted") || !strings.Contains(b, "1,000") {
		t.Errorf("one that may not: %d %v %s", status, h, b)
	}
	if status, _, b = f.post(t, "/v1/messages/count_tokens", chatOf(5000)); status != 200 {
		t.Errorf("one that is counted only: %d %s", status, b)
	}
	if arrived != 2 {
		t.Errorf("%d requests arrived, want 2", arrived)
	}
	if r := f.last(t, 2); r.Verdict != "refuse" || r.Reason != "not_counted" || r.LimitTokens != 1000 {
		t.Errorf("recorded %+v", r)
	}
	f = guardBefore(t, url, func(o *Options) {
		pooled(1000)(o)
		o.Upstreams[0].Given = admit.Given{}
	})
	status, h, b = f.post(t, "/v1/chat/completions", chat)
	if status != 503 || h.Get("Retry-After") == "" || !strings.Contains(b, "limit_unknown") {
		t.Errorf("while nothing is known: %d %v %s", status, h, b)
	}
	if f.Ready() == nil {
		t.Error("ready while no limit is known")
	}
	f = guardBefore(t, url, func(o *Options) {
		pooled(1000)(o)
		o.Upstreams[0].Given, o.Admission.Open = admit.Given{}, true
	})
	if status, h, b = f.post(t, "/v1/chat/completions", chat); status != 200 || h.Get("Kvcanary-Admission") != "unjudged" || f.Ready() != nil {
		t.Errorf("while nothing is known and the policy is open: %d %v %s", status, h, b)
	}
}

// What an engine says of itself is the limit, and it counts what bytes leave open.
func TestEngineIsAskedAndCounts(t *testing.T) {
	url := engine(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/server_info", "/get_server_info":
			io.WriteString(w, `{"version":"0.5.4","max_total_num_tokens":1007,"context_length":4096,"page_size":16,"disaggregation_mode":"null"}`)
		case "/tokenize", "/v1/tokenize":
			var q struct {
				Messages []struct{ Content string }
				Prompt   string
			}
			json.NewDecoder(r.Body).Decode(&q)
			text := q.Prompt
			for _, m := range q.Messages {
				text += m.Content
			}
			fmt.Fprintf(w, `{"count":%d,"max_model_len":4096}`, len(strings.ReplaceAll(text, "x", ""))+strings.Count(text, "x")/4)
		case "/v1/chat/completions":
			io.WriteString(w, `{}`)
		default:
			http.NotFound(w, r)
		}
	})
	f := guardBefore(t, url, func(o *Options) {
		pooled(0)(o)
		o.Upstreams[0].Engine, o.Admission.NoCount = "sglang", false
	})
	f.setup.Load().measure(t.Context())
	if status, h, b := f.post(t, "/v1/chat/completions", chatOf(3000)); status != 200 || h.Get("Kvcanary-Admission") != "counted" {
		t.Errorf("750 tokens: %d %v %s", status, h, b)
	}
	if status, _, b := f.post(t, "/v1/chat/completions", chatOf(6000)); status != 400 || !strings.Contains(b, "context_length_exceeded") || !strings.Contains(b, "1,000") {
		t.Errorf("1,500 tokens: %d %s", status, b)
	}
	if s := f.State(); len(s.Upstreams) != 1 || s.Upstreams[0].Limit != 1000 || !s.Ready {
		t.Errorf("state %+v", s)
	}
}

// A large body whose bytes fit goes upstream while it comes; if its end shows
// that it does not fit after all, the upstream never has the whole of it.
func TestStreamedPromptIsJudgedAtItsEnd(t *testing.T) {
	var mu sync.Mutex
	var read []string
	begun := 0
	url := engine(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		begun++
		mu.Unlock()
		n, err := io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		read = append(read, fmt.Sprint(n > heldBody/2, err == nil))
		io.WriteString(w, `{}`)
	})
	f := guardBefore(t, url, func(o *Options) {
		pooled(2 << 20)(o)
		o.Admission.WideFactor = 1
	})
	plain := chatOf(heldBody + 500_000)
	if status, h, b := f.post(t, "/v1/chat/completions", plain); status != 200 || h.Get("Kvcanary-Changed") != "" {
		t.Errorf("%d %v %s", status, h, b)
	}
	tools := `,"tools":[{"type":"function","function":{"name":"f","description":"` + strings.Repeat("y", 100_000) + `"}}]}`
	if status, _, b := f.post(t, "/v1/chat/completions", plain[:len(plain)-1]+tools); status != 400 || !strings.Contains(b, "not_counted") {
		t.Errorf("with tools: %d %s", status, b)
	}
	if status, _, b := f.post(t, "/v1/chat/completions", plain[:len(plain)-1]+`,"truncate_prompt_tokens":5}`); status != 400 || !strings.Contains(b, "truncate_prompt_tokens") {
		t.Errorf("with a knob: %d %s", status, b)
	}
	eventually(t, "the engine to have done with all that it has seen", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(read) == begun
	})
	mu.Lock()
	defer mu.Unlock()
	// A connection that is reset takes with it what a busy engine has not read
	// yet, so that it may see nothing at all of what was refused.
	for i, got := range read {
		if want := i == 0; strings.HasSuffix(got, " true") != want || want && got != "true true" {
			t.Errorf("large, and whole: %s", strings.Join(read, ", "))
		}
	}
	if len(read) == 0 {
		t.Error("the engine has seen nothing")
	}
}

func TestTenantsAreKeptApart(t *testing.T) {
	var seen map[string]any
	url := engine(t, func(w http.ResponseWriter, r *http.Request) {
		seen = nil
		json.NewDecoder(r.Body).Decode(&seen)
		io.WriteString(w, `{}`)
	})
	f := guardBefore(t, url, func(o *Options) {
		o.Upstreams[0].Engine = "sglang"
		o.Upstreams[0].Models = []string{"m"}
		o.Upstreams = append(o.Upstreams, Upstream{Name: "hosted", BaseURL: url, Engine: "generic"})
		o.Tenants = Tenants{Header: "X-Customer"}
		o.Isolation.SaltKey = []byte("a key of the guard's, for a test")
	})
	post := func(tenant, body string) http.Header {
		q, _ := http.NewRequest("POST", f.url+"/v1/chat/completions", strings.NewReader(body))
		q.Header.Set("X-Customer", tenant)
		res, err := f.client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 200 {
			t.Fatalf("status %d", res.StatusCode)
		}
		return res.Header
	}
	const mine = `{"model":"m","cache_salt":"of alpha","rid":"1","kv_transfer_params":{},"messages":[{"role":"user","content":"hello"}]}`
	h := post("alpha", mine)
	salt, rid := seen["cache_salt"], seen["rid"]
	if salt == "of alpha" || salt == nil || seen["extra_key"] != salt || rid != h.Get("Kvcanary-Request-Id") || seen["kv_transfer_params"] != nil {
		t.Errorf("the engine was sent %v", seen)
	}
	if got := h.Get("Kvcanary-Changed"); got != "cache_salt, kv_transfer_params, rid" {
		t.Errorf("changed: %s", got)
	}
	post("alpha", chat)
	if seen["cache_salt"] != salt || seen["rid"] == rid {
		t.Errorf("the engine was sent %v", seen)
	}
	post("beta", chat)
	if seen["cache_salt"] == salt {
		t.Error("two tenants have one salt")
	}
	post("alpha", `{"model":"other","cache_salt":"of alpha","messages":[{"role":"user","content":"hello"}]}`)
	if seen["cache_salt"] != nil || seen["rid"] != nil || seen["model"] != "other" {
		t.Errorf("a hosted endpoint was sent %v", seen)
	}
}

func leakyEngine(t *testing.T, text string, streams bool) string {
	return engine(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Note", r.Header.Get("User-Agent"))
		if note := r.URL.Query().Get("beta"); note != "" {
			w.Header().Set("X-Note", text)
		}
		if !streams {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"choices":[{"message":{"content":%q}}],"usage":{"prompt_tokens":7,"completion_tokens":9}}`, text)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, word := range strings.SplitAfter(text, " ") {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", word)
			w.(http.Flusher).Flush()
		}
		io.WriteString(w, "data: [DONE]\n\n")
	})
}

func TestLeakNeverLeaves(t *testing.T) {
	var key canary.Key
	coder := canary.New(key)
	words, err := io.ReadAll(coder.Words(canary.MakeID(1, 2, 3), 20, 12))
	if err != nil {
		t.Fatal(err)
	}
	leak := "It begins well, " + string(words) + " and goes on."
	first := strings.Fields(string(words))[0]
	for name, c := range map[string]struct {
		streams, audit, ours bool
		status               int
	}{
		"document, strict":     {false, false, false, 502},
		"document, audit":      {false, true, false, 200},
		"stream, strict":       {true, false, false, 200},
		"stream, audit":        {true, true, false, 200},
		"stream, own canary":   {true, false, true, 200},
		"document, own canary": {false, false, true, 200},
	} {
		t.Run(name, func(t *testing.T) {
			f := guardBefore(t, leakyEngine(t, leak, c.streams), func(o *Options) {
				o.Watch = Watch{Audit: c.audit, Coders: []*canary.Coder{coder}}
			})
			body := chat
			if c.ours {
				body = strings.Replace(chat, "hello", string(words), 1)
			}
			status, _, b := f.post(t, "/v1/chat/completions", body)
			passes := c.audit || c.ours
			if status != c.status || strings.Contains(b, " "+first) != passes && strings.Contains(b, first+" ") != passes {
				t.Errorf("%d %s", status, b)
			}
			if strings.Contains(b, "leak_stopped") == passes || strings.Contains(b, "goes on") != passes && !c.streams {
				t.Errorf("%d %s", status, b)
			}
			if c.streams && strings.Contains(b, "[DONE]") != passes {
				t.Errorf("a stopped stream looks as if it had ended: %s", b)
			}
			r := f.last(t, 1)
			if c.ours != (len(r.Findings) == 0) {
				t.Errorf("recorded %+v", r)
			}
			for _, found := range r.Findings {
				if found.Kind != "leak" || found.Channel != "content" || found.From != canary.MakeID(1, 2, 3).String() || found.Words < canary.MinWords {
					t.Errorf("found %+v", found)
				}
			}
			if s := f.State(); s.HeldBytes != 0 {
				t.Errorf("%d bytes are still held", s.HeldBytes)
			}
		})
	}
	t.Run("in a header", func(t *testing.T) {
		f := guardBefore(t, leakyEngine(t, string(words), true), func(o *Options) { o.Watch = Watch{Coders: []*canary.Coder{coder}} })
		if status, h, b := f.post(t, "/v1/messages?beta=true", chat); status != 502 || h.Get("X-Note") != "" {
			t.Errorf("%d %v %s", status, h, b)
		}
	})
	// What a client calls itself or its request comes back, and is no leak.
	t.Run("in a header, own", func(t *testing.T) {
		f := guardBefore(t, leakyEngine(t, "fine", true), func(o *Options) { o.Watch = Watch{Coders: []*canary.Coder{coder}} })
		for _, name := range []string{"User-Agent", "X-Request-Id"} {
			q, _ := http.NewRequest("POST", f.url+"/v1/chat/completions", strings.NewReader(chat))
			q.Header.Set(name, strings.ReplaceAll(strings.TrimSpace(string(words)), " ", "-"))
			res, err := f.client.Do(q)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(res.Body)
			if res.Body.Close(); err != nil || res.StatusCode != 200 || !strings.Contains(string(b), "[DONE]") {
				t.Errorf("%s: %d %v %s", name, res.StatusCode, res.Header, b)
			}
		}
	})
}

// What is told of an upstream that was not reached does not change with time,
// as whether it is tried does.
func TestUpstreamIsDownUntilItIsReached(t *testing.T) {
	url := engine(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{}`) })
	var log strings.Builder
	now := time.Now()
	f := guardBefore(t, url, func(o *Options) {
		o.Now, o.Log = func() time.Time { return now }, slog.New(slog.NewTextHandler(&log, nil))
	})
	u := f.setup.Load().ring.ups[0]
	u.bad()
	u.bad()
	now = now.Add(time.Hour)
	if s := f.State(); s.Ready || s.Upstreams[0].Up || !u.up() {
		t.Errorf("an hour after it was not reached: %+v, tried: %v", s, u.up())
	}
	u.good()
	if s := f.State(); !s.Ready || !s.Upstreams[0].Up || strings.Count(log.String(), "upstream=engine") != 2 {
		t.Errorf("once it is reached: %+v\n%s", s, &log)
	}
}
