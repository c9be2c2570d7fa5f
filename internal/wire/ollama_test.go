package wire

import (
	"context"
	"testing"
)

// ollamaFixture is an answer as Ollama 0.32 gives it.
var ollamaFixture = fixture{
	dialect: "ollama", path: "/api/chat", contentType: "application/x-ndjson",
	stream: `{"model":"m-1","created_at":"2026-11-30T13:24:57Z","message":{"role":"assistant","content":"","thinking":"h"},"done":false}
{"model":"m-1","message":{"role":"assistant","content":"","thinking":"m"},"done":false}
{"model":"m-1","message":{"role":"assistant","content":"hello "},"done":false}
{"model":"m-1","message":{"role":"assistant","content":"world"},"done":false}
{"model":"m-1","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]},"done":false}
{"model":"m-1","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":5,"prompt_eval_count":7,"eval_count":2}
`,
	document: `{"model":"m-1","created_at":"2026-11-30T13:24:57Z","message":{"role":"assistant","content":"hello world","thinking":"hm","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]},"done":true,"done_reason":"stop","prompt_eval_count":7,"eval_count":2}`,
	finish:   "stop",
	noID:     true, noCached: true,
	failed: `{"error":"the prompt is longer than the context length currently available to the model; shorten the prompt"}` + "\n",
	errorEvent: `{"model":"m-1","message":{"role":"assistant","content":"hel"},"done":false}
{"error":"{\"error\":{\"code\":400,\"message\":\"request (5016 tokens) exceeds the available context size (2048 tokens), try increasing it\",\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":5016,\"n_ctx\":2048}}"}
`,
	body: `{"model":"m","messages":[{"role":"system","content":"be"},{"role":"user","content":"hi \"x\""},{"role":"assistant","content":"yo"},` +
		`{"role":"user","images":["AQID"],"content":"see"}],"stream":true,"options":{"num_predict":8,"temperature":0.5}}`,
}

func TestOllamaOdds(t *testing.T) {
	for _, c := range []struct {
		name, doc string
		finish    string
		usage     *Usage
	}{
		{"no reason", `{"message":{"content":"x"},"done":true}`, "done", nil},
		{"no prompt count", `{"message":{"content":"x"},"done":true,"done_reason":"length","eval_count":4}`, "length", nil},
		{"negative count", `{"message":{"content":"x"},"done":true,"done_reason":"stop","prompt_eval_count":-1,"eval_count":4}`, "stop", nil},
		{"a count of zero", `{"message":{"content":"x"},"done":true,"done_reason":"stop","prompt_eval_count":0,"eval_count":0}`, "stop", &Usage{}},
		{"streamed in one", `{"message":{"content":"x"},"done":false}` + "\n" + `{"done":true,"done_reason":"stop","prompt_eval_count":3}`, "stop", &Usage{Prompt: 3}},
	} {
		for _, ct := range []string{"application/json", "application/x-ndjson", "text/plain"} {
			a := do(t, "ollama", ct, c.doc)
			if !a.Served() || a.Finish != c.finish || a.Text(Content) != "x" || (a.Usage == nil) != (c.usage == nil) || a.Usage != nil && *a.Usage != *c.usage {
				t.Errorf("%s as %s: %+v %+v, %+v %+v", c.name, ct, a.Refusal, a.Failure, a.Usage, a.Pieces)
			}
		}
	}
}

// Ollama has nothing that counts: it is not asked.
func TestOllamaHasNoCounter(t *testing.T) {
	c := serve(t, answer(200, "application/json", `{"count":9}`), Options{Dialect: "ollama"})
	if n, ok, err := c.CountTokens(context.Background(), "", "m", prompt("hi").Messages); ok || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
}

func FuzzOllama(f *testing.F) { fuzzDialect(f, ollamaChat, ollamaFixture) }
