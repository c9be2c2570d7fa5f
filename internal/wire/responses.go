package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// openAIResponses is POST /responses, which OpenAI has put in the place of chat
// completions and which vLLM, llama.cpp and OpenRouter serve too. Nothing is
// left at the target by our wish: store is false.
var openAIResponses = dialect{
	name:      "responses",
	path:      "/responses",
	auth:      bearer,
	body:      responsesBody,
	event:     responsesEvent,
	document:  responsesDocument,
	countPath: "/responses/input_tokens",
	countBody: func(model string, ms []Message) []segment {
		segs := append([]segment{{json: `{"model":` + quote(model) + `,"input":`}}, responsesInput(ms)...)
		return append(segs, segment{json: "}"})
	},
	tokenizers: countPaths,
}

func responsesBody(r Request, q quirks) []segment {
	segs := append([]segment{{json: `{"model":` + quote(r.Model) + `,"input":`}}, responsesInput(r.Messages)...)
	var tail strings.Builder
	if r.MaxTokens > 0 {
		fmt.Fprintf(&tail, `,"max_output_tokens":%d`, max(r.MaxTokens, q.leastOutput))
	}
	if !q.noTemperature {
		tail.WriteString(`,"temperature":` + number(r.Temperature))
	}
	if !q.noStore {
		tail.WriteString(`,"store":false`)
	}
	if r.Stream {
		tail.WriteString(`,"stream":true`)
	}
	tail.WriteString("}")
	return append(segs, segment{json: tail.String()})
}

func responsesInput(ms []Message) []segment {
	return messagesIn(ms, func(m Message) (head, tail string) {
		head, tail = `{"type":"message","role":`+quote(m.Role)+`,"content":`, `"}`
		switch {
		case m.Role == "assistant": // an answer of the target's, which some take as parts only
			return head + `[{"type":"output_text","text":"`, `"}]}`
		case len(m.Images) == 0:
			return head + `"`, tail
		}
		head += "["
		for _, img := range m.Images {
			head += `{"type":"input_image","detail":"auto","image_url":"` + dataURL(img) + `"},`
		}
		return head + `{"type":"input_text","text":"`, `"}]}`
	})
}

// responsesEventDoc is one event of a stream. Which fields it has depends on
// its type.
type responsesEventDoc struct {
	Type     string           `json:"type"`
	Response *json.RawMessage `json:"response"`
	Item     *responsesItem   `json:"item"`
	Part     *responsesPart   `json:"part"`
	Delta    json.RawMessage  `json:"delta"`
	Text     string           `json:"text"`
	Refusal  string           `json:"refusal"`
	Args     json.RawMessage  `json:"arguments"`
	Input    json.RawMessage  `json:"input"`
	Code     json.RawMessage  `json:"code"`
	ItemID   string           `json:"item_id"`
	Output   json.RawMessage  `json:"output_index"`
	Content  json.RawMessage  `json:"content_index"`
	Summary  json.RawMessage  `json:"summary_index"`
	Logprobs []chatProb       `json:"logprobs"`
}

