package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// fakeWindow is the shortest prompt that speakers refuse, tokens; a token is a
// byte and a message costs four.
const fakeWindow = 3000

// speaker is an engine that echoes its prompt in one dialect, and refuses what
// is too long by an error within a 200.
type speaker struct {
	path, count    string // of prompts and of the counter, empty for none
	document       string // %q takes the text, %d the tokens of the prompt
	stream, refuse string // of a stream, likewise
}

var speakers = map[string]speaker{
	"openai": {
		path:     "/v1/chat/completions",
		document: `{"id":"x","choices":[{"index":0,"message":{"content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":1}}`,
		stream:   "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n",
		refuse:   "data: {\"error\":{\"message\":\"the prompt is too long\",\"type\":\"BAD_REQUEST\",\"code\":400}}\n\ndata: [DONE]\n\n",
	},
	"responses": {
		path: "/v1/responses", count: "/v1/responses/input_tokens",
		document: `{"id":"x","object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":%q}]}],"usage":{"input_tokens":%d,"output_tokens":1}}`,
		stream:   "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":%q}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"object\":\"response\",\"status\":\"completed\",\"output\":[],\"usage\":{\"input_tokens\":%d,\"output_tokens\":1}}}\n\n",
		refuse:   "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"object\":\"response\",\"status\":\"failed\",\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"Your input exceeds the context window of this model.\"}}}\n\n",
	},
	"anthropic": {
		path: "/v1/messages", count: "/v1/messages/count_tokens",
		document: `{"id":"x","type":"message","content":[{"type":"text","text":%q}],"stop_reason":"end_turn","usage":{"input_tokens":%d,"output_tokens":1}}`,
		stream: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"x\",\"type\":\"message\",\"content\":[]}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":%q}}\n\n" +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"input_tokens\":%d,\"output_tokens\":1}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		refuse: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long\"}}\n\n",
	},
	"ollama": {
		path:     "/api/chat",
		document: `{"message":{"content":%q},"done":true,"done_reason":"stop","prompt_eval_count":%d,"eval_count":1}`,
		stream:   "{\"message\":{\"content\":%q},\"done\":false}\n{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":%d,\"eval_count\":1}\n",
		refuse:   "{\"error\":\"the prompt is longer than the context length currently available to the model\"}\n",
	},
}

func (s speaker) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	text, tokens, stream := promptOf(body)
	switch r.URL.Path {
	case s.count:
		fmt.Fprintf(w, `{"input_tokens":%d}`, tokens)
	case s.path:
		// Ollama streams unless it is told not to; the others the other way round.
		ndjson := s.path == "/api/chat"
		w.Header().Set("Content-Type", map[bool]string{true: "application/x-ndjson", false: "text/event-stream"}[ndjson])
		switch {
		case tokens >= fakeWindow:
			io.WriteString(w, s.refuse)
		case stream:
			fmt.Fprintf(w, s.stream, text, tokens)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, s.document, text, tokens)
		}
	default:
		http.NotFound(w, r)
	}
}

// promptOf reads a prompt of any dialect: its text, how long it is, and whether
// the answer is wanted as a stream.
func promptOf(body []byte) (text string, tokens int, stream bool) {
	var d struct {
		System, Messages, Input []struct {
			Text    string
			Content json.RawMessage
		}
		Stream bool
	}
	json.Unmarshal(body, &d)
	var all strings.Builder
	for _, m := range append(append(d.System, d.Messages...), d.Input...) {
		var s string
		var parts []struct{ Text string }
		if json.Unmarshal(m.Content, &s) != nil {
			json.Unmarshal(m.Content, &parts)
		}
		for _, p := range parts {
			s += p.Text
		}
		all.WriteString(m.Text + s)
		tokens += len(m.Text+s) + 4
	}
	return all.String(), tokens, d.Stream
}
