package clients

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

func claude(url string) anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL(url), option.WithAPIKey("sk-ant-any"), option.WithMaxRetries(0))
}

func says(text string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{Model: "m", MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))}}
}

const messagesPath = "/v1/messages"

func event(name, data string) string {
	return "event: " + name + "\ndata: {\"type\":\"" + name + `",` + data + "}"
}

const messageStart = `"message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":20,"output_tokens":1}}`

func TestAnthropicAnswer(t *testing.T) {
	e := &engine{answer: map[string]func(http.ResponseWriter, *http.Request){
		messagesPath:                   document(200, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Four."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":2}}`),
		messagesPath + "/count_tokens": document(200, `{"input_tokens":9}`),
	}}
	client := claude(e.fence(t, roomy))
	got, err := client.Messages.New(t.Context(), says("What is two and two?"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Content[0].Text != "Four." || got.StopReason != "end_turn" || got.Usage.InputTokens != 9 {
		t.Errorf("got %s", got.RawJSON())
	}
	count, err := client.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{Model: "m", Messages: says("What is two and two?").Messages})
	if err != nil || count.InputTokens != 9 {
		t.Errorf("count %+v, error %v", count, err)
	}
}

func TestAnthropicStreamsThinkingTextAndTools(t *testing.T) {
	e := &engine{answer: map[string]func(http.ResponseWriter, *http.Request){messagesPath: stream(
		event("message_start", messageStart),
		event("content_block_start", `"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}`),
		event("content_block_delta", `"index":0,"delta":{"type":"thinking_delta","thinking":"It asks for weather."}`),
		event("content_block_delta", `"index":0,"delta":{"type":"signature_delta","signature":"c2ln"}`),
		event("content_block_stop", `"index":0`),
		event("content_block_start", `"index":1,"content_block":{"type":"text","text":""}`),
		event("content_block_delta", `"index":1,"delta":{"type":"text_delta","text":"Let me "}`),
		event("content_block_delta", `"index":1,"delta":{"type":"text_delta","text":"look."}`),
		event("content_block_stop", `"index":1`),
		event("content_block_start", `"index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"weather","input":{}}`),
		event("content_block_delta", `"index":2,"delta":{"type":"input_json_delta","partial_json":"{\"city\":"}`),
		event("content_block_delta", `"index":2,"delta":{"type":"input_json_delta","partial_json":"\"Oslo\"}"}`),
		event("content_block_stop", `"index":2`),
		event("message_delta", `"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":30}`),
		"event: message_stop\ndata: {\"type\":\"message_stop\"}",
	)}}
	client := claude(e.fence(t, roomy))
	p := says("What is the weather in Oslo?")
	p.Tools = []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: map[string]any{"city": map[string]any{"type": "string"}}}, "weather")}
	s := client.Messages.NewStreaming(t.Context(), p)
	var got anthropic.Message
	for s.Next() {
		if err := got.Accumulate(s.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	if len(got.Content) != 3 || got.Content[0].Thinking != "It asks for weather." || got.Content[1].Text != "Let me look." ||
		got.Content[2].Name != "weather" || string(got.Content[2].Input) != `{"city":"Oslo"}` || got.StopReason != "tool_use" {
		t.Errorf("accumulated %+v", got.Content)
	}
}

func TestAnthropicSeesTypedErrors(t *testing.T) {
	e := &engine{answer: map[string]func(http.ResponseWriter, *http.Request){
		messagesPath:                   document(529, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`),
		messagesPath + "/count_tokens": counts("input_tokens"),
	}}
	client := claude(e.fence(t, tight))
	for _, c := range []struct {
		name   string
		ask    anthropic.MessageNewParams
		status int
		words  string
	}{
		{"the engine's own", says("hello"), 529, "overloaded_error"},
		{"longer than the engine can hold", says(strings.Repeat("word ", tight)), 400, "prompt is too long"},
	} {
		_, err := client.Messages.New(t.Context(), c.ask)
		var typed *anthropic.Error
		if !errors.As(err, &typed) {
			t.Errorf("%s: error %v", c.name, err)
			continue
		}
		if typed.StatusCode != c.status || !strings.Contains(typed.RawJSON(), c.words) {
			t.Errorf("%s: status %d, %s", c.name, typed.StatusCode, typed.RawJSON())
		}
	}
}

// An error after the stream has begun is an event, and the client an error's.
func TestAnthropicSeesErrorEvents(t *testing.T) {
	e := &engine{answer: map[string]func(http.ResponseWriter, *http.Request){messagesPath: stream(
		event("message_start", messageStart),
		event("error", `"error":{"type":"overloaded_error","message":"busy"}`),
	)}}
	client := claude(e.fence(t, roomy))
	s := client.Messages.NewStreaming(t.Context(), says("hello"))
	for s.Next() {
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "overloaded_error") {
		t.Errorf("error %v", err)
	}
}

func TestAnthropicCancels(t *testing.T) {
	e := &engine{}
	begin := event("message_start", messageStart) + "\n\n" + event("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`) + "\n\n"
	e.answer = map[string]func(http.ResponseWriter, *http.Request){messagesPath: e.endless(begin, event("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":"1, "}`))}
	client := claude(e.fence(t, roomy))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := client.Messages.NewStreaming(ctx, says("Count."))
	for range 4 {
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

func TestAnthropicLargeBody(t *testing.T) {
	e := &engine{answer: map[string]func(http.ResponseWriter, *http.Request){messagesPath: document(200,
		`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Read."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":900000,"output_tokens":2}}`)}}
	client := claude(e.fence(t, roomy))
	if _, err := client.Messages.New(t.Context(), says(large)); err != nil {
		t.Fatal(err)
	}
	if body, _ := e.seen(); !strings.Contains(body, large) {
		t.Errorf("%d bytes came to the engine, and not the prompt of %d", len(body), len(large))
	}
}
