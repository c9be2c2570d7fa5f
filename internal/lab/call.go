package lab

import (
	"context"
	"sync"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// call is one request's way back to its client. The engine never waits for a
// client: what is not read yet queues here, at most the longest answer.
type call struct {
	room   handoff.Room
	reused int // tokens of the prompt that were not computed; the engine's
	out    chan Event
	wake   chan struct{}

	mu     sync.Mutex
	tokens []byte
	cached int // tokens of the prompt that were not computed
	last   *Event
}

func newCall() *call {
	return &call{out: make(chan Event, 16), wake: make(chan struct{}, 1)}
}

// put queues an event; nothing follows a Done or an Error.
func (c *call) put(e Event) {
	c.mu.Lock()
	if e.Done != nil || e.Error != nil {
		c.last = &e
	} else {
		c.tokens = append(c.tokens, e.Token)
		c.cached = e.Cached
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// refuse ends a call before it begins.
func (c *call) refuse(err *Error) <-chan Event {
	c.force(err)
	close(c.out)
	return c.out
}

func (c *call) take() (tokens []byte, cached int, last *Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tokens = c.tokens
	c.tokens = nil
	return tokens, c.cached, c.last
}

// deliver moves events to the client until the last one and closes the
// channel. It reports whether the client was there to the end: false means
// that ctx ended first. Once closing is closed a client that does not keep up
// is not waited for and gets an error as its last event: why the engine ends.
func (c *call) deliver(ctx context.Context, closing <-chan struct{}, why func() *Error) bool {
	defer close(c.out)
	for {
		tokens, cached, last := c.take()
		for _, t := range tokens {
			if !c.send(ctx, closing, why, Event{Token: t, Cached: cached}) {
				return ctx.Err() == nil
			}
		}
		if last != nil {
			c.send(ctx, closing, why, *last)
			return true
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
			c.force(clientGone)
			return false
		}
	}
}

// send waits until the client takes an event. If it will not, the error that
// ends the answer takes the place of what the client has not read.
func (c *call) send(ctx context.Context, closing <-chan struct{}, why func() *Error, e Event) bool {
	select {
	case c.out <- e:
		return true
	default:
	}
	select {
	case c.out <- e:
		return true
	case <-ctx.Done():
		c.force(clientGone)
	case <-closing:
		c.force(why())
	}
	return false
}

// force leaves an error as the last event without waiting.
func (c *call) force(err *Error) {
	for {
		select {
		case c.out <- Event{Error: err}:
			return
		default:
		}
		select {
		case <-c.out:
		default:
		}
	}
}

var clientGone = &Error{Status: 499, Type: "ClientClosedRequest", Message: "the client has gone"}
