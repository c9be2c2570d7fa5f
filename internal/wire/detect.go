package wire

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
)

// Detected is which dialect a target speaks.
type Detected struct {
	Dialect string
	Why     string // for people: what it rests on
	// Requests and Tokens are what it cost to find out.
	Requests, Tokens int
}

// Detect finds out which dialect a target speaks. Where the address says it,
// nothing is sent; else each dialect is tried, the likeliest first, with a
// prompt of two words and an answer of a few tokens. o.Dialect is not looked at.
//
// An error says that nothing there is an answer of any dialect; it is a
// [*CallError] if the target could not be reached.
func Detect(ctx context.Context, o Options, key, model string) (Detected, error) {
	if d, ok := byAddress(o.BaseURL); ok {
		return d, nil
	}
	var out, maybe Detected
	var said []string
	for _, name := range likely(o.BaseURL) {
		a, err := greet(ctx, o, name, key, model)
		if err != nil {
			return out, err
		}
		out.Requests += 1 + a.Resent
		if a.Usage != nil {
			out.Tokens += a.Usage.Prompt + a.Usage.Completion
		}
		switch f := a.Failure; {
		case a.Served():
			out.Dialect, out.Why = name, "it answered a greeting in it"
			return out, nil
		case f != nil && (f.Kind == FailedConnect || f.Kind == FailedTLS || f.Kind == FailedCanceled):
			return out, &CallError{Failure: f}
		case f == nil && a.understood():
			out.Dialect, out.Why = name, fmt.Sprintf("it refused a greeting in it as an API of that dialect does (%s)", a.Refusal.Kind)
			return out, nil
		case maybe.Dialect == "" && !a.elsewhere():
			maybe = Detected{Dialect: name, Why: "it answered no greeting; in this dialect it said " + a.outcome()}
		}
		said = append(said, name+" "+a.outcome())
	}
	if maybe.Dialect != "" {
		maybe.Requests, maybe.Tokens = out.Requests, out.Tokens
		return maybe, nil
	}
	return out, fmt.Errorf("what answers there speaks none of the dialects (%s): is the base URL right? most end in /v1", strings.Join(said, "; "))
}

// byAddress takes a base URL that ends in the path of a dialect's prompts.
func byAddress(base string) (Detected, bool) {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil {
		return Detected{}, false
	}
	for _, d := range dialects {
		if strings.HasSuffix(strings.TrimRight(u.Path, "/"), d.path) {
			return Detected{Dialect: d.name, Why: "the base URL ends in " + d.path}, true
		}
	}
	return Detected{}, false
}

// likely is the order in which dialects are tried: most targets speak chat
// completions, some besides others of which one is their own.
func likely(base string) []string {
	first := "openai"
	u, err := url.Parse(strings.TrimSpace(base))
	switch {
	case err != nil:
	case strings.Contains(u.Host+u.Path, "anthropic"):
		first = "anthropic"
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/api") && u.Port() == ollamaPort:
		first = "ollama"
	}
	out := []string{first}
	for _, name := range Dialects() {
		if name != first {
			out = append(out, name)
		}
	}
	return out
}

// ollamaPort is where Ollama listens if nobody says otherwise.
const ollamaPort = "11434"

// greet makes the smallest exchange that shows whether a dialect is understood.
func greet(ctx context.Context, o Options, dialect, key, model string) (*Answer, error) {
	o.Dialect = dialect
	c, err := NewClient(o)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Do(ctx, Request{
		Model: model, Key: key, MaxTokens: leastResponse,
		Messages: []Message{{Role: "user", Text: literal("Say hello.")}},
	}), nil
}

// understood reports whether a refusal shows that the request was read as one
// of its dialect: it is about the model, the length or the pace, not about the
// path.
func (a *Answer) understood() bool {
	switch r := a.Refusal; r.Kind {
	case RefusedModel:
		return r.Rule != "status-not-found"
	case RefusedRate, RefusedQuota, RefusedContext, RefusedPool, RefusedTooLong, RefusedOutput:
		return true
	}
	return false
}

// elsewhere reports whether a greeting shows that the dialect is not spoken
// there: no such path, or something that is no answer of it.
func (a *Answer) elsewhere() bool {
	return a.Refusal != nil && a.Refusal.Rule == "status-not-found" || a.Failure != nil && a.Failure.Kind == FailedNotAPI
}

// outcome is how a greeting ended, in a few words.
func (a *Answer) outcome() string {
	if a.Refusal != nil {
		return fmt.Sprintf("HTTP %d", a.Status)
	}
	return string(a.Failure.Kind)
}

// literal is a text that is there already.
type literal string

func (l literal) Open() io.Reader { return strings.NewReader(string(l)) }
func (l literal) Size() int64     { return int64(len(l)) }
