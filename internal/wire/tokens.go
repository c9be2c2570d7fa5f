package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// countState is what a client knows about the tokenizer endpoints of its target.
type countState struct {
	path string // where one answered, below the unversioned base URL, or ownCounter
	none bool   // there is none
}

// countPaths are the places of a tokenizer that takes chat messages, vLLM and
// SGLang have one at either, and last that of the two steps in which llama.cpp
// counts.
var countPaths = []string{"/tokenize", "/v1/tokenize", renderPath}

// ownCounter stands for the counter that belongs to the dialect.
const ownCounter = "the dialect's own"

// CountTokens asks the target how many tokens a prompt has, chat template
// included. It reports false for a target that cannot say; it then asks no
// more. An error (a [*CallError]) says that the target did not say this time.
func (c *Client) CountTokens(ctx context.Context, key, model string, messages []Message) (n int, ok bool, err error) {
	c.mu.Lock()
	state := c.count
	c.mu.Unlock()
	if state.none {
		return 0, false, nil
	}
	paths := c.dialect.tokenizers
	switch {
	case state.path != "":
		paths = []string{state.path}
	case c.dialect.countPath != "":
		paths = append([]string{ownCounter}, paths...)
	}
	for _, path := range paths {
		n, err := c.countAt(ctx, path, key, model, messages)
		if errors.Is(err, errNoCounter) {
			continue
		}
		if err != nil {
			return 0, false, err
		}
		c.setCount(countState{path: path})
		return n, true, nil
	}
	if state.path == "" {
		c.setCount(countState{none: true})
	}
	return 0, false, nil
}

func (c *Client) setCount(s countState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count = s
}

// notCounted tells a path that does not exist, or does not take messages, from
// a counter that declined this time.
func (c *Client) notCounted(resp *http.Response, key string, body io.Reader) error {
	if slices.Contains([]int{404, 405, 415, 501}, resp.StatusCode) || resp.StatusCode/100 == 3 {
		return errNoCounter
	}
	err := c.refusal(resp, key, body)
	if r := err.Refusal; (resp.StatusCode == 400 || resp.StatusCode == 422) && !r.TooLong() && r.Kind != RefusedBodySize {
		return errNoCounter
	}
	return err
}

// errNoCounter says that nothing counts tokens at an address.
var errNoCounter = errors.New("no token counter")

func (c *Client) countAt(ctx context.Context, path, key, model string, messages []Message) (int, error) {
	url, member := c.root+path, "count"
	var segs []segment
	switch path {
	case renderPath:
		return c.countRendered(ctx, key, messages)
	case ownCounter:
		url, member, segs = c.api+c.dialect.countPath, "input_tokens", c.dialect.countBody(model, messages)
	default:
		segs = []segment{{json: `{"model":` + quote(model) + `,"add_generation_prompt":true,"messages":`}}
		segs = append(append(segs, messagesJSON(messages)...), segment{json: "}"})
	}
	var n int
	err := c.call(ctx, http.MethodPost, url, key, segs, func(resp *http.Response, body io.Reader) error {
		if resp.StatusCode != 200 {
			return c.notCounted(resp, key, body)
		}
		var err error
		n, err = readCount(body, member)
		return err
	})
	return n, err
}

// readCount finds a member of an object without keeping the rest, the list of a
// million tokens that may stand before or after it.
func readCount(r io.Reader, member string) (int, error) {
	dec := json.NewDecoder(r)
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return 0, noCounter(err)
	}
	for {
		key, err := dec.Token() // a name, or the end of the object
		if _, isName := key.(string); err != nil || !isName {
			return 0, noCounter(err)
		}
		if key == member {
			var n count
			if err := dec.Decode(&n); err != nil || !n.ok || n.n == 0 {
				return 0, noCounter(err)
			}
			return n.n, nil
		}
		if err := skipValue(dec); err != nil {
			return 0, noCounter(err)
		}
	}
}

