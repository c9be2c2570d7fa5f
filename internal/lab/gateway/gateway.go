// Package gateway stands between the lab's API and its engine, as gateways do
// in the field: it keeps connections to the engine and uses them again, one
// request after the other, and may answer from a cache.
//
// An answer comes over a connection as server-sent events in chunks. They are
// read into a pooled buffer, wait there until the client has taken what came
// before, and are parsed. A fault takes away what keeps the connections,
// the buffers or the parsers of two requests apart; none of them copies text.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// Engine is what a gateway stands in front of.
type Engine interface {
	lab.Backend
	Gateway() lab.GatewaySettings
	Close() error
	Wait() error
}

// Gateway is a [lab.Backend] that serves with the engine behind it.
type Gateway struct {
	engine  Engine
	on      lab.GatewayDefences
	cache   *cache // nil if answers are not kept
	conns   pool
	buffers buffers
	shared  *parser // of all connections, where they do not have their own
	names   atomic.Uint64

	closing chan struct{}
	once    sync.Once
	mu      sync.Mutex // of work.Go against Close
	work    sync.WaitGroup
}

// Over puts a gateway in front of an engine, set up as the engine's
// configuration says. It owns the engine from here on.
func Over(e Engine) *Gateway {
	set := e.Gateway()
	g := &Gateway{engine: e, on: set.On(), cache: newCache(set), closing: make(chan struct{})}
	g.conns.dial = g.dial
	if !g.on.Any(lab.OwnParsers) && set.Faults.Any(lab.SharedParser) {
		g.shared = new(parser)
	}
	if !g.on.Any(lab.OwnParsers) && set.Faults.Any(lab.GiveTwice) {
		g.buffers.twice = true
	}
	g.buffers.numbers = g.on.Any(lab.BufferGenerations)
	return g
}

// State implements [lab.Backend].
func (g *Gateway) State() lab.State { return g.engine.State() }

// Wait returns once the engine has ended, with what ended it.
func (g *Gateway) Wait() error { return g.engine.Wait() }

// Close hangs up on the engine and then ends it. Nothing of either runs on.
func (g *Gateway) Close() error {
	g.once.Do(func() {
		g.mu.Lock()
		close(g.closing)
		g.mu.Unlock()
		g.conns.close()
	})
	err := g.engine.Close()
	g.work.Wait()
	return err
}

// start runs f, unless the gateway is closing.
func (g *Gateway) start(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.closing:
		return false
	default:
	}
	g.work.Go(f)
	return true
}

// Submit implements [lab.Backend].
func (g *Gateway) Submit(ctx context.Context, r lab.Request) <-chan lab.Event {
	a := &answer{out: make(chan lab.Event, 16), ctx: ctx, closing: g.closing}
	if !g.start(func() {
		defer close(a.out)
		g.answer(a, r)
	}) {
		a.fail(closed)
		close(a.out)
	}
	return a.out
}

// answer answers a request from the cache or from the engine.
func (g *Gateway) answer(a *answer, r lab.Request) {
	if g.cache == nil {
		g.forward(a, r)
		return
	}
	key := g.cache.key(r)
	if kept, ok := g.cache.get(key); ok {
		kept.replay(a)
		return
	}
	a.keep = true
	if g.forward(a, r); a.done != nil {
		g.cache.put(key, kept{tokens: a.kept, done: *a.done})
	}
}

// forward sends a request to the engine and its answer to the client.
func (g *Gateway) forward(a *answer, r lab.Request) {
	c, err := g.conns.take()
	if err != nil {
		a.fail(closed)
		return
	}
	err = g.exchange(a, c, r)
	gone := a.ctx.Err() != nil
	switch {
	case err == nil && c.rouse() == nil:
		g.conns.give(c)
	case gone && !g.on.Any(lab.PoisonConns) && c.rouse() == nil:
		g.conns.give(c) // what is still to come on it is unread
	default:
		c.Close()
		<-c.served // the engine has let go of the request
	}
	switch {
	case a.ended.Load():
	case gone:
		a.fail(clientGone)
	case err != nil:
		a.fail(g.errorOf(err))
	default:
		a.fail(unended)
	}
}

// exchange sends a request over a connection and takes what comes back, to its
// end. It takes up to the end of one answer, whosever that is.
func (g *Gateway) exchange(a *answer, c *conn, r lab.Request) error {
	buf := g.buffers.take()
	defer g.buffers.give(buf)
	defer a.whenGone(func() {
		c.interrupt()
		if g.buffers.twice {
			g.buffers.give(buf)
		}
	})()
	name := fmt.Sprint(g.names.Add(1))
	if err := writeRequest(c, name, r); err != nil {
		c.broken = true
		return err
	}
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer buf.end()
		err = pump(c, buf)
	}()
	taken := g.consume(a, name, buf)
	if taken != nil {
		c.interrupt()
		buf.leave()
	}
	<-done
	return errors.Join(taken, err)
}

// pump reads chunks until the answer's end.
func pump(c *conn, buf *reading) error {
	for {
		text, err := c.chunk()
		switch {
		case err != nil || len(text) == 0:
			return err
		case !buf.put(text):
			return errAnother
		}
	}
}

// consume parses what has been read and passes on what it says.
func (g *Gateway) consume(a *answer, name string, buf *reading) error {
	p := g.shared
	if p == nil {
		p = new(parser)
	}
	for {
		text, stale, more := buf.get()
		switch {
		case stale:
			return errAnother
		case !more:
			return nil
		}
		for _, m := range p.feed(text) {
			if g.on.Any(lab.EchoIDs) && m.id != name {
				return errAnother
			}
			if err := a.take(m); err != nil {
				return err
			}
		}
	}
}

// errAnother says that what came is not what was asked for.
var errAnother = errors.New("the answer is another request's")

func (g *Gateway) errorOf(err error) *lab.Error {
	select {
	case <-g.closing:
		return closed
	default:
	}
	return &lab.Error{Status: 502, Type: "BadGateway", Message: "the gateway lost the engine's answer: " + err.Error()}
}

var (
	closed     = &lab.Error{Status: 503, Type: "ServiceUnavailableError", Message: "engine is shutting down"}
	clientGone = &lab.Error{Status: 499, Type: "ClientClosedRequest", Message: "the client has gone"}
	unended    = &lab.Error{Status: 502, Type: "BadGateway", Message: "the engine's answer ended without saying how"}
)
