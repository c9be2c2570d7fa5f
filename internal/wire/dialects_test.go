package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"
)

// fixture is one answer in a dialect: it thinks "hm", says "hello world" and
// calls a tool with {"a":1}; the prompt has 7 tokens, 3 of them cached, the
// answer 2, 1 of them thought.
type fixture struct {
	dialect, path    string
	contentType      string // of a stream; text/event-stream if empty
	stream, document string
	finish           string
	noID, noCached   bool   // the dialect does not tell
	failed           string // a stream that is a refusal for its length from the start
	errorEvent       string // one that is so after a few words
	body             string // of the request that TestDialectBodies sends
	countPath        string // of its counter, empty for none
	counted          string // what the counter answers: 42
}

// chatFixture is the same answer as chat completions have it.
var chatFixture = fixture{
	dialect: "openai", path: "/v1/chat/completions",
	stream: events(
		`{"id":"resp_1","model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":"h"}}]}`,
		`{"id":"resp_1","model":"m-1","choices":[{"index":0,"delta":{"reasoning_content":"m"}}]}`,
		delta(`{"content":"hello "}`), delta(`{"content":"world"}`),
		delta(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"a\""}}]}`),
		delta(`{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}`),
		`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
		`{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":1}}}`,
		"[DONE]"),
	document: `{"id":"resp_1","model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"hello world","reasoning_content":"hm","tool_calls":[{"function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":7,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":1}}}`,
	finish:     "stop",
	failed:     events(`{"error":{"message":"This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens.","code":"context_length_exceeded"}}`, "[DONE]"),
	errorEvent: events(delta(`{"content":"hel"}`), `{"error":{"message":"Input length (20480 tokens) exceeds the maximum allowed length (20474 tokens).","code":400}}`, "[DONE]"),
	body: `{"model":"m","messages":[{"role":"system","content":"be"},{"role":"user","content":"hi \"x\""},{"role":"assistant","content":"yo"},` +
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AQID"}},{"type":"text","text":"see"}]}],` +
		`"max_tokens":8,"temperature":0.5,"stream":true,"stream_options":{"include_usage":true}}`,
	countPath: "/tokenize",
	counted:   `{"count":42,"tokens":[1,2]}`,
}

var fixtures = []fixture{chatFixture, responsesFixture, anthropicFixture, ollamaFixture}

func TestEveryDialectHasAFixture(t *testing.T) {
	for i, name := range Dialects() {
		if fixtures[i].dialect != name {
			t.Errorf("no fixture for %s", name)
		}
	}
}

// sse writes events as servers of these dialects do: each with its name.
func sse(docs ...string) string {
	var b strings.Builder
	for _, d := range docs {
		var e struct{ Type string }
		json.Unmarshal([]byte(d), &e)
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", e.Type, d)
	}
	return b.String()
}

func fixedNow() time.Time { return time.Unix(1, 0) }

// do asks a server that answers every prompt with one body.
func do(t testing.TB, dialect, contentType, body string) *Answer {
	t.Helper()
	return serve(t, answer(200, contentType, body), Options{Dialect: dialect, Now: fixedNow}).Do(context.Background(), prompt("hi"))
}

func (f fixture) streamType() string {
	if f.contentType != "" {
		return f.contentType
	}
	return "text/event-stream"
}

// check holds an answer against what every fixture says.
func (f fixture) check(t *testing.T, a *Answer) {
	t.Helper()
	if !a.Served() {
		t.Fatalf("refusal %+v, failure %+v", a.Refusal, a.Failure)
	}
	if a.Text(Content) != "hello world" || a.Text(Reasoning) != "hm" || !strings.Contains(a.Text(ToolCalls), `{"a":1}`) {
		t.Errorf("pieces %q", a.Pieces)
	}
	want := Usage{Prompt: 7, Completion: 2, Cached: 3, Reasoning: 1}
	if f.noCached {
		want.Cached, want.Reasoning = 0, 0
	}
	if a.Usage == nil || *a.Usage != want {
		t.Errorf("usage %+v, want %+v", a.Usage, want)
	}
	if a.Finish != f.finish || !a.EndedByItself() || a.CutShort() {
		t.Errorf("finish %q", a.Finish)
	}
	if a.Model != "m-1" || a.ID != "resp_1" && !f.noID {
		t.Errorf("model %q, id %q", a.Model, a.ID)
	}
	if a.FirstToken.IsZero() {
		t.Error("no first token")
	}
}

