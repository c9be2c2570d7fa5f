package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// anthropicMessages is POST /messages of Anthropic, which vLLM, SGLang,
// llama.cpp, Ollama, z.ai and OpenRouter serve too.
var anthropicMessages = dialect{
	name:      "anthropic",
	path:      "/messages",
	auth:      anthropicAuth,
	body:      anthropicBody,
	event:     anthropicEvent,
	document:  anthropicDocument,
	countPath: "/messages/count_tokens",
	countBody: func(model string, ms []Message) []segment {
		return append(anthropicPrompt(model, ms), segment{json: "}"})
	},
	tokenizers: countPaths,
	keyedTwice: true,
}

// anthropicVersion is the only version of the API since it was fixed
// (docs.anthropic.com, versioning).
const anthropicVersion = "2023-06-01"

func anthropicAuth(h http.Header, key string) {
	h.Set("Anthropic-Version", anthropicVersion)
	if key != "" {
		h.Set("X-Api-Key", key)
	}
}

// openAnswer is the longest answer asked for where the dialect wants a number
// and the request names none, tokens.
const openAnswer = 4096

func anthropicBody(r Request, q quirks) []segment {
	segs := anthropicPrompt(r.Model, r.Messages)
	longest := r.MaxTokens
	if longest <= 0 {
		longest = openAnswer
	}
	tail := fmt.Sprintf(`,"max_tokens":%d`, longest)
	if !q.noTemperature {
		tail += `,"temperature":` + number(r.Temperature)
	}
	if r.Stream {
		tail += `,"stream":true`
	}
	return append(segs, segment{json: tail + "}"})
}

// anthropicPrompt is a body that is not yet closed. The system's turns stand
// apart from the others.
func anthropicPrompt(model string, ms []Message) []segment {
	var system, turns []Message
	for _, m := range ms {
		if m.Role == "system" {
			system = append(system, m)
		} else {
			turns = append(turns, m)
		}
	}
	segs := []segment{{json: `{"model":` + quote(model)}}
	if len(system) > 0 {
		segs = append(segs, segment{json: `,"system":`})
		segs = append(segs, messagesIn(system, func(Message) (head, tail string) { return `{"type":"text","text":"`, `"}` })...)
	}
	return append(append(segs, segment{json: `,"messages":`}), messagesIn(turns, anthropicMessage)...)
}

func anthropicMessage(m Message) (head, tail string) {
	head = `{"role":` + quote(m.Role) + `,"content":`
	if len(m.Images) == 0 {
		return head + `"`, `"}`
	}
	head += "["
	for _, img := range m.Images {
		head += `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + base64.StdEncoding.EncodeToString(img) + `"}},`
	}
	return head + `{"type":"text","text":"`, `"}]}`
}

// anthropicEventDoc is one event of a stream.
type anthropicEventDoc struct {
	Type    string           `json:"type"`
	Index   json.RawMessage  `json:"index"`
	Message *json.RawMessage `json:"message"`
	Block   *anthropicBlock  `json:"content_block"`
	Delta   *anthropicBlock  `json:"delta"`
	Usage   *anthropicUsage  `json:"usage"`
}

// anthropicDoc is a whole answer, and the empty one that a stream begins with.
type anthropicDoc struct {
	ID      string           `json:"id"`
	Type    string           `json:"type"`
	Model   string           `json:"model"`
	Content *json.RawMessage `json:"content"`
	Stop    string           `json:"stop_reason"`
	Usage   *anthropicUsage  `json:"usage"`
}

// anthropicBlock is a block of an answer, or what is to be put at its end.
type anthropicBlock struct {
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	Thinking    string          `json:"thinking"`
	Signature   string          `json:"signature"`
	Data        string          `json:"data"` // redacted thinking
	Name        string          `json:"name"`
	Input       json.RawMessage `json:"input"`
	PartialJSON string          `json:"partial_json"`
	Content     json.RawMessage `json:"content"`   // the result of a tool of the server's
	Citation    json.RawMessage `json:"citation"`  // of a delta
	Citations   json.RawMessage `json:"citations"` // of a whole block
	Stop        string          `json:"stop_reason"`
}

