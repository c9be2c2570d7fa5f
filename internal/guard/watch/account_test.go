package watch

import (
	"strings"
	"testing"
)

// TestUsage: what each dialect says it has read, against what was counted.
func TestUsage(t *testing.T) {
	says := carriers[0].event(`"is it"`)
	openai := func(usage string) string {
		return says + "data: {\"choices\":[],\"usage\":" + usage + "}\n\ndata: [DONE]\n\n"
	}
	anthropic := func(start, end string) string {
		return "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"usage\":" + start + "}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"is\"}}\n\n" +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":" + end + "}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	}
	for _, tt := range []struct {
		name    string
		dialect string
		stream  string
		counted int
		exact   bool
		limit   int
		read    int
		want    string
	}{
		{"the incident", "openai", openai(`{"prompt_tokens":1,"completion_tokens":9}`), 681_281, true, 0, 1, FailOpen},
		{"under one in a hundred", "openai", openai(`{"prompt_tokens":100}`), 10_000, true, 0, 100, FailOpen},
		{"over it", "openai", openai(`{"prompt_tokens":101}`), 10_000, true, 0, 101, ""},
		{"small prompt", "openai", openai(`{"prompt_tokens":1}`), 511, true, 0, 1, ""},
		{"not counted", "openai", openai(`{"prompt_tokens":1}`), 0, false, 0, 1, ""},
		{"bounded only", "openai", openai(`{"prompt_tokens":1}`), 681_281, false, 0, 1, ""},
		{"bounded by more than a million", "openai", openai(`{"prompt_tokens":1}`), 1 << 20, false, 0, 1, FailOpen},
		{"bounded, some read", "openai", openai(`{"prompt_tokens":65}`), 1 << 22, false, 0, 65, ""},
		{"nothing said", "openai", openai(`{"prompt_tokens":0}`), 10_000, true, 0, 0, ""},
		{"no usage", "openai", says + "data: [DONE]\n\n", 10_000, true, 0, 0, ""},
		{"from the cache", "openai", openai(`{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":9991}}`), 10_000, true, 0, 9, ""},
		{"from DeepSeek's cache", "openai", openai(`{"prompt_tokens":9,"prompt_cache_hit_tokens":9991}`), 10_000, true, 0, 9, ""},
		{"placeholder first", "openai", strings.Replace(says, "}]}", `}],"usage":{"prompt_tokens":1}}`, 1) + openai(`{"prompt_tokens":10000}`), 10_000, true, 0, 10_000, ""},
		{"llama.cpp", "openai", says + `data: {"choices":[],"timings":{"cache_n":9990,"prompt_n":10,"predicted_n":2}}` + "\n\ndata: [DONE]\n\n", 10_000, true, 0, 10_000, ""},
		{"llama.cpp that does not count its cache", "openai", says + `data: {"choices":[],"timings":{"prompt_n":10}}` + "\n\ndata: [DONE]\n\n", 10_000, true, 0, 0, ""},
		{"no end", "openai", says + `data: {"choices":[],"usage":{"prompt_tokens":3}}` + "\n\n", 10_000, true, 0, 3, FailOpen},
		{"completions", "completions", "data: {\"choices\":[{\"text\":\"is\"}],\"usage\":{\"prompt_tokens\":3}}\n\ndata: [DONE]\n\n", 10_000, true, 0, 3, FailOpen},
		{"nothing but an end", "openai", "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":1}}\n\ndata: [DONE]\n\n", 10_000, true, 0, 1, FailOpen},
		{"refused in the answer", "openai", "data: {\"error\":{\"message\":\"no\"},\"usage\":{\"prompt_tokens\":1}}\n\n", 10_000, true, 0, 1, Trouble},
		{"anthropic", "anthropic", anthropic(`{"input_tokens":2,"output_tokens":1}`, `{"output_tokens":9}`), 10_000, true, 0, 2, FailOpen},
		{"anthropic's cache", "anthropic", anthropic(`{"input_tokens":2,"cache_read_input_tokens":9000,"cache_creation_input_tokens":998}`, `{"output_tokens":9}`), 10_000, true, 0, 10_000, ""},
		{"anthropic, said at the end", "anthropic", anthropic(`{"input_tokens":0}`, `{"input_tokens":10000,"output_tokens":9}`), 10_000, true, 0, 10_000, ""},
		{"responses", "responses", "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"is\"}\n\n" +
			"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"error\":null,\"usage\":{\"input_tokens\":4,\"output_tokens\":2}}}\n\n", 10_000, true, 0, 4, FailOpen},
		{"responses' cache", "responses", "data: {\"type\":\"response.output_text.delta\",\"delta\":\"is\"}\n\n" +
			"data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":4,\"input_tokens_details\":{\"cached_tokens\":9000}}}}\n\n", 10_000, true, 0, 4, ""},
		{"ollama does not say what it cached", "ollama", `{"message":{"content":"is"},"done":true,"prompt_eval_count":4}` + "\n", 10_000, true, 0, 4, ""},
		{"over the limit", "openai", openai(`{"prompt_tokens":2001}`), 2001, true, 2000, 2001, OverSize},
		{"at the limit", "openai", openai(`{"prompt_tokens":2000}`), 2000, true, 2000, 2000, ""},
		{"in the text", "openai", carriers[0].event(quote(`"usage":{"prompt_tokens":1}`)) + openai(`{"prompt_tokens":9999}`), 10_000, true, 0, 9999, ""},
		{"a tool's usage", "ollama", `{"message":{"tool_calls":[{"function":{"arguments":{"usage":{"prompt_tokens":20000}}}}]},"done":true,"prompt_eval_count":7}` + "\n", 10_000, true, 9000, 7, ""},
		{"another tool's usage", "anthropic", strings.Replace(anthropic(`{"input_tokens":900}`, `{"output_tokens":9}`), `"text":"is"`, `"input":{"usage":{"input_tokens":20000}}`, 1), 900, true, 9000, 900, ""},
		{"a tool that failed", "responses", `data: {"type":"response.output_item.done","output_index":0,"item":{"type":"mcp_call","id":"mcp_1","error":"it timed out","output":null}}` + "\n\n" +
			`data: {"type":"response.output_text.delta","output_index":1,"delta":"is"}` + "\n\n" +
			`data: {"type":"response.completed","response":{"error":null,"usage":{"input_tokens":9000}}}` + "\n\n", 9000, true, 0, 9000, ""},
		{"a tool's number", "openai", `data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":{"prompt_tokens":20000}}}]}}]}` + "\n\n" + openai(`{"prompt_tokens":1}`), 10_000, true, 0, 1, FailOpen},
	} {
		w := New(Options{Dialect: tt.dialect, Stream: true, Strict: true, Counted: tt.counted, Exact: tt.exact, Limit: tt.limit})
		out, stopped := send(w, tt.stream, 50)
		got := ""
		for _, f := range w.Findings() {
			got = f.Kind
		}
		if stops := tt.want == FailOpen; got != tt.want || stopped != stops || !stops && out != tt.stream || strings.Contains(out, "[DONE]") && stops {
			t.Errorf("%s: stopped %v, findings %+v\n%s", tt.name, stopped, w.Findings(), out)
		}
		if read, _ := w.Usage(); read != tt.read {
			t.Errorf("%s: %d tokens read, want %d", tt.name, read, tt.read)
		}
	}
}

