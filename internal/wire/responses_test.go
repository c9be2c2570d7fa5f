package wire

import (
	"strings"
	"testing"
)

// responsesFixture is an answer of OpenAI's own shape, with every kind of part.
var responsesFixture = fixture{
	dialect: "responses", path: "/v1/responses",
	stream: sse(
		`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","model":"m-1","status":"in_progress","output":[],"usage":null}}`,
		`{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}`,
		`{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"h"}`,
		`{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"m"}`,
		`{"type":"response.reasoning_summary_text.done","item_id":"rs_1","output_index":0,"summary_index":0,"text":"hm"}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}}`,
		`{"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}`,
		`{"type":"response.content_part.added","item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":""}}`,
		`{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"hello "}`,
		`{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"a\""}`,
		`{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"world"}`,
		`{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":":1}"}`,
		`{"type":"response.output_text.done","item_id":"msg_1","output_index":1,"content_index":0,"text":"hello world"}`,
		`{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":2,"arguments":"{\"a\":1}"}`,
		`{"type":"response.completed","response":`+responsesWhole+`}`,
	),
	document: responsesWhole,
	finish:   "completed",
	failed: sse(
		`{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress"}}`,
		`{"type":"response.failed","response":{"id":"resp_1","object":"response","status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model. Please adjust your input and try again."}}}`,
	),
	errorEvent: sse(
		`{"type":"response.output_text.delta","delta":"hel"}`,
		`{"type":"error","sequence_number":3,"code":"context_length_exceeded","message":"Your input exceeds the context window of this model.","param":null}`,
	),
	body: `{"model":"m","input":[{"type":"message","role":"system","content":"be"},{"type":"message","role":"user","content":"hi \"x\""},` +
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"yo"}]},` +
		`{"type":"message","role":"user","content":[{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,AQID"},{"type":"input_text","text":"see"}]}],` +
		`"max_output_tokens":8,"temperature":0.5,"store":false,"stream":true}`,
	countPath: "/v1/responses/input_tokens",
	counted:   `{"object":"response.input_tokens","input_tokens":42}`,
}

const responsesWhole = `{"id":"resp_1","object":"response","model":"m-1","status":"completed","error":null,"incomplete_details":null,"output":[` +
	`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},` +
	`{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"hello world","annotations":[]}]},` +
	`{"id":"fc_1","type":"function_call","name":"f","arguments":"{\"a\":1}"}],` +
	`"usage":{"input_tokens":7,"input_tokens_details":{"cached_tokens":3},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":9}}`

func TestResponsesChannels(t *testing.T) {
	for _, c := range []struct {
		doc  string
		want Channel
		text string
	}{
		{`{"type":"response.refusal.delta","delta":"no"}`, Content, "no"},
		{`{"type":"response.reasoning_text.delta","delta":"deep"}`, Reasoning, "deep"},
		{`{"type":"response.audio.transcript.delta","delta":"said"}`, Content, "said"},
		{`{"type":"response.custom_tool_call_input.delta","delta":"in"}`, ToolCalls, "in"},
		{`{"type":"response.mcp_call_arguments.done","arguments":"{}"}`, ToolCalls, "{}"},
		{`{"type":"response.code_interpreter_call_code.done","code":"print()"}`, ToolCalls, "print()"},
		{`{"type":"response.output_text.delta","delta":"a","logprobs":[{"token":"a","top_logprobs":[{"token":"z"}]}]}`, Logprobs, "a\nz"},
		{`{"type":"response.output_item.done","item":{"type":"reasoning","content":[{"type":"reasoning_text","text":"raw"}],"encrypted_content":"x9"}}`, Reasoning, "x9\nraw"},
		{`{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"refusal","refusal":"no"}]}}`, Content, "no"},
		// What a later version may send is looked through, too.
		{`{"type":"response.brand_new.delta","delta":{"text":"odd"}}`, ToolCalls, "odd"},
	} {
		tr := newTranscript(fixedNow)
		responsesEvent(tr, "", []byte(c.doc))
		if got := (&Answer{Pieces: tr.pieces()}).Text(c.want); !strings.Contains(got, c.text) || tr.garbage != "" {
			t.Errorf("%s: %s %q, garbage %q", c.doc, c.want, got, tr.garbage)
		}
	}
}

// A part that ends in other words than it was streamed in keeps both.
func TestResponsesEndMayDiffer(t *testing.T) {
	a := do(t, "responses", "text/event-stream", sse(
		`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"mine"}`,
		`{"type":"response.output_text.done","output_index":0,"content_index":0,"text":"mine and another's"}`,
		`{"type":"response.incomplete","response":{"id":"r","object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}}`))
	if got := a.Text(Content); !a.Served() || !strings.Contains(got, "mine\n") || !strings.Contains(got, "another's") {
		t.Errorf("content %q, %+v %+v", got, a.Refusal, a.Failure)
	}
	if a.Finish != "max_output_tokens" || !a.CutShort() || a.EndedByItself() {
		t.Errorf("finish %q", a.Finish)
	}
}

// A failure without a reason is a refusal all the same.
func TestResponsesFailedWithoutReason(t *testing.T) {
	for _, doc := range []string{
		`{"id":"r","object":"response","status":"failed","output":[]}`,
		`{"id":"r","object":"response","status":"failed","error":{},"output":[]}`,
	} {
		if a := do(t, "responses", "application/json", doc); a.Refusal == nil || !a.Refusal.InAnswer {
			t.Errorf("%s: %+v %+v", doc, a.Refusal, a.Failure)
		}
	}
}

func FuzzResponses(f *testing.F) { fuzzDialect(f, openAIResponses, responsesFixture) }
