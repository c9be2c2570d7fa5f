package guard

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/kvcanary/kvcanary/internal/guard/shape"
)

// clientBody reads a client's body as fast as the client must send it, and no
// more of it than is allowed.
type clientBody struct {
	r      io.Reader
	rc     *http.ResponseController
	limits *Limits
	now    func() time.Time
	start  time.Time

	n      int64         // bytes read
	waited time.Duration // for the client
	ended  bool          // read to its end
	broken bool          // reading failed, and would again

	mu     sync.Mutex
	halted bool
}

// Read implements io.Reader. Its errors, but for io.EOF, are a [shape.Error].
func (b *clientBody) Read(p []byte) (int, error) {
	from := b.now()
	if !b.arm() {
		return 0, errSlow
	}
	n, err := b.r.Read(p)
	b.waited += b.now().Sub(from)
	b.n += int64(n)
	switch {
	case b.n > b.limits.BodyBytes:
		return 0, tooLarge(b.limits.BodyBytes)
	case err == io.EOF:
		b.end()
		return n, err
	case err != nil:
		b.broken = true
		return 0, bodyError(err)
	}
	return n, nil
}

// arm sets the time by which more must have come: a body that comes a byte at a
// time holds a place among the concurrent requests all the while.
func (b *clientBody) arm() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.halted {
		return false
	}
	b.rc.SetReadDeadline(b.start.Add(b.limits.BodyTime + time.Duration(b.n)*time.Second/time.Duration(b.limits.BodyRate)))
	return true
}

// end notes that the whole body was read. What is watched from here on is only
// whether the client is still there.
func (b *clientBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.rc.SetReadDeadline(time.Time{})
}

// halt ends a Read that waits for the client, and all after it.
func (b *clientBody) halt() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return
	}
	b.halted = true
	b.rc.SetReadDeadline(time.Unix(1, 0))
}

// wasHalted may be asked of nil, the body of a request that has none.
func (b *clientBody) wasHalted() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.halted
}

var errSlow = shape.Error{Status: http.StatusRequestTimeout, Code: "body_too_slow",
	Message: "the request's body came too slowly, and was given up"}

// errGone is a client that is no longer there to be answered.
var errGone = errors.New("the client has gone")

func tooLarge(limit int64) shape.Error {
	return shape.Error{Status: http.StatusRequestEntityTooLarge, Code: "body_too_large",
		Message: "the request's body is larger than " + thousands(limit) + " bytes, the most that is taken here"}
}

func bodyError(err error) error {
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return errSlow
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errGone
	}
	return shape.Error{Status: http.StatusBadRequest, Code: "bad_body",
		Message: "the request's body cannot be read: its length or its chunks are not as HTTP/1.1 has them"}
}
