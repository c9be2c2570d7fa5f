package engine

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Bounds on what an endpoint may cost.
const (
	patience  = 5 * time.Second // for all questions together
	maxAnswer = 1 << 20         // bytes of one answer
	maxWord   = 128             // bytes of a version or a model name
	maxModels = 256
	maxCount  = 1 << 40 // tokens; more is no count
)

// asker gets JSON from an endpoint.
type asker struct {
	client http.Client
	root   string // without /v1
	key    string

	scraped samples // /metrics, once it was read
}

func newAsker(client *http.Client, baseURL, key string) *asker {
	root := strings.TrimSuffix(strings.TrimRight(baseURL, "/"), "/v1")
	a := &asker{client: *client, root: strings.TrimRight(root, "/"), key: key}
	// A redirect could carry the key to another place.
	a.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return a
}

// get decodes the JSON object at path into v and reports whether there was one.
func (a *asker) get(ctx context.Context, path string, v any) bool {
	p := a.read(ctx, path)
	return len(p) <= maxAnswer && json.Unmarshal(p, v) == nil
}

// read is what stands at path: up to one byte more than maxAnswer, nothing if
// there is nothing.
func (a *asker) read(ctx context.Context, path string) []byte {
	return a.readUpTo(ctx, path, maxAnswer)
}

func (a *asker) readUpTo(ctx context.Context, path string, limit int64) []byte {
	res, err := a.send(ctx, path, a.key)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil
	}
	p, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err != nil {
		return nil
	}
	return p
}

// open reports whether a path answers without a key, and as JSON or metrics do.
func (a *asker) open(ctx context.Context, path string) bool {
	res, err := a.send(ctx, path, "")
	if err != nil {
		return false
	}
	defer res.Body.Close()
	kind := res.Header.Get("Content-Type")
	return res.StatusCode == http.StatusOK && !strings.Contains(kind, "html")
}

func (a *asker) send(ctx context.Context, path, key string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.root+path, nil)
	if err != nil {
		return nil, err
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	return a.client.Do(r)
}

// count is a number of tokens that a stranger wrote: what is no plausible
// count reads as 0.
type count int

// UnmarshalJSON implements [json.Unmarshaler]. It never fails.
func (c *count) UnmarshalJSON(p []byte) error {
	*c = parseCount(strings.Trim(string(p), `"`))
	return nil
}

// parseCount reads a count of tokens, with or without commas between thousands.
func parseCount(s string) count {
	n, err := strconv.ParseInt(strings.ReplaceAll(s, ",", ""), 10, 64)
	if err != nil || n < 0 || n > maxCount {
		return 0
	}
	return count(n)
}

// onOff is a switch that a stranger wrote: a JSON boolean, or its name as a
// word; anything else is not known.
type onOff struct{ known, on bool }

// UnmarshalJSON implements [json.Unmarshaler]. It never fails.
func (o *onOff) UnmarshalJSON(p []byte) error {
	*o = parseOnOff(strings.Trim(string(p), `"`))
	return nil
}

func parseOnOff(s string) onOff {
	switch strings.ToLower(s) {
	case "true", "1", "yes", "on":
		return onOff{true, true}
	case "false", "0", "no", "off":
		return onOff{true, false}
	}
	return onOff{}
}

// state takes a switch that is known.
func (f *Flag) state(o onOff, source string) {
	if o.known {
		f.set(o.on, source)
	}
}

// word is a short printable text that a stranger wrote: anything else reads
// as "".
type word string

// UnmarshalJSON implements [json.Unmarshaler]. It never fails.
func (w *word) UnmarshalJSON(p []byte) error {
	var s string
	if json.Unmarshal(p, &s) != nil || len(s) > maxWord || strings.ContainsFunc(s, unprintable) {
		s = ""
	}
	*w = word(s)
	return nil
}
