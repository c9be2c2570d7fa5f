package matrix

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/kvcanary/kvcanary/internal/lab"
	"github.com/kvcanary/kvcanary/internal/lab/model"
)

// traffic is what other customers send: short tickets, configurations, prose
// and long documents, as a seed has it. Their pages are what an engine with
// the incident's fault reads.
type traffic struct {
	backend lab.Backend
	rand    *rand.Rand
	err     error // the first request that did not end well
}

func newTraffic(b lab.Backend, seed uint64) *traffic {
	return &traffic{backend: b, rand: rand.New(rand.NewPCG(seed, 0x7472616666696320))}
}

// fill sends requests until they have had as many tokens as the pool holds, so
// that hardly a page is blank.
func (t *traffic) fill(ctx context.Context, tokens int) error {
	for tokens > 0 && t.err == nil {
		tokens -= t.send(ctx)
	}
	return t.err
}

// some sends none to three requests.
func (t *traffic) some(ctx context.Context) {
	for range t.rand.IntN(4) {
		t.send(ctx)
	}
}

// send makes one request, waits for its end and returns its tokens.
func (t *traffic) send(ctx context.Context) int {
	if t.err != nil {
		return 0
	}
	tokens := model.Template(nil, []model.Message{{Role: model.RoleUser, Text: t.text()}})
	made := 0
	for e := range t.backend.Submit(ctx, lab.Request{Tenant: "other", Tokens: tokens, MaxTokens: 16}) {
		if e.Error != nil {
			t.err = fmt.Errorf("%w: %s", errRefused, e.Error.Message)
		}
		if e.Done != nil {
			made = e.Done.CompletionTokens
		}
	}
	return len(tokens) + made
}

func (t *traffic) text() string {
	switch t.rand.IntN(4) {
	case 0:
		return fmt.Sprintf("My name is %s, account %08d. I cannot log in, my password was %s. %s", t.name(), t.rand.IntN(1e8), t.secret(10), t.prose(20))
	case 1:
		return fmt.Sprintf("Here is our config: host=%s.internal user=%s token=%s. Is it right? %s", t.word(), t.word(), t.secret(24), t.prose(10))
	case 2:
		return "Summarize this: " + t.prose(150+t.rand.IntN(150))
	}
	return "Translate to French: " + t.prose(20+t.rand.IntN(60))
}

func (t *traffic) prose(words int) string {
	all := make([]string, words)
	for i := range all {
		all[i] = t.word()
	}
	return strings.Join(all, " ")
}

func (t *traffic) name() string {
	title := func(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
	return title(t.word()) + " " + title(t.word())
}

// word is made of syllables, so that no dictionary is needed and none is shared.
func (t *traffic) word() string {
	const consonants, vowels = "bcdfghjklmnprstvwz", "aeiou"
	var b strings.Builder
	for range 2 + t.rand.IntN(2) {
		b.WriteByte(consonants[t.rand.IntN(len(consonants))])
		b.WriteByte(vowels[t.rand.IntN(len(vowels))])
	}
	return b.String()
}

func (t *traffic) secret(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[t.rand.IntN(len(letters))]
	}
	return string(b)
}
