package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// call is a request to an upstream.
type call struct {
	method, target string // target is path and query, without the upstream's prefix
	header         []pair
	body           []byte
	// rest, if there is one, is sent behind body, in chunks, as it can be read.
	rest io.Reader
	// interrupt has a blocked read of rest return at once.
	interrupt func()
}

// pair is one header line.
type pair struct{ name, value string }

// exchange is a call that is under way, with the head of its answer.
type exchange struct {
	*answer
	up     *upstream
	call   call
	upload *upload     // nil if the call was sent in one piece
	stop   func() bool // the connection is closed when the context ends, unless stopped
	whole  bool        // the call was sent whole
}

// errNotSent wraps what went wrong before a byte of the call was sent: it may be
// tried elsewhere.
var errNotSent = errors.New("not sent")

// errEarly is a success that came before the upstream had the whole prompt.
var errEarly = errors.New("the upstream answered before it had the whole request")

// begin sends a call and receives the head of the answer. The connection is
// closed when ctx ends. An error of reading call.rest is returned as it is.
func (u *upstream) begin(ctx context.Context, k call) (*exchange, error) {
	buf := getBuffer()
	defer putBuffer(buf)
	*buf = append(u.appendHead((*buf)[:0], &k), k.body...)
	if k.rest != nil && len(k.body) > 0 {
		*buf = append(*buf, "\r\n"...)
	}
	for {
		x, again, err := u.try(ctx, k, *buf)
		if !again {
			return x, err
		}
	}
}

func (u *upstream) try(ctx context.Context, k call, first []byte) (x *exchange, again bool, err error) {
	c := u.take()
	if c == nil {
		if c, err = u.dial(ctx); err != nil {
			if ctx.Err() == nil {
				u.bad()
			}
			return nil, false, fmt.Errorf("%w: %w", errNotSent, err)
		}
	}
	c.blocked = 0
	x = &exchange{up: u, call: k, stop: context.AfterFunc(ctx, func() { c.Close() })}
	n, err := c.write(first)
	if err != nil && n == 0 && u.tls == nil && ctx.Err() == nil {
		x.stop()
		c.Close()
		return nil, c.used, fmt.Errorf("%w: %w", errNotSent, err)
	}
	if err != nil && !refusedToRead(err) {
		x.stop()
		c.Close()
		return nil, false, err
	}
	x.whole = err == nil && k.rest == nil
	if err == nil && k.rest != nil {
		x.upload = &upload{c: c, done: make(chan struct{})}
		go x.upload.run(k.rest)
	}
	x.answer, err = c.receive(u.limits.HeaderBytes)
	if err = x.settle(c, err); err != nil {
		x.stop()
		c.Close()
		return nil, false, err
	}
	return x, false, nil
}

// refusedToRead says that the upstream has closed its side, as one does that
// refuses a request by its head. Its answer may have come all the same.
func refusedToRead(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// settle ends the upload, which has no more to do once the answer has begun.
func (x *exchange) settle(c *conn, err error) error {
	if x.upload == nil {
		return err
	}
	if err == nil && x.upload.complete.Load() {
		<-x.upload.done
		x.whole = x.upload.sent == nil
		return x.upload.read
	}
	// The server takes an interrupted read for the end of its client, and the
	// context ends with it; the answer is to be read all the same.
	x.stop()
	x.upload.halt()
	x.call.interrupt()
	if err != nil {
		c.Close()
	}
	<-x.upload.done
	switch {
	case x.upload.read != nil:
		return x.upload.read
	case err != nil:
		return err
	case x.status < 400:
		return errEarly
	}
	return nil
}

// close gives the connection back if nothing can come on it that belongs to
// this call, and closes it otherwise.
func (x *exchange) close() {
	c := x.c
	if x.stop() && x.ended && x.keep && x.whole && c.br.Buffered() == 0 {
		x.up.put(c)
		return
	}
	c.Close()
}

// appendHead writes the request line and the headers.
func (u *upstream) appendHead(b []byte, k *call) []byte {
	b = append(append(append(append(append(b, k.method...), ' '), u.prefix...), k.target...), " HTTP/1.1\r\nHost: "...)
	b = append(append(b, u.host...), "\r\n"...)
	for _, h := range k.header {
		b = append(append(append(append(b, h.name...), ": "...), h.value...), "\r\n"...)
	}
	switch {
	case k.rest != nil:
		b = append(b, "Transfer-Encoding: chunked\r\n\r\n"...)
		if len(k.body) > 0 { // the first chunk
			b = append(strconv.AppendInt(b, int64(len(k.body)), 16), "\r\n"...)
		}
		return b
	case k.method != http.MethodGet:
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), int64(len(k.body)), 10), "\r\n"...)
	}
	return append(b, "\r\n"...)
}

// upload sends the rest of a body.
type upload struct {
	c        *conn
	complete atomic.Bool   // all but the last chunk is sent, and that one may be
	done     chan struct{} // closed when run returns; the fields below are read then
	read     error         // of reading, unless it was halted
	sent     error         // of sending

	mu     sync.Mutex
	halted bool
}

// chunkRoom is for the length before a chunk and the line end behind it.
const chunkRoom = 8

// run sends what it reads. If that fails, the connection is closed before the
// last chunk: what the upstream has is no whole body, so that it must not be
// acted upon.
func (p *upload) run(rest io.Reader) {
	defer close(p.done)
	buf := getBuffer()
	defer putBuffer(buf)
	b := (*buf)[:cap(*buf)]
	for {
		n, err := rest.Read(b[chunkRoom : len(b)-2])
		if n > 0 {
			var digits [chunkRoom]byte
			size := append(strconv.AppendInt(digits[:0], int64(n), 16), "\r\n"...)
			from := chunkRoom - copy(b[chunkRoom-len(size):], size)
			copy(b[chunkRoom+n:], "\r\n")
			if p.sent = p.write(b[from : chunkRoom+n+2]); p.sent != nil {
				return
			}
		}
		switch err {
		case nil:
		case io.EOF:
			p.complete.Store(true)
			p.sent = p.write([]byte("0\r\n\r\n"))
			return
		default:
			p.mu.Lock()
			if !p.halted {
				p.read = err
			}
			p.mu.Unlock()
			p.c.Close()
			return
		}
	}
}

func (p *upload) write(b []byte) error {
	p.mu.Lock()
	err := errors.New("halted")
	if !p.halted {
		err = p.c.SetWriteDeadline(p.c.now().Add(p.c.stall))
	}
	p.mu.Unlock()
	if err == nil {
		_, err = p.c.Conn.Write(b)
	}
	return err
}

// halt has run return soon.
func (p *upload) halt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halted = true
	p.c.SetWriteDeadline(time.Unix(1, 0))
}

// buffers are for what goes to an upstream and for what comes from it.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 16<<10); return &b }}

func getBuffer() *[]byte { return buffers.Get().(*[]byte) }

// putBuffer leaves out those that have grown for one large body.
func putBuffer(b *[]byte) {
	if cap(*b) <= smallBody+8<<10 {
		buffers.Put(b)
	}
}
