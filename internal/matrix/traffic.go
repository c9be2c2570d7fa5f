package matrix

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kvcanary/kvcanary/internal/lab"
	"github.com/kvcanary/kvcanary/internal/lab/model"
)

// traffic is what other customers send: short tickets, configurations, prose
// and long documents, as a seed has it. Their pages are what an engine with
// the incident's fault reads. It may be sent by several goroutines at once.
type traffic struct {
	backend lab.Backend
	seed    uint64
	calls   atomic.Uint64
	failed  atomic.Int64 // requests that ended with an error of the engine's

	beside sync.WaitGroup
	mu     sync.Mutex
	err    error // the first request that was refused
}

// customer is one of them, with choices of its own.
type customer struct{ rand *rand.Rand }

func (t *traffic) next() customer {
	return customer{rand.New(rand.NewPCG(t.seed, 0x7472616666696320+t.calls.Add(1)))}
}

// fill sends requests, so many at once, until they have had as many tokens as
// the pool holds, so that hardly a page is blank.
func (t *traffic) fill(ctx context.Context, tokens, atOnce int) {
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			c := t.next()
			for left := tokens / atOnce; left > 0 && t.refused() == nil && ctx.Err() == nil; {
				left -= t.send(ctx, c)
			}
		})
	}
	wg.Wait()
}

// start sends none to three requests and does not wait for them.
func (t *traffic) start(ctx context.Context) { t.beside.Go(func() { t.some(ctx) }) }

// end waits for what was started.
func (t *traffic) end() { t.beside.Wait() }

// some sends none to three requests.
func (t *traffic) some(ctx context.Context) {
	c := t.next()
	for range c.rand.IntN(4) {
		t.send(ctx, c)
	}
}

// refused is the first refusal of a request that there was nothing wrong with.
func (t *traffic) refused() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// send makes one request, waits for its end and returns its tokens.
func (t *traffic) send(ctx context.Context, c customer) int {
	tokens := model.Template(nil, []model.Message{{Role: model.RoleUser, Text: c.text()}})
	made := 0
	for e := range t.backend.Submit(ctx, lab.Request{Tenant: "other", Tokens: tokens, MaxTokens: 16}) {
		switch {
		case e.Error != nil && ctx.Err() != nil: // the trial is over
		case e.Error != nil && e.Error.Status >= 500:
			t.failed.Add(1)
		case e.Error != nil:
			t.mu.Lock()
			t.err = cmp.Or(t.err, fmt.Errorf("%w: %s", errRefused, e.Error.Message))
			t.mu.Unlock()
		case e.Done != nil:
			made = e.Done.CompletionTokens
		}
	}
	return len(tokens) + made
}

func (c customer) text() string {
	switch c.rand.IntN(4) {
	case 0:
		return fmt.Sprintf("My name is %s, account %08d. I cannot log in, my password was %s. %s", c.name(), c.rand.IntN(1e8), c.secret(10), c.prose(20))
	case 1:
		return fmt.Sprintf("Here is our config: host=%s.internal user=%s token=%s. Is it right? %s", c.word(), c.word(), c.secret(24), c.prose(10))
	case 2:
		return "Summarize this: " + c.prose(150+c.rand.IntN(150))
	}
	return "Translate to French: " + c.prose(20+c.rand.IntN(60))
}

func (c customer) prose(words int) string {
	all := make([]string, words)
	for i := range all {
		all[i] = c.word()
	}
	return strings.Join(all, " ")
}

func (c customer) name() string {
	title := func(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
	return title(c.word()) + " " + title(c.word())
}

// word is made of syllables, so that no dictionary is needed and none is shared.
func (c customer) word() string {
	const consonants, vowels = "bcdfghjklmnprstvwz", "aeiou"
	var b strings.Builder
	for range 2 + c.rand.IntN(2) {
		b.WriteByte(consonants[c.rand.IntN(len(consonants))])
		b.WriteByte(vowels[c.rand.IntN(len(vowels))])
	}
	return b.String()
}

func (c customer) secret(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[c.rand.IntN(len(letters))]
	}
	return string(b)
}
