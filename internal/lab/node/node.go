// Package node runs one machine of the handoff with a model, a KV cache and
// links to the other roles.
//
// One goroutine a node owns all of its state and does one small piece of work
// a turn: it takes what has arrived, computes a chunk of a prompt or one token
// of every answer, sends what there are buffers for, and reports. Requests
// come and go between turns, which is continuous batching.
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/model"
)

// Setup is what a node needs to know.
type Setup struct {
	Handoff handoff.Config
	Workers int    // goroutines that compute at the same time, at least 1
	Trace   string // file that every step of a machine is appended to; empty traces nothing
}

// Shape is what both ends of this node's links must agree on.
func (s Setup) Shape() Shape {
	return Shape{
		PageSize:  s.Handoff.PageSize,
		PageBytes: model.CacheBytes(1, s.Handoff.PageSize),
		Context:   s.Handoff.Context,
		Pages:     max(s.Handoff.PrefillPages, s.Handoff.DecodePages),
	}
}

const (
	inboxSize = 64   // frames that wait between a link and its node
	turnSize  = 4096 // frames that a node takes before it goes on with its work
)

// node is what prefill and decode have in common.
type node struct {
	setup  Setup
	model  *model.Model
	cache  *model.Cache
	inbox  chan Inbound
	router *Link
	peer   *Link
	lost   bool    // the link to the peer has ended
	out    []Frame // for the router, held until the turn's report is queued
	last   Stats
	trace  *Tracer
}

func newNode(s Setup, m *model.Model, pages int, router, peer net.Conn, peerRole handoff.Role) *node {
	n := &node{setup: s, model: m, cache: model.NewCache(pages, s.Handoff.PageSize), inbox: make(chan Inbound, inboxSize)}
	n.router = NewLink(router, handoff.ToRouter, s.Shape(), n.inbox)
	n.peer = NewLink(peer, peerRole, s.Shape(), n.inbox)
	return n
}

func (n *node) close() {
	n.router.Close()
	n.peer.Close()
	n.trace.Close()
}

// worker is what sets prefill and decode apart.
type worker interface {
	take(*Frame)  // deal with a frame
	work() bool   // do one piece of work; false if there is none
	ready() bool  // could send more if there were a buffer
	send()        // send what there are buffers for
	stats() Stats // without PeerLost
}

// run serves until the router hangs up or ctx ends, which both are nil, or
// until the router's link breaks.
func (n *node) run(ctx context.Context, w worker) error {
	defer n.close()
	busy := false
	for {
		if err := n.receive(ctx, w, busy); err != nil {
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return nil
			}
			return err
		}
		w.send()
		n.report(w)
		busy = w.work()
		w.send()
		n.report(w)
	}
}

// receive takes what has arrived, and waits for something if there is no work.
func (n *node) receive(ctx context.Context, w worker, busy bool) error {
	if !busy {
		var buffer chan []byte
		if w.ready() {
			buffer = n.peer.pages
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case b := <-buffer:
			n.peer.pages <- b
		case in := <-n.inbox:
			if err := n.accept(w, &in); err != nil {
				return err
			}
		}
	}
	for range turnSize {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case in := <-n.inbox:
			if err := n.accept(w, &in); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

func (n *node) accept(w worker, in *Inbound) error {
	switch {
	case in.Err != nil && in.From == handoff.ToRouter:
		return fmt.Errorf("link to %v: %w", in.From, in.Err)
	case in.Err != nil:
		n.lost = true
	case in.Frame.Stats != nil: // nodes do not watch each other
	default:
		w.take(&in.Frame)
		in.Release()
	}
	return nil
}

// report queues changed statistics and then the turn's frames for the router,
// so that who reads an answer's end finds its pages free.
func (n *node) report(w worker) {
	n.trace.Flush() // before anybody can see what came of the steps
	s := w.stats()
	s.PeerLost = n.lost
	if s != n.last {
		n.last = s
		n.router.Report(s)
	}
	for i := range n.out {
		n.router.Send(&n.out[i])
	}
	n.out = n.out[:0]
}

func (n *node) tell(e handoff.Event) { n.out = append(n.out, Frame{Event: e}) }

func unknown(a handoff.Action) {
	panic(fmt.Sprintf("kvcanary: internal error: a node cannot do %v for %v", a.Kind, a.To))
}
