package lab

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"
)

// At a rate of decode answers are under way beside each other that would else end
// before the next begins; and they say the same.
func TestAnswersAtARate(t *testing.T) {
	const tokens = 20
	cfg := Small()
	prompt := babble(rand.New(rand.NewPCG(1, 9)))
	fast := serve(t, startPipe(t, cfg), Request{Tokens: prompt, MaxTokens: tokens})
	cfg.DecodeRate = 100
	e := startPipe(t, cfg)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var open []<-chan Event
	for range 3 {
		open = append(open, e.Submit(ctx, Request{Tokens: prompt, MaxTokens: 2000})) // for twenty seconds
	}
	for e.State().Running < len(open) {
		time.Sleep(time.Millisecond)
	}
	for _, events := range open {
		var said []byte
		for range tokens {
			said = append(said, (<-events).Token)
		}
		if string(said) != fast.text {
			t.Errorf("%q at a rate, %q without", said, fast.text)
		}
	}
}
