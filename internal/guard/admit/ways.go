package admit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// way is one way in which an upstream counts.
type way struct {
	name     string
	dialects []string
	engines  []string // that have it; nil for any
	except   []string // engines that have something else there
	path     string
	// body is what is sent there; read finds the count in the answer.
	body func(members) ([]byte, error)
	some bool // it is sent what it is documented to count, and nothing else
	read func(io.Reader) (int, error)
	// then turns the answer at path into the body of a second request, to thenPath.
	then     func(io.Reader) ([]byte, error)
	thenPath string
}

// ways are all of them, the most exact first. vLLM and SGLang take the body of
// a chat or of a text completion at /tokenize as it is, with tools and template
// arguments, and render it as they do when they serve it; llama.cpp renders it
// and counts the text. What an engine's template does is thus never imitated
// here.
var ways = []way{
	{name: "llama.cpp chat", dialects: []string{"openai"}, engines: []string{"llamacpp"}, path: "/apply-template", body: asIs, then: rendered, thenPath: "/tokenize", read: lengthAt("tokens")},
	{name: "llama.cpp text", dialects: []string{"completions"}, engines: []string{"llamacpp"}, path: "/tokenize", body: plainText, read: lengthAt("tokens")},
	{name: "TGI", dialects: []string{"openai"}, engines: []string{"tgi"}, path: "/chat_tokenize", body: asIs, read: lengthAt("tokenize_response")},
	{name: "tokenize", dialects: []string{"openai", "completions"}, except: []string{"llamacpp", "tgi"}, path: "/tokenize", body: asIs, read: countAt("count")},
	{name: "v1/tokenize", dialects: []string{"openai", "completions"}, except: []string{"llamacpp", "tgi"}, path: "/v1/tokenize", body: asIs, read: countAt("count")},
	{name: "messages/count_tokens", dialects: []string{"anthropic"}, path: "/v1/messages/count_tokens", read: countAt("input_tokens"), some: true, body: some(
		"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "output_format", "mcp_servers", "context_management", "cache_control")},
	{name: "responses/input_tokens", dialects: []string{"responses"}, path: "/v1/responses/input_tokens", read: countAt("input_tokens"), some: true, body: some(
		"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "text", "reasoning", "previous_response_id", "conversation", "truncation")},
}

func (w *way) suits(dialect, engine string) bool {
	return slices.Contains(w.dialects, dialect) && (w.engines == nil || slices.Contains(w.engines, engine)) && !slices.Contains(w.except, engine)
}

// selfHosted reports whether an engine counts a picture as the one placeholder
// that stands in the text, before it is cut into as many tokens as it has.
func selfHosted(engine string) bool { return engine != "" && engine != "generic" }

func asIs(m members) ([]byte, error) { return m.write(), nil }

// some makes a body of the members that a counter takes.
func some(names ...string) func(members) ([]byte, error) {
	return func(m members) ([]byte, error) {
		kept, err := m.only(names)
		if err != nil {
			return nil, err
		}
		return kept.write(), nil
	}
}

// plainText asks llama.cpp to count a prompt that is one string, as its
// completions endpoint reads it.
func plainText(m members) ([]byte, error) {
	var prompt string
	if json.Unmarshal(m["prompt"], &prompt) != nil || m.has(beside) {
		return nil, fmt.Errorf("%w: its prompt is not one text", ErrNoCounter)
	}
	return textBody(prompt), nil
}

func textBody(prompt string) []byte {
	return members{"content": quoted(prompt), "add_special": json.RawMessage("true"), "parse_special": json.RawMessage("true")}.write()
}

func quoted(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		panic("kvcanary: internal error: a text is no JSON: " + err.Error())
	}
	return b
}

// rendered takes the text that a chat has become.
func rendered(r io.Reader) ([]byte, error) {
	var out struct {
		Prompt *string `json:"prompt"`
	}
	if err := json.NewDecoder(r).Decode(&out); err != nil || out.Prompt == nil {
		return nil, errors.New("the upstream rendered the chat as no text")
	}
	return textBody(*out.Prompt), nil
}

func countAt(member string) func(io.Reader) (int, error) {
	return func(r io.Reader) (int, error) { return wire.ReadCount(r, member) }
}

func lengthAt(member string) func(io.Reader) (int, error) {
	return func(r io.Reader) (int, error) { return wire.ReadLength(r, member) }
}

// credentials are the headers of a request that let it in, and those that say
// which version of an API is spoken.
var credentials = []string{"Authorization", "X-Api-Key", "Api-Key", "Anthropic-Version", "Anthropic-Beta", "Openai-Organization", "Openai-Project"}

// maxAnswer bounds the answer of a counter, bytes: it may list a few million
// tokens.
const maxAnswer = 64 << 20

// ask has the upstream count a body.
func (w *way) ask(ctx context.Context, c *Counter, h http.Header, body []byte) (t Tally, err error) {
	read := func(r io.Reader) error {
		t.Tokens, err = w.read(r)
		return err
	}
	if w.then == nil {
		t.Over, err = c.post(ctx, w.path, h, body, read)
		return t, err
	}
	var text []byte
	t.Over, err = c.post(ctx, w.path, h, body, func(r io.Reader) error {
		text, err = w.then(r)
		return err
	})
	if err != nil || t.Over {
		return t, err
	}
	t.Over, err = c.post(ctx, w.thenPath, h, text, read)
	return t, err
}

// post sends a body and hands a good answer to read. over says that the engine
// found the prompt too long.
func (c *Counter) post(ctx context.Context, path string, h http.Header, body []byte, read func(io.Reader) error) (over bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.root+path, bytes.NewReader(body))
	if err != nil {
		return false, errors.New("the upstream's address cannot be used")
	}
	r.Header.Set("Content-Type", "application/json")
	for _, name := range credentials {
		if v := h.Values(name); len(v) > 0 {
			r.Header[name] = v
		}
	}
	client := *c.o.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(r)
	if err != nil {
		return false, errors.New("the upstream cannot be reached to count the prompt")
	}
	defer resp.Body.Close()
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		if err := read(io.LimitReader(resp.Body, maxAnswer)); err != nil {
			return false, errors.New("the upstream's answer holds no count of tokens")
		}
		return false, nil
	case code == 404 || code == 405 || code == 415 || code == 501 || code/100 == 3:
		return false, ErrNoCounter
	case code == 400 || code == 413 || code == 422:
		if refusal := wire.ReadRefusal(resp, c.o.Now()); refusal.TooLong() {
			return true, nil
		}
		return false, fmt.Errorf("%w: HTTP %d", ErrNoCounter, code)
	default:
		return false, fmt.Errorf("the upstream does not count: HTTP %d", code)
	}
}
