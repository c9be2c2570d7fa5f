package admit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Question is a prompt to be counted.
type Question struct {
	Dialect string
	Tenant  string      // whose it is: no tenant learns from the time of a count what another has sent
	Header  http.Header // as it goes upstream; the credentials of it are shown to the counter
	Body    []byte      // as it goes upstream
	Limit   int         // tokens: the count is to be sound up to here at least
	Opaque  bool        // it has parts other than text
}

// Tally is what a counter said of a prompt.
type Tally struct {
	Tokens int
	// Most is how many tokens the engine may read all the same, by what it was
	// seen to read of others: see [Counter.Learn]. 0 for no more than Tokens.
	Most int
	// Over says that the engine refused to count because the prompt is over its
	// own limit; Tokens may then be anything.
	Over bool
	// Tools and Opaque say that what a template writes anew, and parts other than
	// text, are known to be in the count.
	Tools, Opaque bool
	// Others is how many bytes the members have of which it is not known whether
	// they are in the count.
	Others int64
}

// Size is what a tally says of a prompt whose limit is known, and what a bound
// has to say of the parts that were not counted.
func (t Tally) Size(b Body, p Policy, limit int) Size {
	s := Size{AtLeast: t.Tokens, AtMost: max(t.Tokens, t.Most), Output: max(0, b.Output), Tried: true, Final: true}
	if t.Most > t.Tokens {
		s.Why = "the engine was seen to read more tokens than it had counted, and may again: send less"
	}
	if t.Over {
		s.AtLeast, s.AtMost = max(t.Tokens, add(limit, 1)), Unbounded
		return s
	}
	if !t.Tools && b.Structured > 0 {
		s.AtMost = add(s.AtMost, Bound(Body{Bytes: b.Structured, Wide: min(b.Wide, b.Structured), Structured: b.Structured, Depth: b.Depth, References: b.References}, bare(p)).AtMost)
		s.Why = "the engine's count may lack the tool definitions, which have a wide bound: send fewer, or set structured_factor"
	}
	if t.Others > 0 {
		s.AtMost = add(s.AtMost, Bound(Body{Bytes: t.Others, Wide: min(b.Wide, t.Others)}, bare(p)).AtMost)
		s.Why = "the engine's count may lack fields beside the prompt, such as a suffix: send less in them"
	}
	if opaque := p.opaque(b); !t.Opaque && opaque > 0 {
		s.AtMost, s.Why = add(s.AtMost, opaque), "the engine's count lacks the parts other than text, of which each may have opaque_tokens"
		if opaque == Unbounded {
			s.Why = whyOpaque
		}
	}
	return s
}

// bare is a policy without the allowance for a template.
func bare(p Policy) Policy {
	p.TemplateTokens = 0
	return p
}

// CounterOptions are what a [Counter] needs; all must be set but where it says
// so.
type CounterOptions struct {
	URL     string // base URL of the upstream, with or without /v1
	Engine  func() string
	Client  *http.Client
	Timeout time.Duration // that one count may take, the wait for its turn included
	AtOnce  int           // counts under way at a time
	Keep    int           // tallies kept; 0 for none
	Fresh   time.Duration // how long what was counted and proven holds: the engine may come to serve another model by the same name
	Now     func() time.Time
}

// Counter has an engine count prompts by its own tokenizer. Equal prompts of a
// tenant are counted once.
type Counter struct {
	o     CounterOptions
	root  string // without /v1
	turns chan struct{}

	mu      sync.Mutex
	kept    *recent
	flights map[digest]*flight
	worked  map[string]int // by dialect: the way that answered last
	tenants map[string]int // flights of each
	proofs  map[proofKey]proof
	short   float64 // the most tokens that were read for one counted; below 1 for none seen
	shortAt time.Time
}

type digest [sha256.Size]byte

// Errors of a count. Others say what went wrong with the engine.
var (
	// ErrNoCounter: nothing there counts such a prompt. It is of no use to ask
	// again.
	ErrNoCounter = errors.New("nothing at the upstream counts such a prompt")
	// ErrUnsound: what counts cannot be relied on for prompts near the limit.
	ErrUnsound = errors.New("the upstream's count cannot be relied on")
)

var errWaiting = errors.New("too many prompts wait to be counted: try again")

// waitingPerTurn is how many counts of a tenant may wait for each turn that it
// could have.
const waitingPerTurn = 8

// NewCounter returns a counter that has not asked yet.
func NewCounter(o CounterOptions) *Counter {
	root := strings.TrimRight(strings.TrimSuffix(strings.TrimRight(o.URL, "/"), "/v1"), "/")
	return &Counter{
		o: o, root: root, turns: make(chan struct{}, max(1, o.AtOnce)), kept: newRecent(o.Keep),
		flights: map[digest]*flight{}, worked: map[string]int{}, tenants: map[string]int{}, proofs: map[proofKey]proof{},
	}
}

// flight is a count under way, for all that wait for it.
type flight struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiting int // under Counter.mu; the last to leave cancels
	tally   Tally
	err     error
}

// Bounds on what is learnt.
const (
	// fewCounted is how long a prompt must be to learn from: of a short one the
	// few tokens that a template adds would say too much.
	fewCounted = 256
	// mostShort is as much as is believed. An engine that reports another's usage
	// is broken in another way, and the watch says so.
	mostShort = 4
)

