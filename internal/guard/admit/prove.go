package admit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A counter can be wrong in a way that defeats the guard: a tokenizer that cuts
// off at its own maximum says of every long prompt that it has just so many
// tokens. Nothing in a single answer shows it. So before a count is relied on, a
// text is counted of which it is known that it has more tokens than the limit:
// each of its words is at least one. A counter that says less is not believed.

// proof is what was seen of a counter.
type proof struct {
	upTo  int  // tokens: a count up to here is sound
	tools bool // tool definitions are in it
	at    time.Time
}

type proofKey struct{ way, dialect, model string }

// maxProofs bounds how many are kept; models are named by clients.
const maxProofs = 256

// toolWords is how long the tool definition is that is counted for a proof.
const toolWords = 512

// prove returns what is proven of a way for the model of a prompt, up to the
// limit at least.
func (c *Counter) prove(ctx context.Context, w *way, q Question, asked members) (proof, error) {
	key := proofKey{w.name, q.Dialect, string(asked["model"])}
	c.mu.Lock()
	p, known := c.proofs[key]
	c.mu.Unlock()
	if known && p.upTo >= q.Limit && !p.at.Before(c.o.Now().Add(-c.o.Fresh)) {
		return p, nil
	}
	words := add(q.Limit, q.Limit/4+64) // a limit that grows a little is still proven
	n, over, err := c.proveBy(ctx, w, q.Header, sample(q.Dialect, asked["model"], text(words), ""))
	if err != nil {
		return proof{}, fmt.Errorf("%w: a text of %d words could not be counted to see whether the count is sound: %w", ErrUnsound, words, err)
	}
	if !over && n < words {
		return proof{}, fmt.Errorf("%w: of a text of %d words it says that it has %d tokens", ErrUnsound, words, n)
	}
	p = proof{upTo: words, tools: c.countsTools(ctx, w, q, asked["model"]), at: c.o.Now()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.proofs) >= maxProofs {
		clear(c.proofs)
	}
	c.proofs[key] = p
	return p, nil
}

// countsTools reports whether the count grows with a tool definition as much as
// that has words. Where the template shows no tools it does not, either.
func (c *Counter) countsTools(ctx context.Context, w *way, q Question, model json.RawMessage) bool {
	if q.Dialect == "completions" {
		return false
	}
	bare, over, err := c.proveBy(ctx, w, q.Header, sample(q.Dialect, model, text(1), ""))
	if err != nil || over {
		return false
	}
	with, over, err := c.proveBy(ctx, w, q.Header, sample(q.Dialect, model, text(1), text(toolWords)))
	return err == nil && !over && with-bare >= toolWords
}

func (c *Counter) proveBy(ctx context.Context, w *way, h http.Header, m members) (n int, over bool, err error) {
	body, err := w.body(m)
	if err != nil {
		return 0, false, err
	}
	t, err := w.ask(ctx, c, h, body)
	return t.Tokens, t.Over, err
}

// text is n words of one letter each. The letters go through the alphabet, so
// that no vocabulary has a token for several of them.
func text(n int) string {
	var b strings.Builder
	b.Grow(2 * n)
	for i := range n {
		b.WriteByte('a' + byte(i*7%26))
		b.WriteByte(' ')
	}
	return strings.TrimSuffix(b.String(), " ")
}

// sample is a request of a dialect with a prompt and, if it is not empty, the
// description of a tool.
func sample(dialect string, model json.RawMessage, prompt, tool string) members {
	m := members{}
	if len(model) > 0 {
		m["model"] = model
	}
	chat := json.RawMessage(`[{"role":"user","content":` + string(quoted(prompt)) + `}]`)
	about := `"name":"f","description":` + string(quoted(tool))
	const schema = `{"type":"object","properties":{}}`
	switch dialect {
	case "completions":
		m["prompt"] = quoted(prompt)
	case "responses":
		m["input"] = quoted(prompt)
		about = `{"type":"function",` + about + `,"parameters":` + schema + `}`
	case "anthropic":
		m["messages"] = chat
		about = `{` + about + `,"input_schema":` + schema + `}`
	default:
		m["messages"] = chat
		about = `{"type":"function","function":{` + about + `,"parameters":` + schema + `}}`
	}
	if tool != "" {
		m["tools"] = json.RawMessage("[" + about + "]")
	}
	return m
}
