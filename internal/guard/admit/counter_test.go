package admit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// counting is an engine with a tokenizer: a word is a token.
type counting struct {
	mu    sync.Mutex
	asked []string // paths
	last  map[string]any

	most    int           // the tokenizer cuts off here; 0 for nowhere
	tools   bool          // it counts tool definitions
	answer  string        // in place of a count
	status  int           // in place of 200
	refuses int           // prompts of more tokens than this; 0 for none
	paths   []string      // that there are; nil for all
	slow    time.Duration // of each answer
	headers http.Header   // of the last request
}

func (s *counting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q map[string]any
	json.NewDecoder(r.Body).Decode(&q)
	s.mu.Lock()
	s.asked, s.last, s.headers = append(s.asked, r.URL.Path), q, r.Header
	s.mu.Unlock()
	time.Sleep(s.slow)
	if s.paths != nil && !slices.Contains(s.paths, r.URL.Path) || q["model"] == "nobody" {
		http.NotFound(w, r)
		return
	}
	var words func(v any) int
	words = func(v any) (n int) {
		switch v := v.(type) {
		case string:
			return len(strings.Fields(v))
		case []any:
			for _, e := range v {
				n += words(e)
			}
		case map[string]any:
			for name, e := range v {
				if name != "role" && name != "type" {
					n += words(e)
				}
			}
		}
		return n
	}
	n := words(q["messages"]) + words(q["prompt"]) + words(q["input"]) + words(q["content"]) + words(q["system"])
	if s.tools {
		n += words(q["tools"])
	}
	if s.most > 0 {
		n = min(n, s.most)
	}
	switch list := "[0" + strings.Repeat(",1", max(0, n-1)) + "]"; {
	case s.status != 0:
		w.WriteHeader(s.status)
	case s.refuses > 0 && n > s.refuses:
		w.WriteHeader(400)
		fmt.Fprintf(w, `{"error":{"message":"This model's maximum context length is %d tokens. However, your request has %d input tokens.","code":400}}`, s.refuses, n)
	case s.answer != "":
		io.WriteString(w, s.answer)
	case r.URL.Path == "/apply-template":
		json.NewEncoder(w).Encode(map[string]string{"prompt": strings.Repeat("w ", n) + "assistant"})
	case r.URL.Path == "/chat_tokenize":
		fmt.Fprintf(w, `{"templated_text":"x","tokenize_response":%s}`, list)
	case strings.HasSuffix(r.URL.Path, "/tokenize") && q["content"] != nil:
		fmt.Fprintf(w, `{"tokens":%s}`, list)
	case strings.HasSuffix(r.URL.Path, "tokens"):
		fmt.Fprintf(w, `{"object":"response.input_tokens","input_tokens":%d}`, n)
	default:
		fmt.Fprintf(w, `{"tokens":%s,"count":%d,"max_model_len":9}`, list, n)
	}
}

func (s *counting) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

func counterOf(s *counting, engine string) *Counter {
	return NewCounter(CounterOptions{
		URL: "http://u/v1/", Engine: func() string { return engine }, Client: &http.Client{Transport: inMemory{"u": s}},
		Timeout: 10 * time.Second, AtOnce: 2, Keep: 2, Fresh: time.Hour, Now: time.Now,
	})
}

func chat(words int) []byte {
	return fmt.Appendf(nil, `{"model":"m","temperature":0.3,"stream":true,"messages":[{"role":"user","content":%q}]}`, text(words))
}

