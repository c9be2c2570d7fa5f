package wire

import (
	"context"
	"errors"
	"io"
	"net/http/httptrace"
	"sync"
	"time"
)

// errLeft ends an exchange whose client goes away by itself.
var errLeft = errors.New("the client went away on purpose")

// Any reports whether the client goes away at all.
func (h Hangup) Any() bool { return h.Sent || h.Text > 0 }

// leaver hangs up at the moment that a request names.
type leaver struct {
	Hangup
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	ended bool
	timer *time.Timer
}

// newLeaver returns the context of an exchange whose client may go away.
func newLeaver(ctx context.Context, h Hangup) (context.Context, *leaver) {
	ctx, cancel := context.WithCancelCause(ctx)
	l := &leaver{Hangup: h, cancel: cancel}
	if h.Sent {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: l.sent})
	}
	return ctx, l
}

// sent is told that the whole request is on its way.
func (l *leaver) sent(i httptrace.WroteRequestInfo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case i.Err != nil || l.ended:
	case l.After <= 0:
		l.cancel(errLeft)
	default:
		l.timer = time.AfterFunc(l.After, func() { l.cancel(errLeft) })
	}
}

// shown is told how much text has come, bytes. It reports whether the client
// is gone now.
func (l *leaver) shown(text int) bool {
	if l.Text <= 0 || text < l.Text {
		return false
	}
	l.cancel(errLeft)
	return true
}

func (l *leaver) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.cancel(nil)
}

// paceChunk is the most that a slow reader takes at a time, bytes: about one
// event of a stream.
const paceChunk = 256

// paced reads slowly, so that the answer backs up to the target.
type paced struct {
	ctx   context.Context
	src   io.Reader
	pause time.Duration
}

func (p *paced) Read(b []byte) (int, error) {
	t := time.NewTimer(p.pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.ctx.Done():
		return 0, context.Cause(p.ctx)
	}
	return p.src.Read(b[:min(len(b), paceChunk)])
}