// Streams arrive in pieces of any size, also within a character or a line.
func TestDialectsInOddPieces(t *testing.T) {
	for _, f := range fixtures {
		t.Run(f.dialect, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			most := 1
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				if r.URL.Path != f.path {
					t.Errorf("asked at %s", r.URL.Path)
				}
				w.Header().Set("Content-Type", f.streamType())
				for s := f.stream; s != ""; {
					n := min(len(s), 1+random.IntN(most))
					flush(w, s[:n])
					s = s[n:]
				}
			}, Options{Dialect: f.dialect})
			for _, most = range []int{1, 7, 100, 2000} {
				a := c.Do(context.Background(), prompt("hi"))
				f.check(t, a)
				if string(a.Raw.Bytes) != f.stream {
					t.Errorf("raw bytes differ: %q", a.Raw.Bytes)
				}
			}
		})
	}
}

// An answer in one document, and a stream that is called something else, say
// the same.
func TestDialectsInOneDocument(t *testing.T) {
	for _, f := range fixtures {
		for _, ct := range []string{"application/json", "text/event-stream", "text/html", ""} {
			f.check(t, do(t, f.dialect, ct, f.document))
			f.check(t, do(t, f.dialect, ct, f.stream))
		}
	}
}

// A stream that is cut anywhere before its end is a failure, never an answer;
// what had come of it is kept.
func TestDialectsCutAnywhere(t *testing.T) {
	for _, f := range fixtures {
		finished, n := strings.LastIndex(f.stream, f.finish), 0
		c := serve(t, func(w http.ResponseWriter, r *http.Request) { answer(200, f.streamType(), f.stream[:n])(w, r) }, Options{Dialect: f.dialect})
		for n = 1; n < finished; n += 1 + n%7 {
			if a := c.Do(context.Background(), prompt("hi")); a.Served() || a.Refusal != nil {
				t.Errorf("%s cut at %d of %d: served %v, refusal %+v", f.dialect, n, len(f.stream), a.Served(), a.Refusal)
			}
		}
	}
}

func TestDialectsRefuseWithinA200(t *testing.T) {
	for _, f := range fixtures {
		a := do(t, f.dialect, f.streamType(), f.failed)
		if !a.Refusal.TooLong() || !a.Refusal.InAnswer {
			t.Errorf("%s: refusal %+v, failure %+v", f.dialect, a.Refusal, a.Failure)
		}
		a = do(t, f.dialect, f.streamType(), f.errorEvent)
		if !a.Refusal.TooLong() || a.Text(Content) != "hel" || a.Text(ErrorBody) == "" {
			t.Errorf("%s: refusal %+v, failure %+v, pieces %q", f.dialect, a.Refusal, a.Failure, a.Pieces)
		}
	}
}

func TestDialectBodies(t *testing.T) {
	r := Request{Model: "m", MaxTokens: 8, Temperature: 0.5, Stream: true, Messages: []Message{
		{Role: "system", Text: text("be")}, {Role: "user", Text: text(`hi "x"`)}, {Role: "assistant", Text: text("yo")},
		{Role: "user", Text: text("see"), Images: [][]byte{{1, 2, 3}}},
	}}
	for _, f := range fixtures {
		d, _ := findDialect(f.dialect)
		got, err := io.ReadAll(&bodyReader{segs: d.body(r, quirks{}), moved: func() {}})
		if err != nil || string(got) != f.body {
			t.Errorf("%s: %v\n%s\nwant\n%s", f.dialect, err, got, f.body)
		}
		plain := Request{Model: "m", Messages: r.Messages[1:2]}
		got, _ = io.ReadAll(&bodyReader{segs: d.body(plain, quirks{noTemperature: true, noStore: true}), moved: func() {}})
		if !json.Valid(got) || bytes.Contains(got, []byte("temperature")) || bytes.Contains(got, []byte("store")) {
			t.Errorf("%s without its extras: %s", f.dialect, got)
		}
	}
}

// Every dialect asks its own counter first, and those of engines after it.
func TestDialectCounters(t *testing.T) {
	for _, f := range fixtures {
		if f.countPath == "" {
			continue
		}
		for _, at := range []string{f.countPath, "/tokenize"} {
			var asked []string
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				asked = append(asked, r.URL.Path)
				switch {
				case r.URL.Path != at:
					http.NotFound(w, r)
				case !json.Valid(body) || !bytes.Contains(body, []byte("hi")):
					t.Errorf("%s was asked %s", at, body)
				case at == f.countPath:
					io.WriteString(w, f.counted)
				default:
					io.WriteString(w, chatFixture.counted)
				}
			}, Options{Dialect: f.dialect})
			for range 2 {
				if n, ok, err := c.CountTokens(context.Background(), "", "m", prompt("hi").Messages); n != 42 || !ok || err != nil {
					t.Errorf("%s at %s: %d, %v, %v (asked %v)", f.dialect, at, n, ok, err, asked)
				}
			}
			if asked[0] != f.countPath || asked[len(asked)-1] != at {
				t.Errorf("%s: asked %v", f.dialect, asked)
			}
		}
	}
}