// Learn takes what the engine says it has read of a prompt that was counted. If
// that is more, counts to come are taken for short by as much, until nothing of
// the kind was seen for as long as a count holds. It reports whether that is news.
func (c *Counter) Learn(counted, read int) bool {
	if counted < fewCounted || read <= counted {
		return false
	}
	ratio := min(float64(read)/float64(counted), mostShort)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.o.Now()
	if now.Sub(c.shortAt) > c.o.Fresh {
		c.short = 0
	}
	if ratio < c.short {
		return false
	}
	news := ratio > c.short
	c.short, c.shortAt = ratio, now
	return news
}

// lengthen makes of a tally what Learn has learnt.
func (c *Counter) lengthen(t Tally) Tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.short > 1 && c.o.Now().Sub(c.shortAt) <= c.o.Fresh {
		t.Most = whole(float64(t.Tokens) * c.short)
	}
	return t
}

// Count counts a prompt. An error says that it could not be, and is for people;
// it holds nothing of the prompt.
func (c *Counter) Count(ctx context.Context, q Question) (Tally, error) {
	asked, err := parseMembers(q.Body)
	if err != nil {
		return Tally{}, err
	}
	key := asked.digest(q)
	c.mu.Lock()
	if t, ok := c.kept.get(key, c.o.Now().Add(-c.o.Fresh)); ok {
		c.mu.Unlock()
		return c.lengthen(t), nil
	}
	f := c.flights[key]
	if f == nil {
		// One tenant alone must not keep the others from being counted.
		if c.tenants[q.Tenant] >= max(1, c.o.AtOnce/2)*waitingPerTurn {
			c.mu.Unlock()
			return Tally{}, errWaiting
		}
		c.tenants[q.Tenant]++
		f = &flight{done: make(chan struct{})}
		var within context.Context
		within, f.cancel = context.WithTimeout(context.WithoutCancel(ctx), c.o.Timeout)
		c.flights[key] = f
		go c.fly(within, f, key, q, asked)
	}
	f.waiting++
	c.mu.Unlock()
	defer c.leave(f, key)
	select {
	case <-f.done:
		return c.lengthen(f.tally), f.err
	case <-ctx.Done():
		return Tally{}, ctx.Err()
	}
}

// leave cancels a flight that nobody waits for any more.
func (c *Counter) leave(f *flight, key digest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		f.cancel()
		c.land(f, key)
	}
}

// land makes room for another flight of the same prompt. The caller holds mu.
func (c *Counter) land(f *flight, key digest) {
	if c.flights[key] == f {
		delete(c.flights, key)
	}
}

// fly carries out one count when its turn has come.
func (c *Counter) fly(ctx context.Context, f *flight, key digest, q Question, asked members) {
	select {
	case c.turns <- struct{}{}:
		f.tally, f.err = c.safely(ctx, q, asked)
		<-c.turns
	case <-ctx.Done():
		f.err = errWaiting
	}
	if f.err != nil && f.err != errWaiting && ctx.Err() != nil {
		f.err = fmt.Errorf("the count did not end within %s", c.o.Timeout)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.land(f, key)
	if c.tenants[q.Tenant]--; c.tenants[q.Tenant] == 0 {
		delete(c.tenants, q.Tenant)
	}
	if f.err == nil {
		c.kept.put(key, f.tally, c.o.Now())
	}
	close(f.done)
}

// safely turns a broken invariant into an error of this one count.
func (c *Counter) safely(ctx context.Context, q Question, asked members) (t Tally, err error) {
	defer func() {
		if recover() != nil {
			t, err = Tally{}, errors.New("kvcanary: internal error: a count ended in a panic")
		}
	}()
	return c.count(ctx, q, asked)
}

// count tries the ways of the dialect, the one that worked last first.
func (c *Counter) count(ctx context.Context, q Question, asked members) (Tally, error) {
	c.mu.Lock()
	first := c.worked[q.Dialect]
	c.mu.Unlock()
	engine, why := c.o.Engine(), ErrNoCounter
	for i := range ways {
		n := i
		switch { // first comes first, then the others in order
		case i == 0:
			n = first
		case i <= first:
			n = i - 1
		}
		w := &ways[n]
		if !w.suits(q.Dialect, engine) {
			continue
		}
		t, err := c.by(ctx, w, q, asked)
		if errors.Is(err, ErrNoCounter) {
			why = err
			continue
		}
		if err == nil {
			c.mu.Lock()
			c.worked[q.Dialect] = n
			c.mu.Unlock()
		}
		return t, err
	}
	return Tally{}, why
}

// by counts in one way, once it is proven that the way sees prompts to their
// end.
func (c *Counter) by(ctx context.Context, w *way, q Question, asked members) (Tally, error) {
	body, err := w.body(asked)
	if err != nil {
		return Tally{}, err
	}
	t, err := w.ask(ctx, c, q.Header, body)
	if err != nil || t.Over {
		return t, err
	}
	if t.Tokens > q.Limit { // refused as it is
		return t, nil
	}
	if low := len(body) / maxBytesPerToken; t.Tokens < low && !q.Opaque {
		return Tally{}, fmt.Errorf("%w: it says %d tokens of %d bytes", ErrUnsound, t.Tokens, len(body))
	}
	seen, err := c.prove(ctx, w, q, asked)
	if err != nil {
		return Tally{}, err
	}
	t.Tools, t.Opaque = seen.tools && !asked.has(unproven), !selfHosted(c.o.Engine())
	if !w.some {
		t.Others = asked.others(q.Dialect)
	}
	return t, nil
}

// maxBytesPerToken is how many bytes of JSON a token stands for at most: the
// longest known tokens are runs of 128 blanks, each of which may be written as
// an escape of six bytes.
const maxBytesPerToken = 1024
