package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// call is a request to an upstream.
type call struct {
	method, target string // target is path and query, without the upstream's prefix
	header         http.Header
	body           []byte
	// rest, if there is one, is sent behind body as it can be read.
	rest io.Reader
	// whole is how many bytes body and rest have together; -1 if that is not
	// known, and the call is sent in chunks.
	whole int64
	// interrupt has a blocked read of rest return at once.
	interrupt func()
}

// exchange is a call that is under way, with the head of its answer.
type exchange struct {
	*answer
	up        *upstream
	interrupt func()      // of the call
	upload    *upload     // nil if the call was sent in one piece
	stop      func() bool // the connection is closed when the context ends, unless stopped
	whole     bool        // the call was sent whole
}

// errNotSent wraps what went wrong before a byte of the call was sent: it may be
// tried elsewhere.
var errNotSent = errors.New("not sent")

// errEarly is a success that came before the upstream had the whole prompt.
var errEarly = errors.New("the upstream answered before it had the whole request")

// begin sends a call and receives the head of the answer. The connection is
// closed when ctx ends. An error of reading call.rest is returned as it is.
func (u *upstream) begin(ctx context.Context, k *call) (*exchange, error) {
	for {
		x, again, err := u.try(ctx, k)
		if !again {
			return x, err
		}
	}
}

func (u *upstream) try(ctx context.Context, k *call) (x *exchange, again bool, err error) {
	from := u.now()
	c := u.take(from)
	if c == nil {
		if c, err = u.dial(ctx); err != nil {
			if ctx.Err() == nil {
				u.bad()
			}
			return nil, false, fmt.Errorf("%w: %w", errNotSent, err)
		}
		c.blocked = u.now().Sub(from)
	}
	x = &exchange{up: u, interrupt: k.interrupt, stop: context.AfterFunc(ctx, func() { c.Close() })}
	n, err := u.write(c, k)
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
		x.upload = &upload{c: c, chunked: k.chunked(), left: k.whole - int64(len(k.body)), done: make(chan struct{})}
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

// write sends the head of a call and what is there of its body, in one piece
// where that is short. It says how much of the piece that begins with the head
// was sent. Its buffer is free again before an answer is waited for.
func (u *upstream) write(c *conn, k *call) (int, error) {
	buf := getBuffer()
	defer putBuffer(buf)
	*buf = u.appendHead((*buf)[:0], k)
	rest := k.body
	if len(rest) <= largeBuffer || k.chunked() {
		*buf = append(*buf, rest...)
		rest = nil
	}
	if k.chunked() {
		*buf = append(*buf, "\r\n"...)
	}
	n, err := c.write(*buf)
	if err == nil && len(rest) > 0 {
		_, err = c.write(rest)
	}
	return n, err
}

// refusedToRead says that the upstream has closed its side, as one does that
// refuses a request by its head. Its answer may have come all the same.
func refusedToRead(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// settle ends the upload, which has no more to do once the answer has begun.
func (x *exchange) settle(c *conn, err error) error {
	if x.upload == nil {
		if err == nil && !x.whole && x.status < 400 {
			return errEarly
		}
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
	x.interrupt()
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
	for name, values := range k.header {
		for _, v := range values {
			b = append(append(append(append(b, name...), ": "...), v...), "\r\n"...)
		}
	}
	switch {
	case k.chunked():
		b = append(b, "Transfer-Encoding: chunked\r\n\r\n"...)
		return append(strconv.AppendInt(b, int64(len(k.body)), 16), "\r\n"...)
	case k.method != http.MethodGet:
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), max(k.whole, int64(len(k.body))), 10), "\r\n"...)
	}
	return append(b, "\r\n"...)
}

// chunked says that the call's length is not known beforehand. Its body is then
// the first chunk, and not empty.
func (k *call) chunked() bool { return k.rest != nil && k.whole < 0 }

// upload sends the rest of a body.
type upload struct {
	c        *conn
	chunked  bool
	left     int64         // bytes to send, if not chunked
	complete atomic.Bool   // nothing is left to read, and what was read is sent or being sent
	done     chan struct{} // closed when run returns; the fields below are read then
	read     error         // of reading, unless it was halted
	sent     error         // of sending

	mu     sync.Mutex
	halted bool
}

// chunkRoom is for the length before a chunk, and for what comes behind it.
const chunkRoom = 8

// run sends what it reads. If that fails, the connection is closed before the
// last chunk: what the upstream has is no whole body, so that it must not be
// acted upon.
func (p *upload) run(rest io.Reader) {
	defer close(p.done)
	defer p.recovered()
	buf := getBuffer()
	defer putBuffer(buf)
	*buf = (*buf)[:cap(*buf)]
	b := *buf
	for {
		n, err := rest.Read(b[chunkRoom : len(b)-chunkRoom])
		if p.left -= int64(n); err == io.EOF && !p.chunked && p.left != 0 {
			panic("kvcanary: internal error: a rewritten body is not as long as it was to be")
		}
		if err != nil && err != io.EOF {
			p.giveUp(err)
			return
		}
		p.complete.Store(err == io.EOF)
		if p.sent = p.write(p.framed(b, n, err == io.EOF)); p.sent != nil || err == io.EOF {
			return
		}
	}
}

// framed is what n bytes of a body look like on the way. There is room for the
// frame around them.
func (p *upload) framed(b []byte, n int, last bool) []byte {
	from, end := chunkRoom, chunkRoom+n
	if !p.chunked {
		return b[from:end]
	}
	if n > 0 {
		var digits [chunkRoom]byte
		size := append(strconv.AppendInt(digits[:0], int64(n), 16), "\r\n"...)
		from -= copy(b[from-len(size):], size)
		end += copy(b[end:], "\r\n")
	}
	if last {
		end += copy(b[end:], "0\r\n\r\n")
	}
	return b[from:end]
}

// recovered turns a broken invariant into the error of this upload.
func (p *upload) recovered() {
	if v := recover(); v != nil {
		p.giveUp(fmt.Errorf("%v\n%s", v, debug.Stack()))
	}
}

// giveUp ends an upload whose body must not go on, or cannot. What the upstream
// has of it is no whole request. One that was halted has an answer already, which
// is still to be read from the connection.
func (p *upload) giveUp(err error) {
	p.mu.Lock()
	halted := p.halted
	if !halted {
		p.read = err
	}
	p.mu.Unlock()
	if !halted {
		p.c.Close()
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

// largeBuffer is up to how many bytes a buffer is kept for the next request.
const largeBuffer = 64 << 10

// buffers are for what goes to an upstream and for what comes from it.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 8<<10); return &b }}

func getBuffer() *[]byte { return buffers.Get().(*[]byte) }

// putBuffer takes back a buffer whose length says how far it was written. What
// stands there, keys and prompts among it, is not left for the next request to
// come upon. Those that have grown for one large body are let go.
func putBuffer(b *[]byte) {
	if cap(*b) <= largeBuffer {
		clear(*b)
		*b = (*b)[:0]
		buffers.Put(b)
	}
}