// Whatever a server sends that is no answer is no answer.
func TestDialectsTakeNothingElse(t *testing.T) {
	deep := strings.Repeat(`{"message":`, 20000) + "1" + strings.Repeat("}", 20000)
	for _, f := range fixtures {
		for name, body := range map[string]string{
			"html":       "<!doctype html><title>x</title>",
			"empty":      "",
			"array":      "[]",
			"string":     `"hello"`,
			"number":     "7",
			"null":       "null",
			"empty doc":  "{}",
			"deep":       deep,
			"half":       f.document[:len(f.document)/2],
			"comments":   strings.Repeat(": keep-alive\n\n", 1000),
			"half event": "data: {\"type\":\n\n",
			"no events":  "data: {}\n\ndata: []\n\n",
		} {
			for _, ct := range []string{"application/json", f.streamType()} {
				a := do(t, f.dialect, ct, body)
				if a.Failure == nil {
					t.Errorf("%s, %s as %s: served %v, refusal %+v", f.dialect, name, ct, a.Served(), a.Refusal)
				} else if len(a.Failure.Message) > 500 {
					t.Errorf("%s, %s: message %q", f.dialect, name, a.Failure.Message)
				}
			}
		}
	}
}

// The answer of one dialect is no answer of another, and the line says what to
// look at.
func TestWrongDialect(t *testing.T) {
	for _, server := range fixtures {
		for _, client := range fixtures {
			if server.dialect == client.dialect {
				continue
			}
			for _, body := range []string{server.document, server.stream} {
				a := do(t, client.dialect, server.streamType(), body)
				if a.Failure == nil || a.Failure.Kind != FailedNotAPI || !strings.Contains(a.Failure.Message, "dialect") {
					t.Errorf("%s read as %s: %+v, %+v", server.dialect, client.dialect, a.Refusal, a.Failure)
				}
			}
		}
	}
}

// A server of the dialect that wants the key as a bearer token gets it so, and
// from then on at once.
func TestKeyAsBearer(t *testing.T) {
	var heads []http.Header
	want := "Authorization"
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		heads = append(heads, r.Header)
		if r.Header.Get(want) == "" || !strings.Contains(r.Header.Get(want), "sk-good-key") {
			w.WriteHeader(401)
			io.WriteString(w, `{"error":{"message":"who are you"}}`)
			return
		}
		io.WriteString(w, anthropicFixture.document)
	}, Options{Dialect: "anthropic"})
	r := prompt("hi")
	r.Key = "sk-wrong-key"
	wantRefusal(t, c.Do(context.Background(), r), RefusedAuth, "who are you")
	if len(heads) != 2 || heads[0].Get("X-Api-Key") != "sk-wrong-key" || heads[0].Get("Authorization") != "" || heads[0].Get("Anthropic-Version") == "" {
		t.Fatalf("asked with %v", heads)
	}
	r.Key = "sk-good-key"
	for i, n := range []int{4, 5} {
		if a := c.Do(context.Background(), r); !a.Served() || len(heads) != n || a.Resent != 1-i {
			t.Errorf("asked %d times in all, resent %d, %+v", len(heads), a.Resent, a.Refusal)
		}
	}
}

// fuzzDialect reads anything as an event and as a document of a dialect.
func fuzzDialect(f *testing.F, d dialect, x fixture) {
	for _, s := range []string{x.stream, x.failed, x.errorEvent, x.document} {
		f.Add("", []byte(s))
		for line := range strings.Lines(s) {
			f.Add("error", []byte(strings.TrimPrefix(strings.TrimSpace(line), "data: ")))
		}
	}
	for _, s := range []string{"[DONE]", "{", "NaN", `{"type":1}`, `{"type":"error"}`, `{"error":"x"}`, `{"usage":{"input_tokens":-1}}`, `{"done":true,"prompt_eval_count":1e300}`, `{"response":[]}`, `{"delta":{"text":[]}}`} {
		f.Add("", []byte(s))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		tr := newTranscript(fixedNow)
		before := bytes.Clone(data)
		d.event(tr, name, data)
		d.event(tr, name, data)
		if len(data) > 0 {
			d.document(tr, data)
		}
		if !bytes.Equal(before, data) {
			t.Error("the event was changed")
		}
		if u := tr.usage; u != nil && (u.Prompt < 0 || u.Completion < 0 || u.Cached < 0 || u.Reasoning < 0) {
			t.Errorf("usage %+v", u)
		}
		total := 0
		for _, p := range tr.pieces() {
			total += len(p.Text)
		}
		if total > 64*len(data)+4096 {
			t.Errorf("%d bytes of text made of %d", total, len(data))
		}
	})
}
