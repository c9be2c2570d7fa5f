package engine

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
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
}

func newAsker(client *http.Client, baseURL, key string) *asker {
	root := strings.TrimSuffix(strings.TrimRight(baseURL, "/"), "/v1")
	a := &asker{*client, strings.TrimRight(root, "/"), key}
	// A redirect could carry the key to another place.
	a.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return a
}

// get decodes the JSON object at path into v and reports whether there was one.
func (a *asker) get(ctx context.Context, path string, v any) bool {
	p := a.read(ctx, path)
	return len(p) <= maxAnswer && json.Unmarshal(p, v) == nil
}

// lines hands over the text at path line by line, as far as it is read.
func (a *asker) lines(ctx context.Context, path string, take func(string)) {
	for line := range strings.Lines(string(a.read(ctx, path))) {
		take(line)
	}
}

// read is what stands at path: up to one byte more than maxAnswer, nothing if
// there is nothing.
func (a *asker) read(ctx context.Context, path string) []byte {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.root+path, nil)
	if err != nil {
		return nil
	}
	if a.key != "" {
		r.Header.Set("Authorization", "Bearer "+a.key)
	}
	res, err := a.client.Do(r)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil
	}
	p, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return nil
	}
	return p
}

// count is a number of tokens that a stranger wrote: what is no plausible
// count reads as 0.
type count int

// UnmarshalJSON implements [json.Unmarshaler]. It never fails.
func (c *count) UnmarshalJSON(p []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(p), `"`), 10, 64)
	if err != nil || n < 0 || n > maxCount {
		n = 0
	}
	*c = count(n)
	return nil
}

// word is a short printable text that a stranger wrote: anything else reads
// as "".
type word string

// UnmarshalJSON implements [json.Unmarshaler]. It never fails.
func (w *word) UnmarshalJSON(p []byte) error {
	var s string
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	if json.Unmarshal(p, &s) != nil || len(s) > maxWord || strings.ContainsFunc(s, unprintable) {
		s = ""
	}
	*w = word(s)
	return nil
}

// least lowers n to a count that is known and smaller.
func (n *Number) least(c count, source string) {
	if c > 0 && (n.Value == 0 || int(c) < n.Value) {
		*n = Number{int(c), source}
	}
}
