package gateway

import (
	"bufio"
	"errors"
	"net"
	"sync"
	"time"
)

// errClosing ends what is under way when the gateway closes.
var errClosing = errors.New("the gateway is closing")

// idleConns is how many connections wait for their next request at most.
const idleConns = 32

// pool keeps connections to the engine. The one used last is the first to be
// used again, as in Go's own HTTP client.
type pool struct {
	// dial also yields a channel that is closed when nobody serves any more at
	// the other end.
	dial func() (net.Conn, <-chan struct{}, error)

	mu     sync.Mutex
	idle   []*conn
	open   map[*conn]bool
	closed bool
}

// take gives a connection that nobody else uses.
func (p *pool) take() (*conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosing
	}
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return c, nil
	}
	raw, served, err := p.dial()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, served: served, read: bufio.NewReader(raw), pool: p}
	if p.open == nil {
		p.open = map[*conn]bool{}
	}
	p.open[c] = true
	return c, nil
}

// give puts a connection back for the next request.
func (p *pool) give(c *conn) {
	p.mu.Lock()
	keep := !p.closed && len(p.idle) < idleConns
	if keep {
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
	if !keep {
		c.Close()
	}
}

// close hangs up on all connections, those in use too.
func (p *pool) close() {
	p.mu.Lock()
	p.closed, p.idle = true, nil
	open := p.open
	p.open = nil
	p.mu.Unlock()
	for c := range open {
		c.Conn.Close()
	}
}

// conn is a connection to the engine. It carries one request and its answer at
// a time.
type conn struct {
	net.Conn
	read   *bufio.Reader
	served <-chan struct{} // closed when nobody serves any more at the other end
	pool   *pool
	broken bool // a request has not been written whole
}

// Close hangs up: what the engine does for the request on it ends.
func (c *conn) Close() error {
	c.pool.mu.Lock()
	delete(c.pool.open, c)
	c.pool.mu.Unlock()
	return c.Conn.Close()
}

// interrupt ends reads and writes that are under way.
func (c *conn) interrupt() { c.SetDeadline(time.Unix(1, 0)) }

// rouse makes a connection that was interrupted fit for use, whatever is on its
// way on it.
func (c *conn) rouse() error {
	if c.broken {
		return net.ErrClosed
	}
	return c.SetDeadline(time.Time{})
}

// chunk reads the next chunk of an answer; an empty one is the answer's end.
// The text is good until the next call. A read that is interrupted takes nothing.
func (c *conn) chunk() ([]byte, error) { return readChunk(c.read) }
