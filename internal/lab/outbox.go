package lab

import (
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// outbox is where the tokens of all answers wait between decode and the router,
// as they do for a detokenizer that is a process of its own. With fault
// id_reuse it is there, and what waits in it for a request that was cancelled is
// found by the next of the same name.
type outbox struct {
	queue chan waiting
}

type waiting struct {
	since time.Time
	event handoff.Event
}

// outputLag is how long a token waits there: some tens of tokens, as many as
// engines detokenize at once under load.
const outputLag = 20 * time.Millisecond

// outboxSize is how many may wait; then decode does.
const outboxSize = 1 << 14

// newOutbox makes one if it is asked for; nil passes everything on at once.
func newOutbox(wanted bool) *outbox {
	if !wanted {
		return nil
	}
	return &outbox{queue: make(chan waiting, outboxSize)}
}

// put has an event wait behind those that wait already.
func (o *outbox) put(e handoff.Event, closing <-chan struct{}) {
	select {
	case o.queue <- waiting{time.Now(), e}:
	case <-closing:
	}
}

// run passes on what has waited long enough, until closing.
func (o *outbox) run(pass func(handoff.Event), closing <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case w := <-o.queue:
			timer.Reset(outputLag - time.Since(w.since))
			select {
			case <-timer.C:
				pass(w.event)
			case <-closing:
				return
			}
		case <-closing:
			return
		}
	}
}