// responsesDoc is a whole answer.
type responsesDoc struct {
	ID      string           `json:"id"`
	Object  string           `json:"object"`
	Model   string           `json:"model"`
	Status  string           `json:"status"`
	Output  *json.RawMessage `json:"output"`
	Error   json.RawMessage  `json:"error"`
	Details struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage *struct {
		Input   count `json:"input_tokens"`
		Output  count `json:"output_tokens"`
		Details struct {
			Cached count `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		Spent struct {
			Reasoning count `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

type responsesItem struct {
	Type      string          `json:"type"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Input     json.RawMessage `json:"input"`
	Content   json.RawMessage `json:"content"`
	Summary   []responsesPart `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
}

type responsesPart struct {
	Type     string     `json:"type"`
	Text     string     `json:"text"`
	Refusal  string     `json:"refusal"`
	Logprobs []chatProb `json:"logprobs"`
}

func responsesEvent(t *transcript, name string, data []byte) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return
	}
	if string(data) == "[DONE]" {
		t.done = true
		return
	}
	var e responsesEventDoc
	doc, ok := decode(data, &e)
	if e.Type == "" {
		e.Type = name
	}
	switch {
	case !ok:
		t.spoil("an event of the stream is not JSON", data)
	case e.Type == "error":
		t.fail(doc)
	case e.Response != nil:
		t.chunks++
		takeResponse(t, *e.Response)
		t.done = e.Type == "response.completed" || e.Type == "response.incomplete" || e.Type == "response.failed"
	case strings.HasPrefix(e.Type, "response."):
		t.chunks++
		e.take(t)
	case isErrorDoc(doc):
		t.fail(doc)
	case !strings.Contains(e.Type, "ping") && e.Type != "keepalive":
		t.spoil("an event that is none of a response", doc)
	}
}

// isErrorDoc reports whether a document that is no answer is an error.
func isErrorDoc(doc []byte) bool {
	var f errorFields
	_, ok := decode(doc, &f)
	return ok && f.isError(false)
}

// take takes the text of a delta, and of the event that ends a part and has all
// of it once more: it may say something else.
func (e *responsesEventDoc) take(t *transcript) {
	at := string(e.Output) + e.ItemID + "/" + string(e.Content) + string(e.Summary)
	channel := responsesChannel(e.Type)
	if strings.HasSuffix(e.Type, ".done") {
		at += "/done"
	}
	for _, s := range []string{textOf(e.Delta), e.Text, e.Refusal, textOf(e.Args), textOf(e.Input), textOf(e.Code)} {
		t.add(channel, at, s)
	}
	takeProbs(t, at, e.Logprobs)
	if e.Item != nil {
		e.Item.take(t, at+"/item")
	}
	if e.Part != nil {
		e.Part.take(t, channel, at+"/part")
	}
}

// responsesChannel says where the text of an event belongs by the event's type.
func responsesChannel(event string) Channel {
	switch {
	case strings.Contains(event, "reasoning"):
		return Reasoning
	case strings.Contains(event, "text"), strings.Contains(event, "refusal"), strings.Contains(event, "transcript"), strings.Contains(event, "content_part"):
		return Content
	}
	return ToolCalls // arguments, custom inputs, code
}

// takeResponse takes a response object: whole at the end of a stream, and as
// good as empty at its beginning.
func takeResponse(t *transcript, doc []byte) {
	var d responsesDoc
	decode(doc, &d)
	keepFirst(&t.id, d.ID)
	keepFirst(&t.model, d.Model)
	if d.Output != nil {
		var items []responsesItem
		decode(*d.Output, &items)
		for i := range items {
			items[i].take(t, strconv.Itoa(i)+"/whole")
		}
	}
	switch d.Status {
	case "", "in_progress", "queued":
	case "incomplete":
		t.finish = d.Details.Reason
		keepFirst(&t.finish, d.Status)
	default:
		t.finish = d.Status
	}
	if u := d.Usage; u != nil && u.Input.ok {
		t.usage = &Usage{Prompt: u.Input.n, Completion: u.Output.n, Cached: u.Details.Cached.n, Reasoning: u.Spent.Reasoning.n}
	}
	if hasError := len(d.Error) > 0 && string(d.Error) != "null"; hasError || d.Status == "failed" {
		t.fail([]byte(`{"error":` + textOr(d.Error, `{"message":"the response failed, no reason given"}`) + `}`))
	}
}

// textOr is raw, or other if raw is absent.
func textOr(raw json.RawMessage, other string) string {
	if len(raw) == 0 || string(raw) == "null" {
		return other
	}
	return string(raw)
}

func responsesDocument(t *transcript, doc []byte) bool {
	var d responsesDoc
	doc, ok := decode(doc, &d)
	switch {
	case !ok:
		return false
	case d.Object == "response" || d.Output != nil:
		t.chunks++
		takeResponse(t, doc)
	case isErrorDoc(doc):
		t.fail(doc)
	default:
		t.spoil("a JSON document without output", doc)
	}
	return true
}

// take takes an item of the output: a message, reasoning or the call of a tool.
func (m *responsesItem) take(t *transcript, at string) {
	channel := Content
	switch {
	case m.Type == "reasoning":
		channel = Reasoning
	case m.Type != "message":
		channel = ToolCalls
	}
	t.add(ToolCalls, at+"/name", m.Name)
	t.add(ToolCalls, at+"/arguments", textOf(m.Arguments))
	t.add(ToolCalls, at+"/input", textOf(m.Input))
	t.add(Reasoning, at+"/encrypted", m.Encrypted)
	var parts []responsesPart
	if len(m.Content) > 0 && m.Content[0] == '[' {
		decode(m.Content, &parts)
	} else {
		t.add(channel, at, textOf(m.Content))
	}
	for i := range parts {
		parts[i].take(t, channel, at+"/"+strconv.Itoa(i))
	}
	for i := range m.Summary {
		m.Summary[i].take(t, Reasoning, at+"/summary/"+strconv.Itoa(i))
	}
}

func (p *responsesPart) take(t *transcript, channel Channel, at string) {
	if strings.Contains(p.Type, "reasoning") {
		channel = Reasoning
	}
	t.add(channel, at, p.Text)
	t.add(channel, at+"/refusal", p.Refusal)
	takeProbs(t, at, p.Logprobs)
}

// takeProbs takes the tokens of an answer and what might have stood in their
// place.
func takeProbs(t *transcript, at string, probs []chatProb) {
	for _, l := range probs {
		t.add(Logprobs, at, l.Token)
		for rank, alt := range l.Top {
			t.add(Logprobs, at+"/"+strconv.Itoa(min(rank, 32)), alt.Token)
		}
	}
}
