package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// openAIChat is POST /chat/completions as OpenAI defined it and most engines
// serve it: vLLM, SGLang, llama.cpp, Ollama, LM Studio, OpenRouter, z.ai.
var openAIChat = dialect{
	name:     "openai",
	path:     "/chat/completions",
	auth:     bearer,
	body:     chatBody,
	event:    chatEvent,
	document: chatDocument,

	tokenizers: countPaths,
}

func bearer(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

func chatBody(r Request, q quirks) []segment {
	segs := []segment{{json: `{"model":` + quote(r.Model) + `,"messages":`}}
	segs = append(segs, messagesJSON(r.Messages)...)
	var tail strings.Builder
	if r.MaxTokens > 0 {
		// The newer name comes second: OpenAI's models of reasoning refuse the older
		// one and say so, while servers that do not know the newer one leave the
		// answer without a bound.
		field := "max_tokens"
		if q.completionTokens {
			field = "max_completion_tokens"
		}
		fmt.Fprintf(&tail, `,%q:%d`, field, r.MaxTokens)
	}
	if !q.noTemperature {
		tail.WriteString(`,"temperature":` + number(r.Temperature))
	}
	if r.Stream {
		tail.WriteString(`,"stream":true`)
		if !q.noStreamOptions {
			tail.WriteString(`,"stream_options":{"include_usage":true}`)
		}
	}
	if r.RequestID != "" && !q.noRequestID {
		// vLLM calls it by the one name, SGLang by the other.
		tail.WriteString(`,"request_id":` + quote(r.RequestID) + `,"rid":` + quote(r.RequestID))
	}
	tail.WriteString("}")
	return append(segs, segment{json: tail.String()})
}

// chatDoc is a chunk of a stream or a whole answer. Fields that servers give
// more than one type are decoded by hand.
type chatDoc struct {
	ID      string           `json:"id"`
	Model   string           `json:"model"`
	Choices *json.RawMessage `json:"choices"`
	Usage   *chatUsage       `json:"usage"`
	Timings *chatTimings     `json:"timings"`
	errorFields
}

type chatChoice struct {
	Index        int          `json:"index"`
	Delta        *chatMessage `json:"delta"`
	Message      *chatMessage `json:"message"`
	Text         string       `json:"text"`
	FinishReason string       `json:"finish_reason"`
	Logprobs     *chatProbs   `json:"logprobs"`
}

type chatMessage struct {
	Content          json.RawMessage  `json:"content"`
	Refusal          string           `json:"refusal"`
	ReasoningContent string           `json:"reasoning_content"`
	Reasoning        json.RawMessage  `json:"reasoning"`
	ReasoningText    string           `json:"reasoning_text"`
	ReasoningDetails []map[string]any `json:"reasoning_details"`
	Thinking         string           `json:"thinking"`
	ToolCalls        []chatTool       `json:"tool_calls"`
	FunctionCall     *chatFunction    `json:"function_call"`
}

type chatTool struct {
	Index    *int         `json:"index"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type chatProbs struct {
	Content []chatProb `json:"content"`
	Refusal []chatProb `json:"refusal"`
	Tokens  []string   `json:"tokens"` // the older shape
}

type chatProb struct {
	Token string     `json:"token"`
	Top   []chatProb `json:"top_logprobs"`
}

type chatUsage struct {
	Prompt     count `json:"prompt_tokens"`
	Completion count `json:"completion_tokens"`
	CacheHit   count `json:"prompt_cache_hit_tokens"` // DeepSeek
	Details    *struct {
		Cached count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Spent *struct {
		Reasoning count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// chatTimings is llama.cpp's own account, the only one in its streams when
// stream_options is not asked for.
type chatTimings struct {
	CacheN    count `json:"cache_n"`
	PromptN   count `json:"prompt_n"`
	Predicted count `json:"predicted_n"`
}

func chatEvent(t *transcript, name string, data []byte) {
	data = bytes.TrimSpace(data)
	switch {
	case len(data) == 0:
	case string(data) == "[DONE]":
		t.done = true
	case !chatDocument(t, data):
		if name == "error" {
			t.fail(data)
		} else {
			t.spoil("an event of the stream is not JSON", data)
		}
	case name == "error" && t.errDoc == nil:
		t.fail(data)
	}
}

func chatDocument(t *transcript, doc []byte) bool {
	var d chatDoc
	doc, ok := decode(doc, &d)
	if !ok {
		return false
	}
	if d.isError(d.Choices != nil) {
		t.fail(doc)
	}
	if d.Choices == nil && d.Usage == nil {
		if t.errDoc == nil {
			t.spoil("a JSON document without choices", doc)
		}
		return true
	}
	keepFirst(&t.id, d.ID)
	keepFirst(&t.model, d.Model)
	if d.Choices != nil { // a usage alone may be that of another dialect
		t.chunks++
		var choices []chatChoice
		decode(*d.Choices, &choices)
		for i := range choices {
			choices[i].take(t)
		}
	}
	if u := d.usage(); u != nil {
		t.usage = u // the last one counts: some servers repeat a growing usage in every chunk
	}
	return true
}

func keepFirst(dst *string, s string) {
	if *dst == "" {
		*dst = s
	}
}

func (d *chatDoc) usage() *Usage {
	if u := d.Usage; u != nil && u.Prompt.ok {
		cached := u.CacheHit.n
		if u.Details != nil && u.Details.Cached.ok {
			cached = u.Details.Cached.n
		}
		out := &Usage{Prompt: u.Prompt.n, Completion: u.Completion.n, Cached: cached}
		if u.Spent != nil {
			out.Reasoning = u.Spent.Reasoning.n
		}
		return out
	}
	if m := d.Timings; d.Usage == nil && m != nil && m.PromptN.ok {
		return &Usage{Prompt: m.PromptN.n + m.CacheN.n, Completion: m.Predicted.n, Cached: m.CacheN.n}
	}
	return nil
}

func (c *chatChoice) take(t *transcript) {
	name := strconv.Itoa(c.Index)
	if c.FinishReason != "" && (c.Index == 0 || t.finish == "") {
		t.finish = c.FinishReason
	}
	c.Delta.take(t, name)
	c.Message.take(t, name+"/message")
	t.add(Content, name+"/text", c.Text)
	if p := c.Logprobs; p != nil {
		for _, s := range p.Tokens {
			t.add(Logprobs, name, s)
		}
		for _, l := range append(p.Content, p.Refusal...) {
			t.add(Logprobs, name, l.Token)
			for rank, alt := range l.Top {
				t.add(Logprobs, name+"/"+strconv.Itoa(min(rank, 32)), alt.Token)
			}
		}
	}
}

func (m *chatMessage) take(t *transcript, name string) {
	if m == nil {
		return
	}
	takeContent(t, name, m.Content)
	t.add(Content, name+"/refusal", m.Refusal)
	t.add(Reasoning, name+"/content", m.ReasoningContent)
	t.add(Reasoning, name+"/reasoning", textOf(m.Reasoning))
	t.add(Reasoning, name+"/text", m.ReasoningText)
	t.add(Reasoning, name+"/thinking", m.Thinking)
	for _, d := range m.ReasoningDetails {
		for _, k := range []string{"text", "summary", "data"} {
			if s, ok := d[k].(string); ok {
				t.add(Reasoning, name+"/details/"+k, s)
			}
		}
	}
	for i, c := range m.ToolCalls {
		if c.Index != nil {
			i = *c.Index
		}
		c.Function.take(t, name+"/"+strconv.Itoa(i))
	}
	if m.FunctionCall != nil {
		m.FunctionCall.take(t, name+"/call")
	}
}

func (f chatFunction) take(t *transcript, name string) {
	t.add(ToolCalls, name+"/name", f.Name)
	t.add(ToolCalls, name+"/arguments", textOf(f.Arguments))
}

// takeContent takes a content that is a string, or a list of parts of which
// some may be thinking (Mistral).
func takeContent(t *transcript, name string, raw json.RawMessage) {
	if len(raw) == 0 || raw[0] != '[' {
		t.add(Content, name, textOf(raw))
		return
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	decode(raw, &parts)
	for _, p := range parts {
		t.add(Content, name, p.Text)
		if len(p.Thinking) > 0 && p.Thinking[0] == '[' {
			takeContent(t, name+"/thinking", p.Thinking)
		} else {
			t.add(Reasoning, name+"/parts", textOf(p.Thinking))
		}
	}
}
