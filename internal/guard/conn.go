package guard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"time"
)

// conn is a connection to an upstream. It carries one request at a time, and
// another one only after an answer that was read to its clean end with nothing
// behind it. net/http's Transport reuses a connection before it has looked for
// more bytes, so that an answer longer than it said can be taken for the next
// request's; that is why the guard has a client of its own.
type conn struct {
	net.Conn
	br      *bufio.Reader
	now     func() time.Time
	stall   time.Duration
	armed   time.Time     // when the read deadline was set
	sent    time.Time     // when the write deadline was set
	blocked time.Duration // waited for the upstream's bytes, since the request began
	idle    time.Time     // since when it waits for a request
	used    bool          // by an earlier request
}

// Read implements io.Reader with the stall deadline, and keeps the time.
func (c *conn) Read(p []byte) (int, error) {
	from := c.now()
	// Setting a deadline costs more than reading: a stall is noticed after its
	// time and an eighth at most.
	if from.Sub(c.armed) > c.stall/8 {
		c.armed = from
		if err := c.SetReadDeadline(from.Add(c.stall + c.stall/8)); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Read(p)
	c.blocked += c.now().Sub(from)
	return n, err
}

// write sends what must be sent before anything is read.
func (c *conn) write(p []byte) (int, error) {
	from := c.now()
	if from.Sub(c.sent) > c.stall/8 {
		c.sent = from
		if err := c.SetWriteDeadline(from.Add(c.stall + c.stall/8)); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Write(p)
	c.blocked += c.now().Sub(from)
	return n, err
}

// answer is an upstream's answer; body is read until io.EOF, or closed.
type answer struct {
	head
	framing
	trailer http.Header // complete at the end of the body

	c      *conn
	chunks io.Reader // decoder, if the body is chunked
	left   int64     // bytes of a body of known length
	budget int       // of the trailers, bytes
	ended  bool      // the body was read to its clean end
	failed error     // what await met with
}

// maxInformational is how many 1xx answers may come before the answer. They are
// not passed on: nothing that was asked for calls for one.
const maxInformational = 8

// receive reads the head of the answer.
func (c *conn) receive(headBytes int) (*answer, error) {
	budget := headBytes
	for range maxInformational {
		h, err := readHead(c.br, &budget)
		if err != nil {
			return nil, err
		}
		switch {
		case h.status == http.StatusSwitchingProtocols:
			return nil, badHead("it switches protocols unasked")
		case h.status < 200:
			continue
		}
		f, err := h.frame()
		if err != nil {
			return nil, err
		}
		a := &answer{head: h, framing: f, c: c, left: f.length, budget: headBytes, ended: f.length == 0}
		if f.chunked {
			a.chunks = httputil.NewChunkedReader(c.br)
		}
		return a, nil
	}
	return nil, badHead("more than %d informational answers", maxInformational)
}

// errCut is an answer that ended before its end.
var errCut = errors.New("the upstream's answer ended before its end")

// Read implements io.Reader. Its io.EOF is a clean end.
func (a *answer) Read(p []byte) (n int, err error) {
	switch {
	case a.ended:
		return 0, io.EOF
	case a.failed != nil:
		err = a.failed
		a.ended = err == io.EOF && !a.chunked && a.length < 0
	case a.chunked:
		n, err = a.readChunks(p)
	case a.length < 0:
		n, err = a.c.br.Read(p)
		a.ended = err == io.EOF
		return n, err
	default:
		n, err = a.readLength(p)
	}
	if err == io.ErrUnexpectedEOF || err == io.EOF && !a.ended {
		err = errCut
	}
	return n, err
}

// await waits until there is something to read, or nothing any more.
func (a *answer) await() {
	if !a.ended && a.failed == nil && a.c.br.Buffered() == 0 {
		_, a.failed = a.c.br.Peek(1)
	}
}

func (a *answer) readLength(p []byte) (n int, err error) {
	if int64(len(p)) > a.left {
		p = p[:a.left]
	}
	if len(p) > 0 {
		n, err = a.c.br.Read(p)
	}
	if a.left -= int64(n); a.left == 0 {
		a.ended, err = true, io.EOF
	}
	return n, err
}

func (a *answer) readChunks(p []byte) (int, error) {
	n, err := a.chunks.Read(p)
	if err != io.EOF {
		return n, err
	}
	trailer, err := readHeaders(a.c.br, &a.budget)
	if err != nil {
		return n, err
	}
	a.trailer, a.ended = trailer, true
	return n, io.EOF
}

// pool keeps the idle connections to one upstream, the latest used first.
type pool struct {
	idle  []*conn
	timer *time.Timer
	shut  bool
}

// maxIdle is how many idle connections to an upstream are kept.
const maxIdle = 256

// maxIdleTime is how long an idle connection is kept: less than the five seconds
// after which uvicorn, the server of most engines, closes one. A request that
// is written while the other side closes is lost, for it may not be sent twice.
const maxIdleTime = 4 * time.Second

// take returns an idle connection that is fit for another request, or nil.
func (u *upstream) take(now time.Time) *conn {
	for {
		u.mu.Lock()
		n := len(u.pool.idle)
		if n == 0 {
			u.mu.Unlock()
			return nil
		}
		c := u.pool.idle[n-1]
		u.pool.idle[n-1] = nil
		u.pool.idle = u.pool.idle[:n-1]
		u.mu.Unlock()
		if now.Sub(c.idle) < u.idleTime && quiet(c.Conn) {
			if c.used, c.blocked = true, 0; u.tls != nil {
				c.armed = time.Time{} // quiet has lifted it
			}
			return c
		}
		c.Close()
	}
}

// put keeps a connection whose answer was read to its clean end.
func (u *upstream) put(c *conn) {
	c.idle = u.now()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pool.shut || len(u.pool.idle) >= maxIdle {
		c.Close()
		return
	}
	u.pool.idle = append(u.pool.idle, c)
	if u.pool.timer == nil {
		u.pool.timer = time.AfterFunc(u.idleTime, u.sweep)
	}
}

// sweep closes connections that were idle for too long.
func (u *upstream) sweep() {
	u.mu.Lock()
	defer u.mu.Unlock()
	old := 0
	for now := u.now(); old < len(u.pool.idle) && now.Sub(u.pool.idle[old].idle) >= u.idleTime; old++ {
		u.pool.idle[old].Close()
	}
	u.pool.idle = append(u.pool.idle[:0], u.pool.idle[old:]...)
	u.pool.timer = nil
	if len(u.pool.idle) > 0 && !u.pool.shut {
		u.pool.timer = time.AfterFunc(u.idleTime, u.sweep)
	}
}

// shutDown closes idle connections; those in use are closed when they come back.
func (u *upstream) shutDown() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pool.shut = true
	for _, c := range u.pool.idle {
		c.Close()
	}
	u.pool.idle = nil
	if u.pool.timer != nil {
		u.pool.timer.Stop()
	}
}

// readRoom is how much is read from an upstream at once, bytes: some events of a
// token each. Each open stream takes that much while it waits.
const readRoom = 2 << 10

// dial makes a new connection.
func (u *upstream) dial(ctx context.Context) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, u.limits.ConnectTime)
	defer cancel()
	nc, err := u.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	c := &conn{Conn: nc, now: u.now, stall: u.limits.StallTime}
	c.br = bufio.NewReaderSize(c, readRoom)
	return c, nil
}