func TestCountInEveryWay(t *testing.T) {
	completion := fmt.Appendf(nil, `{"model":"m","prompt":%q}`, text(40))
	anthropic := fmt.Appendf(nil, `{"model":"m","max_tokens":5,"stream":true,"metadata":{"user_id":"u"},"system":"be brief","messages":[{"role":"user","content":[{"type":"text","text":%q}]}]}`, text(38))
	responses := fmt.Appendf(nil, `{"model":"m","stream":true,"max_output_tokens":9,"input":%q}`, text(40))
	for name, c := range map[string]struct {
		engine, dialect string
		paths           []string
		body            []byte
		want            int
		asked           string // paths of the first count, the proof left out
	}{
		"vLLM":            {"vllm", "openai", []string{"/tokenize"}, chat(40), 40, "/tokenize"},
		"SGLang":          {"sglang", "openai", []string{"/v1/tokenize"}, chat(40), 40, "/tokenize /v1/tokenize"},
		"nobody knows":    {"", "openai", nil, chat(40), 40, "/tokenize"},
		"a completion":    {"vllm", "completions", nil, completion, 40, "/tokenize"},
		"llama.cpp":       {"llamacpp", "openai", nil, chat(40), 41, "/apply-template /tokenize"},
		"llama.cpp text":  {"llamacpp", "completions", nil, completion, 40, "/tokenize"},
		"TGI":             {"tgi", "openai", nil, chat(40), 40, "/chat_tokenize"},
		"Anthropic":       {"generic", "anthropic", nil, anthropic, 40, "/v1/messages/count_tokens"},
		"OpenAI's second": {"generic", "responses", nil, responses, 40, "/v1/responses/input_tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &counting{paths: c.paths}
			counter := counterOf(s, c.engine)
			q := Question{Dialect: c.dialect, Body: c.body, Limit: 100, Header: http.Header{"Authorization": {"Bearer k"}, "X-Request-Id": {"r"}, "Anthropic-Version": {"2023-06-01"}}}
			for i := range 3 {
				got, err := counter.Count(t.Context(), q)
				if err != nil || got.Tokens != c.want || got.Over {
					t.Fatalf("%+v, %v", got, err)
				}
				if first := strings.Join(s.asked, " "); !strings.HasPrefix(first+" ", c.asked+" ") {
					t.Errorf("asked %s", first)
				}
				if n := s.requests(); i > 0 && n != len(s.asked) {
					t.Errorf("counted again")
				}
			}
			if s.headers.Get("Authorization") != "Bearer k" || s.headers.Get("X-Request-Id") != "" || s.headers.Get("Anthropic-Version") == "" {
				t.Errorf("headers %v", s.headers)
			}
			for _, inert := range []string{"stream", "temperature", "max_tokens", "max_output_tokens", "metadata"} {
				if _, sent := s.last[inert]; sent {
					t.Errorf("%s was sent to the counter", inert)
				}
			}
		})
	}
}