// skipValue passes over one value, token by token.
func skipValue(dec *json.Decoder) error {
	for depth := 0; ; {
		tok, err := dec.Token()
		if err != nil {
			return err
		}
		switch tok {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// noCounter tells an answer that holds no count from one that broke off.
func noCounter(err error) error {
	if _, syntax := errors.AsType[*json.SyntaxError](err); err == nil || err == io.EOF || syntax {
		return errNoCounter
	}
	return err
}

// ModelInfo is one model that a target lists.
type ModelInfo struct {
	ID         string
	MaxContext int // context window in tokens as the target states it, 0 if it does not
}

// maxModels bounds a list of models, bytes.
const maxModels = 16 << 20

// Models lists the models of the target. An error is a [*CallError].
func (c *Client) Models(ctx context.Context, key string) ([]ModelInfo, error) {
	var out []ModelInfo
	err := c.call(ctx, http.MethodGet, c.api+"/models", key, nil, func(resp *http.Response, body io.Reader) error {
		if resp.StatusCode != 200 {
			return c.refusal(resp, key, body)
		}
		doc, err := io.ReadAll(io.LimitReader(body, maxModels))
		if err != nil {
			return err
		}
		var ok bool
		if out, ok = parseModels(doc); !ok {
			return &CallError{Failure: &Failure{FailedNotAPI, c.host + ": what answers at /models is not a list of models: is the base URL right? most end in /v1"}}
		}
		return nil
	})
	return out, err
}

// parseModels reads a list of models. The context window has many names:
// max_model_len (vLLM, SGLang), context_length (OpenRouter, Together),
// context_window (Groq), max_context_length (Mistral, LM Studio) and
// max_input_tokens (Anthropic).
func parseModels(doc []byte) ([]ModelInfo, bool) {
	var list struct {
		Data *[]struct {
			ID            string `json:"id"`
			MaxModelLen   count  `json:"max_model_len"`
			ContextLength count  `json:"context_length"`
			ContextWindow count  `json:"context_window"`
			MaxContext    count  `json:"max_context_length"`
			MaxInput      count  `json:"max_input_tokens"`
		} `json:"data"`
	}
	if _, ok := decode(doc, &list); !ok || list.Data == nil {
		return nil, false
	}
	var out []ModelInfo
	for _, d := range *list.Data {
		m := ModelInfo{ID: d.ID}
		for _, n := range []count{d.MaxModelLen, d.ContextLength, d.ContextWindow, d.MaxContext, d.MaxInput} {
			if n.ok && m.MaxContext == 0 {
				m.MaxContext = n.n
			}
		}
		out = append(out, m)
	}
	return out, true
}

// call makes a request beside the prompts, under the same watch and bounds,
// and hands the response to take.
func (c *Client) call(ctx context.Context, method, url, key string, segs []segment, take func(*http.Response, io.Reader) error) error {
	ctx, dog := newWatchdog(ctx, c.o.HeaderTimeout, "no answer")
	defer dog.stop()
	resp, err := c.send(ctx, method, url, key, c.getQuirks().names(Request{Key: key}), segs, dog.touch)
	if err != nil {
		return &CallError{Failure: connectFailure(ctx, c.host, err)}
	}
	defer resp.Body.Close()
	err = take(resp, c.blotter(key).Reader(&watched{
		src: resp.Body, left: c.o.MaxAnswerBytes, moved: dog.touch,
		first: func() { dog.phase(c.o.IdleTimeout, "no further byte of the answer") },
	}))
	if _, ours := errors.AsType[*CallError](err); err == nil || ours || errors.Is(err, errNoCounter) {
		return err
	}
	if f := stall(ctx, c.host); f != nil {
		return &CallError{Failure: f}
	}
	if errors.Is(err, errTooBig) {
		return &CallError{Failure: &Failure{FailedTooBig, fmt.Sprintf("%s: the answer is over the limit of %d bytes", c.host, c.o.MaxAnswerBytes)}}
	}
	return &CallError{Failure: &Failure{FailedCut, c.host + ": the connection broke in the middle of the answer: see the server's log"}}
}

// refusal reads an error response of a call.
func (c *Client) refusal(resp *http.Response, key string, body io.Reader) *CallError {
	doc, _ := io.ReadAll(io.LimitReader(body, maxError))
	r, _ := classify(resp.StatusCode, c.blotter(key).Header(resp.Header), doc, false, c.o.Now())
	if strings.TrimSpace(r.Message) == "" {
		r.Message = "no reason given"
	}
	return &CallError{Refusal: r}
}
