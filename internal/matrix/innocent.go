package matrix

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/lab"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// innocent is an endpoint that does nothing wrong and does not look it: every
// finding there is a false alarm. Fields may be nil.
type innocent struct {
	mode    string // "none:" and this is its row
	config  func(*lab.Config)
	backend func(lab.Backend, *rand.Rand) lab.Backend
	handler func(http.Handler, *rand.Rand) http.Handler
	client  func(campaign.Client) campaign.Client
}

// innocents are what endpoints in the field are like.
var innocents = []innocent{
	{mode: "temperature", client: func(c campaign.Client) campaign.Client { return hot{c} }},
	{mode: "disobedient", backend: func(b lab.Backend, r *rand.Rand) lab.Backend { return disobedient{b, newSeeds(r)} }},
	{mode: "rate_limits", handler: func(h http.Handler, r *rand.Rand) http.Handler { return flaky{h, newSeeds(r), rateLimited, tooMany} }},
	{mode: "drops", handler: func(h http.Handler, r *rand.Rand) http.Handler { return flaky{h, newSeeds(r), dropped, drop} }},
	{mode: "wrong_usage", backend: func(b lab.Backend, r *rand.Rand) lab.Backend { return wrongUsage{b, r.IntN(801) - 400} }},
	{mode: "idempotent", handler: func(h http.Handler, _ *rand.Rand) http.Handler { return newIdempotent(h) }},
	{mode: "answer_cache", config: func(c *lab.Config) { c.AnswerCache = "exact" }},
	{mode: "prefix_cache", config: func(c *lab.Config) { c.PrefixCache, c.Tier = c.PrefillPool, c.PrefillPool }},
	{
		mode:    "system_prompt",
		config:  func(c *lab.Config) { c.PrefixCache, c.Tier = c.PrefillPool, c.PrefillPool },
		handler: func(h http.Handler, r *rand.Rand) http.Handler { return system{h, (customer{r}).prose(24)} },
	},
}

// Shares of requests that go wrong at an endpoint that is merely flaky.
const (
	rateLimited = 0.30
	dropped     = 0.05
)

// seeds hands out a source of randomness for each request, in their order.
type seeds struct {
	base uint64
	n    *atomic.Uint64
}

func newSeeds(r *rand.Rand) seeds { return seeds{r.Uint64(), new(atomic.Uint64)} }

func (s seeds) next() *rand.Rand { return rand.New(rand.NewPCG(s.base, s.n.Add(1))) }

// hot asks for temperature 1, whatever the protocol wants.
type hot struct{ campaign.Client }

func (h hot) Do(ctx context.Context, r wire.Request) *wire.Answer {
	r.Temperature = 1
	return h.Client.Do(ctx, r)
}

// disobedient answers with prose of its own, whatever it is asked.
type disobedient struct {
	lab.Backend
	seeds seeds
}

func (d disobedient) Submit(ctx context.Context, r lab.Request) <-chan lab.Event {
	text := (customer{d.seeds.next()}).prose(8 + len(r.Tokens)%8)
	n := 0
	return relay(ctx, d.Backend.Submit(ctx, r), func(e *lab.Event) bool {
		switch {
		case e.Done != nil:
			e.Done.CompletionTokens = n
		case e.Error == nil && n == len(text):
			return false
		case e.Error == nil:
			e.Token = text[n]
			n++
		}
		return true
	})
}

// relay passes events on as edit leaves them, those for which it says so.
func relay(ctx context.Context, in <-chan lab.Event, edit func(*lab.Event) bool) <-chan lab.Event {
	out := make(chan lab.Event)
	go func() {
		defer close(out)
		for e := range in {
			if !edit(&e) {
				continue
			}
			select {
			case out <- e:
			case <-ctx.Done(): // nobody listens any more
			}
		}
	}()
	return out
}

// wrongUsage counts every prompt wrong by the same.
type wrongUsage struct {
	lab.Backend
	by int
}

func (w wrongUsage) Submit(ctx context.Context, r lab.Request) <-chan lab.Event {
	return relay(ctx, w.Backend.Submit(ctx, r), func(e *lab.Event) bool {
		if e.Done != nil {
			e.Done.PromptTokens = max(1, e.Done.PromptTokens+w.by)
		}
		return true
	})
}

// flaky spoils a share of the requests for an answer.
type flaky struct {
	http.Handler
	seeds seeds
	share float64
	spoil func(http.Handler, http.ResponseWriter, *http.Request)
}

func (f flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/chat/completions" && f.seeds.next().Float64() < f.share {
		f.spoil(f.Handler, w, r)
		return
	}
	f.Handler.ServeHTTP(w, r)
}

// tooMany asks the client to come back soon.
func tooMany(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After-Ms", "2")
	w.WriteHeader(http.StatusTooManyRequests)
	io.WriteString(w, `{"error":{"message":"Rate limit reached, try again later","type":"rate_limit_error","code":429}}`)
}

// drop hangs up after the first few bytes of the answer.
func drop(h http.Handler, w http.ResponseWriter, r *http.Request) {
	h.ServeHTTP(&short{ResponseWriter: w, left: 300}, r)
	panic(http.ErrAbortHandler)
}

// short lets so many bytes through and swallows the rest.
type short struct {
	http.ResponseWriter
	left int
}

func (s *short) Write(b []byte) (int, error) {
	n := min(len(b), s.left)
	s.left -= n
	if _, err := s.ResponseWriter.Write(b[:n]); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Flush keeps streams streaming.
func (s *short) Flush() { http.NewResponseController(s.ResponseWriter).Flush() }

// system puts the same words before everybody's prompt, as a gateway that has a
// house style does.
type system struct {
	http.Handler
	words string
}

func (s system) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		var body map[string]any
		if b, err := io.ReadAll(r.Body); err == nil && json.Unmarshal(b, &body) == nil {
			if turns, ok := body["messages"].([]any); ok {
				body["messages"] = append([]any{map[string]string{"role": "system", "content": s.words}}, turns...)
			}
			b, _ = json.Marshal(body)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
			r.Header.Set("Content-Length", strconv.Itoa(len(b)))
		}
	}
	s.Handler.ServeHTTP(w, r)
}
