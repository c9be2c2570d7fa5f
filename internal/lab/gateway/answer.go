package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// answer is one request's way back to its client.
type answer struct {
	out     chan lab.Event
	ctx     context.Context
	closing <-chan struct{}

	cached int // tokens of the prompt that were not computed

	keep  bool        // for the cache
	kept  []byte      // tokens so far, if they are kept
	done  *lab.Done   // how it ended, if it ended well
	ended atomic.Bool // the last event has come
}

// take passes on what an event of a stream says.
func (a *answer) take(m message) error {
	if a.ended.Load() {
		return nil
	}
	switch m.event {
	case eventCached:
		if err := json.Unmarshal(m.data, &a.cached); err != nil {
			return fmt.Errorf("what was cached is not to be read: %w", err)
		}
		return nil
	case eventDone:
		var d lab.Done
		if err := json.Unmarshal(m.data, &d); err != nil {
			return fmt.Errorf("its end is not to be read: %w", err)
		}
		a.done = &d
		a.end(lab.Event{Done: &d})
		return nil
	case eventError:
		var e lab.Error
		if err := json.Unmarshal(m.data, &e); err != nil {
			return fmt.Errorf("its error is not to be read: %w", err)
		}
		a.end(lab.Event{Error: &e})
		return nil
	}
	for _, token := range m.data {
		if err := a.send(lab.Event{Token: token, Cached: a.cached}); err != nil {
			return err
		}
	}
	if a.keep {
		a.kept = append(a.kept, m.data...)
	}
	return nil
}

// send waits until the client takes an event, or is gone.
func (a *answer) send(e lab.Event) error {
	select {
	case a.out <- e:
		return nil
	case <-a.ctx.Done():
		return a.ctx.Err()
	case <-a.closing:
		return errClosing
	}
}

// end sends the last event. What is left of the answer is read all the same:
// to have it is a reason for a client to go.
func (a *answer) end(e lab.Event) {
	a.ended.Store(true)
	switch err := a.send(e); {
	case errors.Is(err, errClosing):
		a.fail(closed)
	case err != nil:
		a.fail(clientGone)
	}
}

// whenGone calls f if the client goes before the last event has come. Once the
// function that it returns has returned, f is not running and will not.
func (a *answer) whenGone(f func()) (wait func()) {
	ran := make(chan struct{})
	stop := context.AfterFunc(a.ctx, func() {
		defer close(ran)
		if !a.ended.Load() {
			f()
		}
	})
	return func() {
		if !stop() {
			<-ran
		}
	}
}

// fail leaves an error as the last event, in place of what a client that does
// not read has not read.
func (a *answer) fail(err *lab.Error) {
	a.ended.Store(true)
	for {
		select {
		case a.out <- lab.Event{Error: err}:
			return
		default:
		}
		select {
		case <-a.out:
		default:
		}
	}
}
