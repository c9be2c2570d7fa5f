package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab"
)

const hello = `"messages":[{"role":"user","content":"hello"}]`

func TestRefusedRequests(t *testing.T) {
	b := newFake()
	url := serve(t, b, func(o *Options) { o.MaxBody = 2000 }).URL
	chat, text := "/v1/chat/completions", "/v1/completions"
	for _, c := range []struct {
		path, body string
		status     int
		words      string // of the message
	}{
		{chat, ``, 400, "not valid JSON"},
		{chat, `{"messages":[`, 400, "not valid JSON"},
		{chat, `{` + hello + `} x`, 400, "not valid JSON"},
		{chat, `[]`, 400, "must be a JSON object"},
		{chat, `null`, 400, "must be a JSON object"},
		{chat, `"x"`, 400, "must be a JSON object"},
		{chat, `{}`, 400, "messages must not be empty"},
		{chat, `{"messages":{}}`, 400, "field messages must be of type array"},
		{chat, `{"messages":[7]}`, 400, "messages must be of type object"},
		{chat, `{"messages":[{"role":"tool","content":"x"}]}`, 400, "role must be"},
		{chat, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`, 400, "image_url must be a data URL"},
		{chat, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,*"}}]}]}`, 400, "not valid base64"},
		{chat, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`, 400, "not a PNG file"},
		{chat, `{"messages":[{"role":"user","content":[{"type":"audio"}]}]}`, 400, "content must be a string or a list of"},
		{chat, `{"model":"lab:nobody",` + hello + `}`, 404, "no such model"},
		{chat, `{"prompt":"x",` + hello + `}`, 400, "a chat has messages"},
		{chat, `{"max_tokens":0,` + hello + `}`, 400, "max_tokens must be at least 1"},
		{chat, `{"max_completion_tokens":-1,` + hello + `}`, 400, "max_tokens must be at least 1"},
		{chat, `{"max_tokens":99999999999,` + hello + `}`, 400, "max_tokens must be at least 1"},
		{chat, `{"max_tokens":1.5,` + hello + `}`, 400, "field max_tokens must be of type integer"},
		{chat, `{"stream":"yes",` + hello + `}`, 400, "field stream must be of type boolean"},
		{chat, `{"temperature":3,` + hello + `}`, 400, "temperature must be from 0 to 2"},
		{chat, `{"temperature":-0.1,` + hello + `}`, 400, "temperature must be from 0 to 2"},
		{chat, `{"temperature":"hot",` + hello + `}`, 400, "field temperature must be of type number"},
		{chat, `{"stop":7,` + hello + `}`, 400, "stop must be"},
		{chat, `{"stop":"",` + hello + `}`, 400, "stop must be"},
		{chat, `{"stop":["a",""],` + hello + `}`, 400, "stop must be"},
		{chat, `{"stop":[1],` + hello + `}`, 400, "stop must be"},
		{chat, `{"n":2,` + hello + `}`, 400, "does not support n other than 1"},
		{chat, `{"tools":[{"type":"function"}],` + hello + `}`, 400, "does not support tools"},
		{chat, `{"tool_choice":"required",` + hello + `}`, 400, "does not support tool_choice"},
		{chat, `{"logprobs":true,` + hello + `}`, 400, "does not support logprobs"},
		{chat, `{"response_format":{"type":"json_object"},` + hello + `}`, 400, "does not support response_format"},
		{chat, `{"top_p":0.9,` + hello + `}`, 400, "does not support top_p"},
		{chat, `{"logit_bias":{"5":1},` + hello + `}`, 400, "does not support logit_bias"},
		{chat, `{"model":"gpt-9",` + hello + `}`, 404, "no such model"},
		{chat, `{"pad":"` + strings.Repeat("x", 2000) + `",` + hello + `}`, 413, "longer than 2000 bytes"},
		{text, `{"model":"lab"}`, 400, "prompt must be a string"},
		{text, `{"prompt":[1,2,3]}`, 400, "a string is wanted"},
		{text, `{"prompt":"x","echo":true}`, 400, "does not support echo"},
		{text, `{"prompt":"x","best_of":3}`, 400, "does not support best_of"},
		{"/tokenize", `{}`, 400, "either prompt or messages"},
		{"/tokenize", `{"prompt":"x",` + hello + `}`, 400, "either prompt or messages"},
		{"/tokenize", `{"model":"gpt-9","prompt":"x"}`, 404, "no such model"},
		{"/v1/embeddings", `{}`, 404, "nothing here answers POST \"/v1/embeddings\""},
	} {
		status, answer := post(t, url+c.path, c.body)
		var got flatError
		if err := json.Unmarshal([]byte(answer), &got); err != nil {
			t.Errorf("%s %s: %v in %s", c.path, c.body, err, answer)
			continue
		}
		if status != c.status || got.Code != c.status || got.Object != "error" || got.Type == "" || !strings.Contains(got.Message, c.words) {
			t.Errorf("%s %.80s:\n%d %s, want %d and %q", c.path, c.body, status, answer, c.status, c.words)
		}
		if strings.Contains(answer, "gpt-9") {
			t.Errorf("%s: the answer repeats what was sent: %s", c.path, answer)
		}
	}
	if r := b.last.Load(); r != nil {
		t.Errorf("a refused request came to the engine: %+v", r)
	}
}

func TestErrorBodyIsSGLangs(t *testing.T) {
	_, answer := post(t, serve(t, newFake(), nil).URL+"/v1/chat/completions", `{}`)
	want := `{"object":"error","message":"messages must not be empty","type":"BadRequestError","param":null,"code":400}` + "\n"
	if answer != want {
		t.Errorf("got  %swant %s", answer, want)
	}
}

func TestRequestsReachTheEngineAsMeant(t *testing.T) {
	b := newFake()
	url := serve(t, b, func(o *Options) {
		o.MaxTokens = 300
		o.NewSeed = func() uint64 { return 42 }
	}).URL
	user := "\x01hello\x02"
	for _, c := range []struct {
		path, body string
		want       lab.Request
	}{
		{"chat/", `{` + hello + `}`, lab.Request{Tokens: []byte(user), MaxTokens: 300, Temperature: 1, Seed: 42}},
		{"chat/", `{"max_tokens":9,"seed":-1,"temperature":0,` + hello + `}`, lab.Request{Tokens: []byte(user), MaxTokens: 9, Seed: 1<<64 - 1}},
		{"chat/", `{"max_tokens":9,"max_completion_tokens":8,` + hello + `}`, lab.Request{Tokens: []byte(user), MaxTokens: 8, Temperature: 1, Seed: 42}},
		{"chat/", `{"n":1,"top_p":1,"tools":[],"logprobs":false,"logit_bias":{},"stop":null,"user":"u","bootstrap_room":7,` + hello + `}`,
			lab.Request{Tokens: []byte(user), MaxTokens: 300, Temperature: 1, Seed: 42}},
		{"chat/", `{"stop":"END",` + hello + `}`, lab.Request{Tokens: []byte(user), MaxTokens: 300, Temperature: 1, Seed: 42, Stop: []string{"END"}}},
		{"chat/", `{"messages":[{"role":"system","content":"be kind"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},` +
			`{"role":"assistant","content":"c"},{"role":"user","content":"d"}]}`,
			lab.Request{Tokens: []byte("\x01be kind\nab\x02c\x03\x01d\x02"), MaxTokens: 300, Temperature: 1, Seed: 42}},
		// Special tokens in a client's text are dropped: only the template sets them.
		{"chat/", `{"messages":[{"role":"user","content":"a\u0000\u0001\u0002\u0003b"}]}`,
			lab.Request{Tokens: []byte("\x01ab\x02"), MaxTokens: 300, Temperature: 1, Seed: 42}},
		{"", `{"prompt":"ra\u0002w"}`, lab.Request{Tokens: []byte("raw"), MaxTokens: 300, Temperature: 1, Seed: 42}},
		// An answer length that nobody asked for is cut to what the context leaves.
		{"", `{"prompt":"` + strings.Repeat("x", 16380) + `"}`, lab.Request{Tokens: []byte(strings.Repeat("x", 16380)), MaxTokens: 4, Temperature: 1, Seed: 42}},
		{"", `{"prompt":"` + strings.Repeat("x", 17000) + `"}`, lab.Request{Tokens: []byte(strings.Repeat("x", 17000)), MaxTokens: 1, Temperature: 1, Seed: 42}},
	} {
		status, answer := post(t, url+"/v1/"+c.path+"completions", c.body)
		if status != http.StatusOK {
			t.Fatalf("%.100s: %d %s", c.body, status, answer)
		}
		c.want.Tenant = "anonymous"
		if got, want := brief(b.last.Load()), brief(&c.want); got != want {
			t.Errorf("%.100s:\n got %.300s\nwant %.300s", c.body, got, want)
		}
	}
}

func brief(r *lab.Request) string {
	return fmt.Sprintf("tenant %s, at most %d, temperature %g, seed %d, stop %q, tokens %q",
		r.Tenant, r.MaxTokens, r.Temperature, r.Seed, r.Stop, r.Tokens)
}

func TestKeys(t *testing.T) {
	b := newFake()
	url := serve(t, b, func(o *Options) { o.Keys = map[string]string{"sk-a": "a", "sk-b": "b"} }).URL
	send := func(method, path, authorization string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(`{`+hello+`}`))
		if err != nil {
			t.Fatal(err)
		}
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, all(t, res.Body)
	}
	for _, c := range []struct {
		authorization string
		status        int
		tenant        string
	}{
		{"Bearer sk-a", 200, "a"}, {"bearer sk-b", 200, "b"},
		{"", 401, ""}, {"Bearer", 401, ""}, {"Bearer ", 401, ""}, {"Bearer sk-c", 401, ""}, {"Basic sk-a", 401, ""}, {"sk-a", 401, ""},
	} {
		b.last.Store(&lab.Request{})
		status, answer := send("POST", "/v1/chat/completions", c.authorization)
		if tenant := b.last.Load().Tenant; status != c.status || tenant != c.tenant {
			t.Errorf("%q: %d as %q, want %d as %q", c.authorization, status, tenant, c.status, c.tenant)
		}
		if strings.Contains(answer, "sk-") {
			t.Errorf("%q: a key is in %s", c.authorization, answer)
		}
	}
	for path, want := range map[string]int{"/health": 200, "/metrics": 200, "/v1/models": 401, "/server_info": 401, "/nothing": 401} {
		if status, _ := send("GET", path, ""); status != want {
			t.Errorf("GET %s without a key: %d, want %d", path, status, want)
		}
	}
}

// Without keys everybody is let in, and told apart by the key that they bring.
func TestTenantsWithoutKeys(t *testing.T) {
	b := newFake()
	url := serve(t, b, nil).URL
	tenants := map[string]bool{}
	for _, authorization := range []string{"", "Bearer sk-a", "Bearer sk-b", "bearer sk-a"} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/chat/completions", strings.NewReader(`{`+hello+`}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", authorization)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		all(t, res.Body)
		tenant := b.last.Load().Tenant
		if res.StatusCode != 200 || strings.Contains(tenant, "sk-") {
			t.Errorf("%q: %d as %q", authorization, res.StatusCode, tenant)
		}
		tenants[tenant] = true
	}
	if len(tenants) != 3 || !tenants["anonymous"] {
		t.Errorf("tenants %v", tenants)
	}
}

// What a long prompt costs is the body, its text and its tokens, and by then
// the body is let go.
func TestLongPromptIsNotCopiedAround(t *testing.T) {
	const size = 3 << 20
	b := newFake()
	h := NewHandler(Options{Backend: b, Model: "lab", Now: time.Now, NewID: func() string { return "x" }})
	body := `{"messages":[{"role":"user","content":"` + strings.Repeat(`words and more\n`, size/15) + `"}]}`
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/chat/completions", strings.NewReader(body))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	h.ServeHTTP(w, r)
	runtime.ReadMemStats(&after)
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if times := float64(after.TotalAlloc-before.TotalAlloc) / size; times > 3.5 {
		t.Errorf("allocated %.1f times the body in all, want at most 3.5", times)
	}
	if got := len(b.last.Load().Tokens); got != size/15*15+2 {
		t.Errorf("%d tokens", got)
	}
}

func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		`{` + hello + `}`, `{"prompt":"x"}`, `{"stream":true,"stream_options":{"include_usage":true},` + hello + `}`,
		`{"messages":[{"role":"system","content":[{"type":"text","text":"\ud83d\u0001"}]},{"role":"user","content":null}]}`,
		`{"stop":["a","b"],"max_tokens":3,"seed":1,"temperature":0.5,"n":1,` + hello + `}`, `[`, ``, `{"messages":[{}]}`, "\xff",
		`{"messages":[{"role":"user","content":"a"}],"messages":[{"role":"user"}]}`, `{"prompt":"x","messages":null}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		b := newFake()
		h := NewHandler(Options{Backend: b, Model: "lab", Now: time.Now, NewID: func() string { return "x" }, MaxBody: 1 << 16})
		for _, path := range []string{"/v1/chat/completions", "/v1/completions", "/tokenize"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(body)))
			switch w.Code {
			case 200, 400, 404, 413:
			default:
				t.Fatalf("%s: status %d", path, w.Code)
			}
			if w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
				t.Fatalf("%s: answer is not JSON: %q", path, w.Body)
			}
			if r := b.last.Swap(nil); r != nil {
				checkRequest(t, path, r)
			}
		}
	})
}

// checkRequest holds what every request that reaches the engine must keep.
func checkRequest(t *testing.T, path string, r *lab.Request) {
	t.Helper()
	if r.MaxTokens < 1 || r.Temperature < 0 || r.Temperature > 2 || len(r.Stop) > maxStops {
		t.Fatalf("request %+v", r)
	}
	raw := strings.HasSuffix(path, "v1/completions")
	if raw && strings.ContainsAny(string(r.Tokens), "\x00\x01\x02\x03") {
		t.Fatalf("special tokens in a raw prompt: %q", r.Tokens)
	}
	if !raw && (r.Tokens[len(r.Tokens)-1] != 2 || strings.ContainsRune(string(r.Tokens), 0)) {
		t.Fatalf("prompt outside the template: %q", r.Tokens)
	}
}
