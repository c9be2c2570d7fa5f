package wire

import (
	"testing"
)

// anthropicFixture is an answer of Anthropic's own shape, with every kind of
// block.
var anthropicFixture = fixture{
	dialect: "anthropic", path: "/v1/messages",
	stream: sse(
		`{"type":"message_start","message":{"id":"resp_1","type":"message","role":"assistant","model":"m-1","content":[],"stop_reason":null,"usage":{"input_tokens":1,"cache_creation_input_tokens":3,"cache_read_input_tokens":3,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"ping"}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"hello "}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"world"}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":":1}"}}`,
		`{"type":"content_block_stop","index":2}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2,"output_tokens_details":{"thinking_tokens":1}}}`,
		`{"type":"message_stop"}`,
	),
	document: `{"id":"resp_1","type":"message","role":"assistant","model":"m-1","content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"hello world"},` +
		`{"type":"tool_use","id":"t1","name":"f","input":{"a":1}}],"stop_reason":"end_turn","stop_sequence":null,` +
		`"usage":{"input_tokens":1,"cache_creation_input_tokens":3,"cache_read_input_tokens":3,"output_tokens":2,"output_tokens_details":{"thinking_tokens":1}}}`,
	finish: "end_turn",
	failed: sse(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`),
	errorEvent: sse(
		`{"type":"message_start","message":{"id":"x","type":"message","content":[],"usage":{"input_tokens":5}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hel"}}`,
		`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`,
	),
	body: `{"model":"m","system":[{"type":"text","text":"be"}],"messages":[{"role":"user","content":"hi \"x\""},{"role":"assistant","content":"yo"},` +
		`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQID"}},{"type":"text","text":"see"}]}],` +
		`"max_tokens":8,"temperature":0.5,"stream":true}`,
	countPath: "/v1/messages/count_tokens",
	counted:   `{"input_tokens":42}`,
}

// The heaps of a prompt are added up, whichever event of a stream has them: the
// first one alone, the last one alone, or both with the last one complete.
func TestAnthropicUsageAddsUp(t *testing.T) {
	start := func(u string) string {
		return `{"type":"message_start","message":{"id":"x","type":"message","content":[],"usage":` + u + `}}`
	}
	end := func(u string) string {
		return `{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":` + u + `}`
	}
	for _, c := range []struct {
		name, start, end string
		want             *Usage
	}{
		{"first alone", `{"input_tokens":10,"cache_read_input_tokens":200,"cache_creation_input_tokens":30,"output_tokens":1}`, `{"output_tokens":5}`, &Usage{Prompt: 240, Completion: 5, Cached: 200}},
		{"last alone", `{"input_tokens":0,"output_tokens":0}`, `{"input_tokens":10,"cache_read_input_tokens":90,"output_tokens":5}`, &Usage{Prompt: 100, Completion: 5, Cached: 90}},
		{"null in the last", `{"input_tokens":10,"cache_read_input_tokens":90,"output_tokens":0}`, `{"input_tokens":null,"cache_read_input_tokens":null,"output_tokens":5}`, &Usage{Prompt: 100, Completion: 5, Cached: 90}},
		{"negative in the last", `{"input_tokens":10,"output_tokens":0}`, `{"input_tokens":-4,"output_tokens":NaN}`, &Usage{Prompt: 10}},
		{"none", `null`, `null`, nil},
		{"no prompt", `{"output_tokens":1}`, `{"output_tokens":5}`, nil},
	} {
		a := do(t, "anthropic", "text/event-stream", sse(start(c.start), `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`, end(c.end), `{"type":"message_stop"}`))
		if !a.Served() || (a.Usage == nil) != (c.want == nil) || a.Usage != nil && *a.Usage != *c.want {
			t.Errorf("%s: %+v, want %+v (%+v %+v)", c.name, a.Usage, c.want, a.Refusal, a.Failure)
		}
	}
}

func TestAnthropicChannels(t *testing.T) {
	for doc, want := range map[string]Piece{
		`{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"zz"}}`:                               {Reasoning, "zz"},
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}`:                                   {Reasoning, "sig"},
		`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"cited_text":"c"}}}`:                       {Content, `{"cited_text":"c"}`},
		`{"type":"content_block_start","index":0,"content_block":{"type":"web_search_tool_result","content":[{"title":"t"}]}}`:            {ToolCalls, `[{"title":"t"}]`},
		`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","name":"web_search","input":{"query":"q"}}}`:   {ToolCalls, "web_search\n{\"query\":\"q\"}"},
		`{"type":"message","id":"x","content":[{"type":"text","text":"whole"}],"stop_reason":"stop_sequence","usage":{"input_tokens":1}}`: {Content, "whole"},
	} {
		tr := newTranscript(fixedNow)
		anthropicEvent(tr, "", []byte(doc))
		if got := (&Answer{Pieces: tr.pieces()}).Text(want.Channel); got != want.Text || tr.garbage != "" {
			t.Errorf("%s: %q, garbage %q", doc, got, tr.garbage)
		}
	}
}

// An answer that is nothing but the window's end is the refusal that it is.
func TestAnthropicWindow(t *testing.T) {
	window := `{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"},"usage":{"output_tokens":0}}`
	start := `{"type":"message_start","message":{"id":"x","type":"message","content":[],"usage":{"input_tokens":9}}}`
	a := do(t, "anthropic", "text/event-stream", sse(start, window, `{"type":"message_stop"}`))
	wantRefusal(t, a, RefusedContext, "window")
	a = do(t, "anthropic", "text/event-stream", sse(start, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`, window, `{"type":"message_stop"}`))
	if !a.Served() {
		t.Errorf("an answer that filled the window: %+v %+v", a.Refusal, a.Failure)
	}
}

func FuzzAnthropic(f *testing.F) { fuzzDialect(f, anthropicMessages, anthropicFixture) }
