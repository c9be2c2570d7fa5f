package lab

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

func tokens(c *call, n int) {
	for i := range n {
		c.put(Event{Token: byte(i)})
	}
}

func TestCallKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCall()
		go c.deliver(t.Context(), nil, nil)
		tokens(c, 1000)
		c.put(Event{Done: &Done{Finish: "stop"}})
		i := 0
		for e := range c.out {
			if e.Done != nil {
				break
			}
			if e.Token != byte(i) {
				t.Fatalf("token %d is %d", i, e.Token)
			}
			i++
		}
		if _, more := <-c.out; i != 1000 || more {
			t.Errorf("%d tokens, more: %v", i, more)
		}
	})
}

// The last event gets through to a client that has stopped reading, in place
// of what it has not read; nobody waits for it.
func TestCallEndsWithoutItsClient(t *testing.T) {
	for name, end := range map[string]func(cancel func(), closing chan struct{}){
		"client gone":    func(cancel func(), _ chan struct{}) { cancel() },
		"engine closing": func(_ func(), closing chan struct{}) { close(closing) },
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			closing, there := make(chan struct{}), make(chan bool, 1)
			c := newCall()
			go func() { there <- c.deliver(ctx, closing, func() *Error { return errorOf(lossOf(handoff.ToDecode)) }) }()
			tokens(c, 1000)
			synctest.Wait()
			end(cancel, closing)
			if got := <-there; got != (name == "engine closing") {
				t.Errorf("%s: deliver reports %v", name, got)
			}
			var last Event
			n := 0
			for last = range c.out {
				n++
			}
			want := "decode node is gone"
			if name == "client gone" {
				want = clientGone.Message
			}
			if last.Error == nil || last.Error.Message != want || n > cap(c.out) {
				t.Errorf("%s: %d events, the last is %+v", name, n, last)
			}
		})
	}
}

func TestCallWaitsForItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := newCall()
		go c.deliver(ctx, nil, nil)
		synctest.Wait() // it waits for tokens now
		cancel()
		if e := <-c.out; e.Error == nil || e.Error.Status != 499 {
			t.Errorf("got %+v", e)
		}
	})
}
