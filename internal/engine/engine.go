// Package engine finds out what an inference engine says about itself.
//
// An engine speaks in three ways: by its HTTP endpoints ([Ask]), by the log of
// its start ([ReadLog]) and by the command line that starts it ([ReadCommand]).
// Each gives [Facts], with the place that every fact stands at. Nothing here is
// measured, and nothing but facts is kept: an engine shows keys among its
// settings. One file an engine, one line in [All].
package engine

import (
	"context"
	"net/http"
)

// Engine is one row of [All].
type Engine struct {
	Name string
	// ask fills in what the endpoints say and reports whether it is this engine.
	ask func(context.Context, *asker, *Facts) bool
	// line takes a line of the start-up log; nil if the log says nothing.
	line func(*Facts, string)
	// names are words of a command line or an image that only this engine has.
	names []string
	// flags and environ say what flags and environment variables mean.
	flags, environ map[string]setting
	// defaults completes what a command line leaves to the engine; nil for nothing.
	defaults func(*Facts)
}

// All are the engines that are known, the most telling first. The last one
// takes whatever the others do not know.
var All = []Engine{
	sglang,
	vllm,
	dynamo,
	trtllm,
	triton,
	tgi,
	lmdeploy,
	llamacpp,
	ollama,
	generic,
}

// Find returns the engine of a name.
func Find(name string) (Engine, bool) {
	for _, e := range All {
		if e.Name == name {
			return e, true
		}
	}
	return Engine{}, false
}

// Names are those of all engines.
func Names() []string {
	var out []string
	for _, e := range All {
		out = append(out, e.Name)
	}
	return out
}

// Ask asks the engine behind a base URL, which may end in /v1, for its facts.
// It never fails: what an endpoint does not say, says wrongly, or does not say
// within five seconds stays unknown. It follows no redirect, reads at most a
// megabyte of any answer, 32 of metrics, and keeps nothing but facts: what else
// an engine shows of its configuration, keys among it, is dropped unread.
func Ask(ctx context.Context, client *http.Client, baseURL, key string) Facts {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return newAsker(client, baseURL, key).facts(ctx, "")
}
