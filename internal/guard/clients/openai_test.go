package clients

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

func openAI(url string) openai.Client {
	return openai.NewClient(option.WithBaseURL(url+"/v1/"), option.WithAPIKey("sk-any"), option.WithMaxRetries(0))
}

func asks(text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}}
}

const chatPath = "/v1/chat/completions"

func chunk(delta, finish string) string {
	return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
}

func TestOpenAIAnswer(t *testing.T) {
	e := &engine{answer: map[string]func(http.ResponseWriter, *http.Request){chatPath: document(200,
		`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Four."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`)}}
	client := openAI(e.fence(t, roomy))
	got, err := client.Chat.Completions.New(t.Context(), asks("What is two and two?"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Choices[0].Message.Content != "Four." || got.Usage.TotalTokens != 11 {
		t.Errorf("got %s", got.RawJSON())
	}
	body, _ := e.seen()
	if !strings.Contains(body, `"cache_salt"`) || !strings.Contains(body, "What is two and two?") {
		t.Errorf("the engine was sent %s", body)
	}
}

func TestOpenAIStreamsToolCalls(t *testing.T) {
	e := &engine{answer: map[string]func(http.ResponseWriter, *http.Request){chatPath: stream(
		chunk(`{"role":"assistant","reasoning_content":"It asks for weather."}`, "null"),
		chunk(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"weather","arguments":""}}]}`, "null"),
		chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]}`, "null"),
		chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"\"Oslo\"}"}}]}`, "null"),
		chunk(`{}`, `"tool_calls"`),
		`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[],"usage":{"prompt_tokens":50,"completion_tokens":12,"total_tokens":62}}`,
		"data: [DONE]")}}
	client := openAI(e.fence(t, roomy))
	p := asks("What is the weather in Oslo?")
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
		Name: "weather", Parameters: openai.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}}})}
	s := client.Chat.Completions.NewStreaming(t.Context(), p)
	var acc openai.ChatCompletionAccumulator
	for s.Next() {
		if !acc.AddChunk(s.Current()) {
			t.Fatalf("does not fit: %s", s.Current().RawJSON())
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	calls := acc.Choices[0].Message.ToolCalls
	if len(calls) != 1 || calls[0].Function.Name != "weather" || calls[0].Function.Arguments != `{"city":"Oslo"}` {
		t.Errorf("calls %+v", calls)
	}
	if acc.Choices[0].FinishReason != "tool_calls" || acc.Usage.TotalTokens != 62 {
		t.Errorf("accumulated %+v", acc)
	}
}

func TestOpenAIResponsesStream(t *testing.T) {
	const item = `"item_id":"msg_1","output_index":0,"content_index":0`
	e := &engine{answer: map[string]func(http.ResponseWriter, *http.Request){"/v1/responses": stream(
		"event: response.created\n"+`data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1700000000,"status":"in_progress","model":"m","output":[]}}`,
		"event: response.output_text.delta\n"+`data: {"type":"response.output_text.delta","sequence_number":1,`+item+`,"delta":"Fo"}`,
		"event: response.output_text.delta\n"+`data: {"type":"response.output_text.delta","sequence_number":2,`+item+`,"delta":"ur."}`,
		"event: response.completed\n"+`data: {"type":"response.completed","sequence_number":3,"response":{"id":"resp_1","object":"response","created_at":1700000000,"status":"completed","model":"m","output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Four.","annotations":[]}]}],"usage":{"input_tokens":9,"output_tokens":2,"total_tokens":11}}}`,
	)}}
	client := openAI(e.fence(t, roomy))
	s := client.Responses.NewStreaming(t.Context(), responses.ResponseNewParams{Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("What is two and two?")}})
	var text, whole string
	for s.Next() {
		switch ev := s.Current(); ev.Type {
		case "response.output_text.delta":
			text += ev.Delta
		case "response.completed":
			whole = ev.Response.OutputText()
		}
	}
	if err := s.Err(); err != nil || text != "Four." || whole != "Four." {
		t.Errorf("text %q, whole %q, error %v", text, whole, err)
	}
}

func TestOpenAISeesTypedErrors(t *testing.T) {
	e := &engine{answer: map[string]func(http.ResponseWriter, *http.Request){
		chatPath:    document(429, `{"error":{"message":"too many requests","type":"rate_limit_error","param":null,"code":"rate_limited"}}`),
		"/tokenize": counts("count"),
	}}
	client := openAI(e.fence(t, tight))
	for _, c := range []struct {
		name   string
		ask    openai.ChatCompletionNewParams
		opts   []option.RequestOption
		status int
		code   string
		param  string
	}{
		{"the engine's own", asks("hello"), nil, 429, "rate_limited", ""},
		{"longer than the engine can hold", asks(strings.Repeat("word ", tight)), nil, 400, "context_length_exceeded", ""},
		{"a knob that cuts prompts", asks("hello"), []option.RequestOption{option.WithJSONSet("truncate_prompt_tokens", 100)}, 400, "field_refused", "truncate_prompt_tokens"},
	} {
		_, err := client.Chat.Completions.New(t.Context(), c.ask, c.opts...)
		var typed *openai.Error
		if !errors.As(err, &typed) {
			t.Errorf("%s: error %v", c.name, err)
			continue
		}
		if typed.StatusCode != c.status || typed.Code != c.code || typed.Param != c.param {
			t.Errorf("%s: status %d, code %q, param %q, message %q", c.name, typed.StatusCode, typed.Code, typed.Param, typed.Message)
		}
	}
}

func TestOpenAICancels(t *testing.T) {
	e := &engine{}
	e.answer = map[string]func(http.ResponseWriter, *http.Request){chatPath: e.endless("", chunk(`{"content":"1, "}`, "null"))}
	client := openAI(e.fence(t, roomy))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := client.Chat.Completions.NewStreaming(ctx, asks("Count."))
	for range 3 {
		if !s.Next() {
			t.Fatalf("the stream ended: %v", s.Err())
		}
	}
	cancel()
	for s.Next() {
	}
	if !errors.Is(s.Err(), context.Canceled) {
		t.Errorf("error %v", s.Err())
	}
	e.wantLeft(t)
}

func TestOpenAILargeBody(t *testing.T) {
	e := &engine{answer: map[string]func(http.ResponseWriter, *http.Request){chatPath: document(200,
		`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Read."},"finish_reason":"stop"}]}`)}}
	client := openAI(e.fence(t, roomy))
	if _, err := client.Chat.Completions.New(t.Context(), asks(large)); err != nil {
		t.Fatal(err)
	}
	if body, _ := e.seen(); !strings.Contains(body, large) {
		t.Errorf("%d bytes came to the engine, and not the prompt of %d", len(body), len(large))
	}
}
