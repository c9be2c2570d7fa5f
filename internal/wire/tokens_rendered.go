package wire

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
)

// llama.cpp counts in two steps: one endpoint renders messages with the chat
// template, another cuts plain text into tokens. The latter stands where
// vLLM's and SGLang's does, takes their requests too, and answers them with an
// empty list, which is no count.
const (
	renderPath = "/apply-template"
	cutPath    = "/tokenize"
	// maxRendered bounds a rendered prompt, bytes: it is the one prompt that
	// sits in memory. Longer ones are not counted.
	maxRendered = 8 << 20
)

// countRendered counts the way llama.cpp does it.
func (c *Client) countRendered(ctx context.Context, key string, messages []Message) (int, error) {
	prompt, err := c.render(ctx, key, messages)
	if err != nil {
		return 0, err
	}
	// The chat endpoint adds the special tokens of the vocabulary, too, and
	// reads those that the template writes out.
	segs := []segment{{json: `{"add_special":true,"parse_special":true,"content":` + quote(prompt) + `}`}}
	var n int
	err = c.call(ctx, http.MethodPost, c.root+cutPath, key, segs, func(resp *http.Response, body io.Reader) error {
		if resp.StatusCode != 200 {
			return c.notCounted(resp, key, body)
		}
		var err error
		n, err = readLength(body, "tokens")
		return err
	})
	return n, err
}

// render asks for the text that the messages become.
func (c *Client) render(ctx context.Context, key string, messages []Message) (string, error) {
	segs := []segment{{json: `{"add_generation_prompt":true,"messages":`}}
	segs = append(append(segs, messagesJSON(messages)...), segment{json: "}"})
	var out struct {
		Prompt string `json:"prompt"`
	}
	err := c.call(ctx, http.MethodPost, c.root+renderPath, key, segs, func(resp *http.Response, body io.Reader) error {
		if resp.StatusCode != 200 {
			return c.notCounted(resp, key, body)
		}
		doc, err := io.ReadAll(io.LimitReader(body, maxRendered+1))
		switch {
		case err != nil:
			return err
		case len(doc) > maxRendered:
			return &CallError{Failure: &Failure{FailedTooBig, c.host + ": the rendered prompt is too long to keep"}}
		case json.Unmarshal(doc, &out) != nil || out.Prompt == "":
			return errNoCounter
		}
		return nil
	})
	return out.Prompt, err
}

// readLength counts the entries of a list, a member of an object, without
// keeping them.
func readLength(r io.Reader, member string) (int, error) {
	dec := json.NewDecoder(r)
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return 0, noCounter(err)
	}
	for {
		key, err := dec.Token()
		if _, isName := key.(string); err != nil || !isName {
			return 0, noCounter(err)
		}
		if key == member {
			return lengthOfList(dec)
		}
		if err := skipValue(dec); err != nil {
			return 0, noCounter(err)
		}
	}
}

// lengthOfList counts the members of a list that is about to come; an empty
// one is no count.
func lengthOfList(dec *json.Decoder) (int, error) {
	if tok, err := dec.Token(); err != nil || tok != json.Delim('[') {
		return 0, noCounter(err)
	}
	n := 0
	for ; dec.More(); n++ {
		if err := skipValue(dec); err != nil {
			return 0, noCounter(err)
		}
	}
	if _, err := dec.Token(); err != nil || n == 0 {
		return 0, noCounter(err)
	}
	return n, nil
}