// A prompt is counted once for a tenant, whatever its sampling and ids; another
// tenant's count says nothing of it.
func TestCountsAreKeptForTheirTenant(t *testing.T) {
	s := &counting{}
	c := counterOf(s, "vllm")
	count := func(q Question) int {
		before := s.requests()
		q.Dialect, q.Limit = "openai", 100
		if _, err := c.Count(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		return s.requests() - before
	}
	if n := count(Question{Tenant: "a", Body: chat(10)}); n == 0 {
		t.Error("not counted")
	}
	for name, want := range map[string]struct {
		q Question
		n int
	}{
		"the same":       {Question{Tenant: "a", Body: chat(10)}, 0},
		"sampled warmer": {Question{Tenant: "a", Body: []byte(strings.Replace(string(chat(10)), "0.3", "0.9", 1))}, 0},
		"under an id":    {Question{Tenant: "a", Body: append([]byte(`{"rid":"x","cache_salt":"y",`), chat(10)[1:]...)}, 0},
		"another tenant": {Question{Tenant: "b", Body: chat(10)}, 1},
	} {
		if n := count(want.q); n != want.n {
			t.Errorf("%s: %d requests, want %d", name, n, want.n)
		}
	}
	count(Question{Tenant: "a", Body: chat(10)})
	count(Question{Tenant: "a", Body: chat(11)})
	if n := count(Question{Tenant: "a", Body: chat(10)}); n != 0 {
		t.Errorf("forgotten: %d", n)
	}
	count(Question{Tenant: "a", Body: chat(12)})
	if n := count(Question{Tenant: "a", Body: chat(11)}); n != 1 {
		t.Errorf("more than two are kept: %d", n)
	}
}

// A tokenizer that cuts off says of every long prompt that it is as long as its
// own maximum. It is found out before it is believed.
func TestACounterThatCutsOffIsNotBelieved(t *testing.T) {
	for _, most := range []int{1, 50, 99, 100} {
		s := &counting{most: most}
		if got, err := counterOf(s, "vllm").Count(t.Context(), Question{Dialect: "openai", Body: chat(5000), Limit: 100}); !errors.Is(err, ErrUnsound) {
			t.Errorf("cut off at %d: %+v, %v", most, got, err)
		}
	}
	// Above the limit it says enough.
	s := &counting{most: 300}
	c := counterOf(s, "vllm")
	if got, err := c.Count(t.Context(), Question{Dialect: "openai", Body: chat(5000), Limit: 100}); err != nil || got.Tokens != 300 {
		t.Errorf("%+v, %v", got, err)
	}
	// A limit that has grown needs another proof.
	if _, err := c.Count(t.Context(), Question{Dialect: "openai", Body: chat(90), Limit: 100}); err != nil {
		t.Error(err)
	}
	if got, err := c.Count(t.Context(), Question{Dialect: "openai", Body: chat(5000), Limit: 400}); !errors.Is(err, ErrUnsound) {
		t.Errorf("%+v, %v", got, err)
	}
	// And a few tokens of very many bytes are not plausible at all.
	long := fmt.Appendf(nil, `{"model":"m","messages":[{"role":"user","content":%q}]}`, strings.Repeat("x", 1<<20))
	if got, err := counterOf(&counting{}, "vllm").Count(t.Context(), Question{Dialect: "openai", Body: long, Limit: 100}); !errors.Is(err, ErrUnsound) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWhatACountCovers(t *testing.T) {
	for _, c := range []struct {
		engine string
		tools  bool
		want   Tally
	}{
		{"vllm", true, Tally{Tokens: 10, Tools: true}},
		{"vllm", false, Tally{Tokens: 10}},
		{"generic", true, Tally{Tokens: 10, Tools: true, Opaque: true}},
	} {
		if got, err := counterOf(&counting{tools: c.tools}, c.engine).Count(t.Context(), Question{Dialect: "openai", Body: chat(10), Limit: 100}); err != nil || got != c.want {
			t.Errorf("%s, %v: %+v, %v", c.engine, c.tools, got, err)
		}
	}
	// Of documents nothing is proven by tools.
	with := []byte(`{"documents":[{"text":"a b c"}],` + string(chat(10)[1:]))
	if got, err := counterOf(&counting{tools: true}, "vllm").Count(t.Context(), Question{Dialect: "openai", Body: with, Limit: 100}); err != nil || got.Tools {
		t.Errorf("documents: %+v, %v", got, err)
	}
	// Nor of a suffix by a prompt; what forms the answer is no prompt.
	for fields, want := range map[string]int64{
		`"suffix":"a b c",`: 13, `"suffix":null,`: 0, `"echo":true,"seed":7,"stop":["a b"],"response_format":{"type":"text"},`: 0, `"input_extra":[{"text":"a"}],`: 25,
	} {
		body := fmt.Appendf(nil, `{%s"model":"m","prompt":"a b c"}`, fields)
		if got, err := counterOf(&counting{}, "sglang").Count(t.Context(), Question{Dialect: "completions", Body: body, Limit: 100}); err != nil || got.Tokens != 3 || got.Others != want {
			t.Errorf("%s: %+v, %v", fields, got, err)
		}
	}
	// Nor of a second prompt, nor of a schema, which some renderers write out.
	for fields, want := range map[string]int64{
		`"input":"a b c",`: 12, `"prompt":"a b c",`: 13, `"system":"a b c",`: 13, `"text":"a b c",`: 11, `"response_format":{"type":"json_object"},`: 0,
		`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{}}},`: 15 + 2*61,
	} {
		body := fmt.Appendf(nil, `{%s"model":"m","messages":[{"role":"user","content":"a b c"}]}`, fields)
		if got, err := counterOf(&counting{}, "vllm").Count(t.Context(), Question{Dialect: "openai", Body: body, Limit: 100}); err != nil || got.Others != want {
			t.Errorf("%s: %+v, %v", fields, got, err)
		}
	}
	body := []byte(`{"model":"m","max_tokens":5,"cache_control":{"type":"ephemeral"},"messages":[{"role":"user","content":"a b"}]}`)
	if got, err := counterOf(&counting{}, "generic").Count(t.Context(), Question{Dialect: "anthropic", Body: body, Limit: 100}); err != nil || got.Tokens != 2 || got.Others != 0 {
		t.Errorf("what is documented to be counted: %+v, %v", got, err)
	}
	p := Policy{OpaqueTokens: 500}
	for name, c := range map[string]struct {
		t               Tally
		b               Body
		p               Policy
		atLeast, atMost int
	}{
		"text":                   {Tally{Tokens: 10}, Body{}, p, 10, 10},
		"tools that are counted": {Tally{Tokens: 10, Tools: true}, Body{Structured: 10}, p, 10, 10},
		"tools that are not":     {Tally{Tokens: 10}, Body{Structured: 10}, p, 10, 80},
		"a picture":              {Tally{Tokens: 10}, Body{Opaque: 2}, p, 10, 1010},
		"a picture, counted":     {Tally{Tokens: 10, Opaque: true}, Body{Opaque: 2}, p, 10, 10},
		"a picture, no bound":    {Tally{Tokens: 10}, Body{Opaque: 1}, Policy{}, 10, Unbounded},
		"a suffix":               {Tally{Tokens: 10, Others: 40}, Body{Wide: 5}, p, 10, 60},
		"over the engine's own":  {Tally{Over: true}, Body{}, p, 101, Unbounded},
		"and it says by how far": {Tally{Tokens: 200, Over: true}, Body{}, p, 200, Unbounded},
	} {
		if s := c.t.Size(c.b, c.p, 100); s.AtLeast != c.atLeast || s.AtMost != c.atMost || !s.Tried {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestCountsThatCannotBeHad(t *testing.T) {
	for name, c := range map[string]struct {
		s    *counting
		q    Question
		want string
	}{
		"no endpoint":        {&counting{paths: []string{"/other"}}, Question{}, "nothing at the upstream counts such a prompt"},
		"no such model":      {&counting{}, Question{Body: []byte(`{"model":"nobody","messages":[]}`)}, "nothing at the upstream"},
		"not in shape":       {&counting{status: 422}, Question{}, "nothing at the upstream"},
		"in trouble":         {&counting{status: 500}, Question{}, "the upstream does not count: HTTP 500"},
		"busy":               {&counting{status: 429}, Question{}, "HTTP 429"},
		"no key":             {&counting{status: 401}, Question{}, "HTTP 401"},
		"elsewhere":          {&counting{status: 307}, Question{}, "nothing at the upstream"},
		"HTML":               {&counting{answer: "<html>"}, Question{}, "holds no count"},
		"zero":               {&counting{answer: `{"count":0}`}, Question{}, "holds no count"},
		"negative":           {&counting{answer: `{"count":-5}`}, Question{}, "holds no count"},
		"NaN":                {&counting{answer: `{"count":NaN}`}, Question{}, "holds no count"},
		"huge":               {&counting{answer: `{"count":1e30}`}, Question{}, "holds no count"},
		"a word":             {&counting{answer: `{"count":"many"}`}, Question{}, "holds no count"},
		"a broken off list":  {&counting{answer: `{"tokens":[1,2`}, Question{}, "holds no count"},
		"an unknown dialect": {&counting{}, Question{Dialect: "ollama"}, "nothing at the upstream"},
		"no object":          {&counting{}, Question{Body: []byte(`[1]`)}, "no JSON object"},
		"a stored prompt":    {&counting{}, Question{Dialect: "responses", Body: []byte(`{"input":"x","prompt":{"id":"p"}}`)}, "has a field that the upstream's counter does not take"},
		"text beside it":     {&counting{}, Question{Dialect: "completions", Body: []byte(`{"prompt":"a","suffix":"b"}`)}, "is not one text"},
		"a list of prompts":  {&counting{}, Question{Dialect: "completions", Body: []byte(`{"prompt":["a","b"]}`)}, "is not one text"},
	} {
		engine := "vllm"
		if name == "a list of prompts" || name == "text beside it" {
			engine = "llamacpp"
		}
		if c.q.Dialect == "" {
			c.q.Dialect = "openai"
		}
		if c.q.Body == nil {
			c.q.Body = chat(10)
		}
		c.q.Limit = 100
		if got, err := counterOf(c.s, engine).Count(t.Context(), c.q); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	// A number in quotes is one all the same.
	s := &counting{answer: `{"count":"700"}`}
	if got, err := counterOf(s, "vllm").Count(t.Context(), Question{Dialect: "openai", Body: chat(10), Limit: 100}); err != nil || got.Tokens != 700 {
		t.Errorf("%+v, %v", got, err)
	}
	// An engine that refuses to count what is over its own limit says enough.
	s = &counting{refuses: 60}
	if got, err := counterOf(s, "vllm").Count(t.Context(), Question{Dialect: "openai", Body: chat(90), Limit: 100}); err != nil || !got.Over {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestManyCountsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &counting{slow: time.Second}
		c := counterOf(s, "vllm")
		if _, err := c.Count(t.Context(), Question{Dialect: "openai", Body: chat(9), Limit: 100}); err != nil {
			t.Fatal(err)
		}
		before, start := s.requests(), time.Now()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if got, err := c.Count(t.Context(), Question{Dialect: "openai", Body: chat(10), Limit: 100}); err != nil || got.Tokens != 10 {
					t.Errorf("%+v, %v", got, err)
				}
			})
		}
		all.Wait()
		if n := s.requests() - before; n != 1 || time.Since(start) != time.Second {
			t.Errorf("%d requests in %s for the same prompt", n, time.Since(start))
		}

		// Two at a time: of thirty others, those whose turn comes within ten
		// seconds are counted.
		counted, gaveUp := 0, 0
		var mu sync.Mutex
		for i := range 30 {
			all.Go(func() {
				_, err := c.Count(t.Context(), Question{Tenant: fmt.Sprint(i), Dialect: "openai", Body: chat(11 + i), Limit: 100})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					counted++
				case strings.Contains(err.Error(), "within 10s") || strings.Contains(err.Error(), "too many"):
					gaveUp++
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if counted < 18 || counted > 20 || counted+gaveUp != 30 {
			t.Errorf("%d counted, %d gave up", counted, gaveUp)
		}

		// One tenant may have eight waiting for its one turn, and no more.
		time.Sleep(2 * time.Second) // what was given up has ended
		before, counted, gaveUp = s.requests(), 0, 0
		for i := range 30 {
			all.Go(func() {
				_, err := c.Count(t.Context(), Question{Tenant: "a", Dialect: "openai", Body: chat(11 + i), Limit: 100})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					counted++
				} else if errors.Is(err, errWaiting) {
					gaveUp++
				}
			})
		}
		all.Wait()
		if counted != 8 || gaveUp != 22 || s.requests()-before != 8 {
			t.Errorf("of one tenant %d counted, %d gave up, %d requests", counted, gaveUp, s.requests()-before)
		}

		// What was counted an hour ago may be of another model.
		before = s.requests()
		time.Sleep(time.Hour + time.Second)
		if _, err := c.Count(t.Context(), Question{Dialect: "openai", Body: chat(10), Limit: 100}); err != nil || s.requests()-before < 2 {
			t.Errorf("after an hour: %v, %d requests", err, s.requests()-before)
		}

		// Who leaves does not take the count away from others; the last does.
		ctx, leave := context.WithCancel(t.Context())
		all.Go(func() {
			if _, err := c.Count(ctx, Question{Dialect: "openai", Body: chat(60), Limit: 100}); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		all.Go(func() {
			if _, err := c.Count(t.Context(), Question{Dialect: "openai", Body: chat(60), Limit: 100}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		leave()
		all.Wait()
		gone, last := context.WithCancel(t.Context())
		all.Go(func() { c.Count(gone, Question{Dialect: "openai", Body: chat(61), Limit: 100}) })
		synctest.Wait()
		last()
		all.Wait()
		// Whoever comes next begins anew.
		if _, err := c.Count(t.Context(), Question{Dialect: "openai", Body: chat(61), Limit: 100}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(c.flights) != 0 || len(c.turns) != 0 || len(c.tenants) != 0 {
			t.Errorf("left behind: %d flights, %d turns, %d tenants", len(c.flights), len(c.turns), len(c.tenants))
		}
	})
}

// An engine that reads more than it has counted is taken to do so again, until
// it was not seen to for a while.
func TestCountsThatTurnOutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := counterOf(&counting{}, "vllm")
		most := func() int {
			got, err := c.Count(t.Context(), Question{Dialect: "openai", Body: chat(1000), Limit: 2000})
			if err != nil || got.Tokens != 1000 {
				t.Fatalf("%+v, %v", got, err)
			}
			return got.Size(Body{}, Policy{}, 2000).AtMost
		}
		for _, step := range []struct {
			counted, read int
			news          bool
			most          int
		}{
			{1000, 1000, false, 1000}, {1000, 10, false, 1000}, {20, 90, false, 1000},
			{1000, 1100, true, 1100}, {1000, 1050, false, 1100}, {500, 600, true, 1200}, {500, 600, false, 1200}, {300, 1 << 40, true, 4000},
		} {
			if got := c.Learn(step.counted, step.read); got != step.news || most() != step.most {
				t.Errorf("%+v: %v, %d", step, got, most())
			}
		}
		time.Sleep(time.Hour + time.Second)
		if got := most(); got != 1000 {
			t.Errorf("after an hour: %d", got)
		}
		if !c.Learn(1000, 1001) || most() != 1001 {
			t.Errorf("learnt anew: %d", most())
		}
	})
}

func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":[2]}`, `{"stream":true}`, `{}`, `null`, `[]`, `{"a":"\ud800"}`, `{"a":1,"a":2}`, ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := parseMembers(body)
		if err != nil {
			return
		}
		again, err := parseMembers(m.write())
		if err != nil || len(again) != len(m) {
			t.Fatalf("%q became %q: %v", body, m.write(), err)
		}
		for _, name := range inert {
			if _, there := m[name]; there {
				t.Fatalf("%s is kept", name)
			}
		}
	})
}