// anthropicUsage has the tokens of a prompt in three heaps: read anew, read
// from the cache, and read anew to be put into the cache.
type anthropicUsage struct {
	Input    count `json:"input_tokens"`
	Read     count `json:"cache_read_input_tokens"`
	Creation count `json:"cache_creation_input_tokens"`
	Output   count `json:"output_tokens"`
	Details  struct {
		Thinking count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

func anthropicEvent(t *transcript, name string, data []byte) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || string(data) == "[DONE]" {
		t.done = t.done || len(data) > 0
		return
	}
	var e anthropicEventDoc
	doc, ok := decode(data, &e)
	if e.Type == "" {
		e.Type = name
	}
	switch {
	case !ok:
		t.spoil("an event of the stream is not JSON", data)
		return
	case e.Type == "error":
		t.fail(doc)
		return
	case e.Type == "message": // not streamed after all
		anthropicDocument(t, doc)
		t.done = true
		return
	case e.Type == "ping":
		return
	case !strings.HasPrefix(e.Type, "message_") && !strings.HasPrefix(e.Type, "content_block"):
		if isErrorDoc(doc) {
			t.fail(doc)
		} else {
			t.spoil("an event that is none of a message", doc)
		}
		return
	}
	t.chunks++
	e.take(t)
}

func (e *anthropicEventDoc) take(t *transcript) {
	if e.Message != nil {
		takeAnthropic(t, *e.Message)
	}
	if e.Block != nil {
		e.Block.take(t, string(e.Index))
	}
	if e.Delta != nil {
		e.Delta.take(t, string(e.Index))
		if e.Delta.Stop != "" {
			t.finish = e.Delta.Stop
		}
	}
	e.Usage.take(t)
	t.done = t.done || e.Type == "message_stop"
}

func anthropicDocument(t *transcript, doc []byte) bool {
	var d anthropicDoc
	doc, ok := decode(doc, &d)
	switch {
	case !ok:
		return false
	case d.Type == "message" || d.Type == "" && d.Content != nil:
		t.chunks++
		takeAnthropic(t, doc)
	case isErrorDoc(doc):
		t.fail(doc)
	default:
		t.spoil("a JSON document that is no message", doc)
	}
	return true
}

func takeAnthropic(t *transcript, doc []byte) {
	var d anthropicDoc
	decode(doc, &d)
	keepFirst(&t.id, d.ID)
	keepFirst(&t.model, d.Model)
	if d.Stop != "" {
		t.finish = d.Stop
	}
	d.Usage.take(t)
	if d.Content == nil {
		return
	}
	var blocks []anthropicBlock
	decode(*d.Content, &blocks)
	for i := range blocks {
		blocks[i].take(t, strconv.Itoa(i))
	}
}

func (b *anthropicBlock) take(t *transcript, at string) {
	t.add(Content, at, b.Text)
	t.add(Reasoning, at, b.Thinking)
	t.add(Reasoning, at+"/data", b.Data)
	t.add(Reasoning, at+"/signature", b.Signature)
	t.add(ToolCalls, at+"/name", b.Name)
	if string(b.Input) != "{}" { // what every streamed call begins with
		t.add(ToolCalls, at+"/input", textOf(b.Input))
	}
	t.add(ToolCalls, at+"/input", b.PartialJSON)
	t.add(ToolCalls, at+"/result", textOf(b.Content))
	t.add(Content, at+"/citation", textOf(b.Citation))
	t.add(Content, at+"/citations", textOf(b.Citations))
}

// take adds up the heaps. Of a stream the first event and the last report
// usage, the last one not always all of it.
func (u *anthropicUsage) take(t *transcript) {
	if u == nil {
		return
	}
	was := &t.heaps
	for _, c := range []struct{ to, from *count }{{&was.Input, &u.Input}, {&was.Read, &u.Read}, {&was.Creation, &u.Creation}, {&was.Output, &u.Output}, {&was.Details.Thinking, &u.Details.Thinking}} {
		if c.from.ok {
			*c.to = *c.from
		}
	}
	if was.Input.ok {
		t.usage = &Usage{
			Prompt: was.Input.n + was.Read.n + was.Creation.n, Completion: was.Output.n,
			Cached: was.Read.n, Reasoning: was.Details.Thinking.n,
		}
	}
}
