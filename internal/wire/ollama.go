package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// ollamaChat is POST /api/chat of Ollama: a stream is a JSON document a line.
// It has no address that counts tokens.
var ollamaChat = dialect{
	name:     "ollama",
	path:     "/api/chat",
	atRoot:   true,
	auth:     bearer,
	body:     ollamaBody,
	event:    ollamaEvent,
	document: ollamaDocument,
}

func ollamaBody(r Request, q quirks) []segment {
	segs := append([]segment{{json: `{"model":` + quote(r.Model) + `,"messages":`}}, messagesIn(r.Messages, ollamaMessage)...)
	var options []string
	if r.MaxTokens > 0 {
		options = append(options, fmt.Sprintf(`"num_predict":%d`, r.MaxTokens))
	}
	if !q.noTemperature {
		options = append(options, `"temperature":`+number(r.Temperature))
	}
	// Without the field it streams.
	return append(segs, segment{json: fmt.Sprintf(`,"stream":%t,"options":{%s}}`, r.Stream, strings.Join(options, ","))})
}

func ollamaMessage(m Message) (head, tail string) {
	head, tail = `{"role":`+quote(m.Role), `"}`
	for i, img := range m.Images {
		sep := ","
		if i == 0 {
			sep = `,"images":[`
		}
		head += sep + `"` + base64.StdEncoding.EncodeToString(img) + `"`
	}
	if len(m.Images) > 0 {
		head += "]"
	}
	return head + `,"content":"`, tail
}

// ollamaDoc is a line of a stream or a whole answer.
type ollamaDoc struct {
	Model   string      `json:"model"`
	Message *ollamaTurn `json:"message"`
	Done    bool        `json:"done"`
	Reason  string      `json:"done_reason"`
	Prompt  count       `json:"prompt_eval_count"`
	Eval    count       `json:"eval_count"`
	Probs   []chatProb  `json:"logprobs"`
	errorFields
}

type ollamaTurn struct {
	Content   json.RawMessage `json:"content"`
	Thinking  string          `json:"thinking"`
	Reasoning string          `json:"reasoning"`
	ToolCalls []chatTool      `json:"tool_calls"`
}

func ollamaEvent(t *transcript, name string, data []byte) {
	if data = bytes.TrimSpace(data); len(data) > 0 && !ollamaDocument(t, data) {
		if name == "error" {
			t.fail(data)
		} else {
			t.spoil("a line of the stream is not JSON", data)
		}
	}
}

func ollamaDocument(t *transcript, doc []byte) bool {
	var d ollamaDoc
	doc, ok := decode(doc, &d)
	if !ok {
		return false
	}
	answer := d.Message != nil || d.Done
	if string(d.Error) != "" && d.isError(answer) {
		t.fail(doc)
	}
	if !answer {
		if t.errDoc == nil {
			t.spoil("a JSON document without a message", doc)
		}
		return true
	}
	t.chunks++
	keepFirst(&t.model, d.Model)
	d.Message.take(t)
	takeProbs(t, "", d.Probs)
	if d.Prompt.ok {
		t.usage = &Usage{Prompt: d.Prompt.n, Completion: d.Eval.n}
	}
	if d.Done {
		t.done, t.finish = true, d.Reason
		keepFirst(&t.finish, "done")
	}
	return true
}

func (m *ollamaTurn) take(t *transcript) {
	if m == nil {
		return
	}
	t.add(Content, "", textOf(m.Content))
	t.add(Reasoning, "", m.Thinking)
	t.add(Reasoning, "reasoning", m.Reasoning)
	for i, c := range m.ToolCalls {
		if c.Index != nil {
			i = *c.Index
		}
		c.Function.take(t, strconv.Itoa(i))
	}
}