// TestAfterTheEnd: an answer that says something after an error, or after it
// has said that it ends, is stopped there.
func TestAfterTheEnd(t *testing.T) {
	says, end := carriers[0].event(`"is it"`), "data: [DONE]\n\n"
	failed := `data: {"error":{"message":"the prompt is too long","code":400}}` + "\n\n"
	for _, tt := range []struct {
		name    string
		dialect string
		stream  string
		want    string
		let     int // bytes that are let out
	}{
		{"after [DONE]", "openai", says + end + says, "broken_stream content", len(says + end)},
		{"nothing but an end", "openai", says + end + chatHead + ": bye\n\n" + end, "", -1},
		{"another stream's tool call", "openai", says + end + carriers[3].event(`"{}"`), "broken_stream tool_calls", len(says + end)},
		{"an error", "openai", says + failed + end, "error_in_answer error", -1},
		{"text after it", "openai", failed + says + end, "error_in_answer error, fail_open content", len(failed)},
		{"llama.cpp's", "openai", says + "error: {\"code\":400}\n\n" + says, "error_in_answer error, fail_open content", len(says + "error: {\"code\":400}\n\n")},
		{"white space after it", "openai", failed + carriers[0].event(`"\n \t"`) + end, "error_in_answer error", -1},
		{"errors that are none", "openai", strings.Repeat(strings.Replace(says, `"choices"`, `"error":null,"choices"`, 1)+strings.Replace(says, `"choices"`, `"error":{},"choices"`, 1)+
			strings.Replace(says, `"choices"`, `"error":"","choices"`, 1)+strings.Replace(says, `"choices"`, `"error":false,"choices"`, 1), 2), "", -1},
		{"the word in the text", "openai", carriers[0].event(quote(`{"error":{"message":"x"}}`)) + says, "", -1},
		{"a tool's error", "openai", strings.Repeat(`data: {"choices":[{"delta":{"tool_calls":[{"error":"x"}],"content":"is"}}]}`+"\n\n", 2), "", -1},
		{"anthropic's", "anthropic", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n" + carriers[11].event(`"is"`), "error_in_answer error, fail_open content", len("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n")},
		{"anthropic's end", "anthropic", carriers[11].tail + carriers[11].event(`"is"`), "broken_stream content", len(carriers[11].tail)},
		{"responses'", "responses", "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"x\"}}}\n\n", "error_in_answer error", -1},
		{"responses' end", "responses", "data: {\"type\":\"response.completed\",\"response\":{\"error\":null,\"output\":[{\"content\":[{\"text\":\"is\"}]}]}}\n\ndata: [DONE]\n\n", "", -1},
		{"responses' error and what follows", "responses", "event: error\ndata: {\"type\":\"error\",\"message\":\"no room\"}\n\n" +
			"data: {\"type\":\"response.output_text.done\",\"text\":\"is\"}\n\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"x\"},\"output\":[{\"content\":[{\"text\":\"is\"}]}]}}\n\n", "error_in_answer error", -1},
		{"responses' text after an error", "responses", "data: {\"type\":\"error\",\"message\":\"no room\"}\n\n" + carriers[14].event(`"is"`), "error_in_answer error, fail_open content", 44},
		{"errors with messages", "openai", strings.Repeat("event: error\ndata: {\"message\":\"no room\"}\n\nerror: {\"code\":400,\"message\":\"no room\"}\n\n"+failed, 2), "error_in_answer error", -1},
		{"ollama's end", "ollama", carriers[17].tail + carriers[17].event(`"is"`), "broken_stream content", len(carriers[17].tail)},
		{"ollama's error", "ollama", `{"error":"the prompt is longer"}` + "\n", "error_in_answer error", -1},
	} {
		w := New(Options{Dialect: tt.dialect, Stream: true, Strict: true})
		out, stopped := send(w, tt.stream, 33)
		if tt.let < 0 {
			tt.let = len(tt.stream)
		}
		if kinds(w) != tt.want || out != tt.stream[:tt.let] || stopped != (tt.let < len(tt.stream)) {
			t.Errorf("%s: stopped %v, found %q, want %q\n%s", tt.name, stopped, kinds(w), tt.want, out)
		}
		w = New(Options{Dialect: tt.dialect, Stream: true})
		if out, stopped := send(w, tt.stream, 33); stopped || out != tt.stream || kinds(w) != tt.want {
			t.Errorf("%s: audit: stopped %v, found %q", tt.name, stopped, kinds(w))
		}
	}
}

// TestErrorsThatAreExpected: an answer with a status of failure is one.
func TestErrorsThatAreExpected(t *testing.T) {
	w := New(Options{Dialect: "openai", Strict: true, Failed: true, Counted: 10_000, Exact: true})
	doc := `{"error":{"message":"This model's maximum context length is 16384 tokens","code":400}}`
	if out, stopped := send(w, doc, 9); stopped || out != doc || len(w.Findings()) > 0 {
		t.Errorf("stopped %v, %+v", stopped, w.Findings())
	}
}
