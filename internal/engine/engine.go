// Package engine asks an inference engine what it says about itself.
//
// Nothing here is measured: a fact is what the engine claims, with the place
// where it claims it. One file an engine, one line in [All].
package engine

import (
	"context"
	"net/http"
)

// Facts are what an engine says about itself. What it does not say is zero.
type Facts struct {
	Engine     string  `json:"engine"` // name of the row of All that knew it
	Version    Text    `json:"version"`
	Models     []Model `json:"models,omitempty"`
	Context    Number  `json:"context"`     // context window in tokens; with several models, the smallest
	Pool       Number  `json:"pool"`        // smallest KV pool that a prompt is computed in, tokens
	DecodePool Number  `json:"decode_pool"` // smallest KV pool of the decode workers, tokens; 0 where there are none
	MaxInput   Number  `json:"max_input"`   // shortest prompt that is refused, tokens
	PageSize   Number  `json:"page_size"`   // tokens a page of the pool holds
}

// Number is a count and where the engine states it.
type Number struct {
	Value  int    `json:"value"`            // 0 for not known
	Source string `json:"source,omitempty"` // for people: "GET /server_info max_total_num_tokens"
}

// Text is a word and where the engine states it.
type Text struct {
	Value  string `json:"value"`
	Source string `json:"source,omitempty"`
}

// Model is one model that the engine serves.
type Model struct {
	ID      string `json:"id"`
	Context int    `json:"context"` // tokens, 0 for not known
}

// ContextOf is the context window of one model in tokens, or 0 if the engine
// does not say.
func (f *Facts) ContextOf(model string) int {
	for _, m := range f.Models {
		if m.ID == model {
			return m.Context
		}
	}
	return 0
}

// Engine is one row of [All].
type Engine struct {
	Name string
	// ask fills in what the engine says and reports whether it is this engine.
	ask func(context.Context, *asker, *Facts) bool
}

// All are the engines that can be asked, the most telling first. The last one
// takes whatever the others do not know.
var All = []Engine{
	{"sglang", askSGLang},
	{"vllm", askVLLM},
	{"llamacpp", askLlamaCpp},
	{"ollama", askOllama},
	{"generic", askGeneric},
}

// Ask asks the engine behind a base URL, which may end in /v1, for its facts.
// It never fails: what an endpoint does not say, says wrongly, or does not say
// within five seconds stays unknown. It follows no redirect, reads at most a
// megabyte of any answer, and keeps nothing but facts: what else an engine
// shows of its configuration, keys among it, is dropped unread.
func Ask(ctx context.Context, client *http.Client, baseURL, key string) Facts {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := newAsker(client, baseURL, key)
	for _, e := range All {
		f := Facts{Engine: e.Name}
		if e.ask(ctx, a, &f) {
			return f
		}
	}
	return Facts{}
}
