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
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/model"
	"github.com/kvcanary/kvcanary/internal/lab/prefix"
)

// Setup is what a node needs to know.
type Setup struct {
	Handoff handoff.Config
	Prefix  prefix.Config // of prefill's cache; its page size is the pools'
	// SlotTokens is how much of a prompt a slot of prefill keeps, tokens, whole
	// pages; 0 is no slots.
	SlotTokens int
	Also       Switches // of what is beside the machines
	Workers    int      // goroutines that compute at the same time, at least 1
	Trace      string   // file that every step of a machine is appended to; empty traces nothing
	// PrefillRate is how many tokens of a prompt are computed in a second at most; 0
	// is as many as can be.
	PrefillRate int
	// DecodeRate is how many steps decode computes in a second at most, each of a
	// token for every answer under way; 0 is as many as can be.
	DecodeRate int
	// Lag is how long a one-sided write takes at most; how long each takes is
	// drawn evenly, so that they end in any order.
	Lag time.Duration
}

// Shape is what both ends of this node's links must agree on.
func (s Setup) Shape() Shape {
	return Shape{
		PageSize:  s.Handoff.PageSize,
		PageBytes: model.CacheBytes(1, s.Handoff.PageSize),
		Context:   s.Handoff.Context,
		Pages:     max(s.Handoff.PrefillPages, s.Handoff.DecodePages),
		OneSided:  s.Handoff.OneSided,
	}
}

const (
	inboxSize = 64   // frames that wait between a link and its node
	turnSize  = 4096 // frames that a node takes before it goes on with its work
)

// node is what prefill and decode have in common.
type node struct {
	setup      Setup
	on         handoff.Defences
	also       Defences
	models     map[string]*model.Model // by adapter
	mem        *Memory
	cache      *model.Cache // of mem
	inbox      chan Inbound
	role       handoff.Role
	peerRole   handoff.Role
	router     *Link
	meeting    Meeting
	peer       *Link  // nil while there is none
	epoch      uint64 // of the acquaintance with it
	acquainted bool   // there has been one
	out        []Frame
	last       Stats
	trace      *Tracer
}

// newNode makes a node that has no peer yet. It owns mem and router from here on.
func newNode(s Setup, m *model.Model, mem *Memory, role, peerRole handoff.Role, router net.Conn, meeting Meeting) *node {
	n := &node{
		setup: s, on: s.Handoff.Switches.On(), also: s.Also.On(), models: map[string]*model.Model{"": m}, mem: mem, cache: mem.cache,
		inbox: make(chan Inbound, inboxSize), role: role, peerRole: peerRole, meeting: meeting,
	}
	n.router = NewLink(router, handoff.ToRouter, s.Shape(), n.inbox)
	return n
}

func (n *node) close() error {
	n.router.Close()
	if n.peer != nil {
		n.peer.Close()
	}
	return errors.Join(n.trace.Close(), n.mem.Close())
}

// worker is what sets prefill and decode apart.
type worker interface {
	step(handoff.Event)          // give the machine an event and do what it says
	take(*Frame)                 // deal with a frame
	met(Peer)                    // there is another peer, of which nothing has come yet
	lost()                       // there is none any more, and the machine knows
	work() bool                  // do one piece of work; false if there is none
	ready() bool                 // could send more if there were a buffer
	due(time.Time) time.Duration // until a write is over; never if negative
	send(time.Time)              // send what there are buffers for
	stats() Stats                // without Epoch
	close() error
}

// run serves until the router hangs up or ctx ends, which both are nil, or
// until the router's link breaks.
func (n *node) run(ctx context.Context, w worker) (err error) {
	defer func() { err = errors.Join(err, w.close()) }()
	wake := time.NewTimer(time.Hour)
	defer wake.Stop()
	busy := false
	for {
		if err := n.receive(ctx, w, busy, wake); err != nil {
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return nil
			}
			return err
		}
		w.send(time.Now())
		n.report(w)
		busy = w.work()
		w.send(time.Now())
		n.report(w)
	}
}

// receive takes what has arrived, and waits for something if there is no work.
func (n *node) receive(ctx context.Context, w worker, busy bool, wake *time.Timer) error {
	if wait := w.due(time.Now()); !busy && wait != 0 {
		var buffer chan []byte
		if n.peer != nil && w.ready() {
			buffer = n.peer.pages
		}
		var alarm <-chan time.Time
		if wait > 0 {
			wake.Reset(wait)
			alarm = wake.C
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case b := <-buffer:
			n.peer.pages <- b
		case <-alarm:
		case p := <-n.meeting.Peers:
			n.meet(w, p)
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
		case p := <-n.meeting.Peers:
			n.meet(w, p)
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
	defer in.Release()
	if in.From != handoff.ToRouter && in.link != n.peer {
		return nil // late, from a peer that is gone
	}
	if in.Err == nil {
		in.Err = n.proper(in)
	}
	switch {
	case in.Err != nil && in.From == handoff.ToRouter:
		return fmt.Errorf("link to %v: %w", in.From, in.Err)
	case in.Err != nil:
		n.losePeer(w)
	case in.Frame.Stats != nil: // nodes do not watch each other
	case in.Frame.Meet != "":
		n.meeting.Call(in.Frame.Meet)
	default:
		w.take(&in.Frame)
	}
	return nil
}

// proper refuses what its sender has no business to send: a machine would take
// it for something that this node itself has seen.
func (n *node) proper(in *Inbound) error {
	f := &in.Frame
	switch {
	case f.Stats != nil:
		return nil
	case f.Meet != "":
		if in.From != handoff.ToRouter || n.meeting.Call == nil {
			return fmt.Errorf("%w: %v has nobody to be met", ErrFrame, in.From)
		}
		return nil
	case !f.Event.Kind.Travels(in.From, n.role):
		return fmt.Errorf("%w: %v is not %v's to send", ErrFrame, f.Event.Kind, in.From)
	}
	if n.with(f.Of.Adapter) == nil {
		return fmt.Errorf("%w: no adapter has the name %.40q", ErrFrame, f.Of.Adapter)
	}
	for _, page := range f.Event.Pages {
		if int(page) >= n.setup.Handoff.DecodePages {
			return fmt.Errorf("%w: page %d of decode's %d", ErrFrame, page, n.setup.Handoff.DecodePages)
		}
	}
	return nil
}

// with is the model under an adapter, nil if there is no such adapter.
func (n *node) with(adapter string) *model.Model {
	m := n.models[adapter]
	if m == nil {
		if m = n.models[""].With(adapter); m != nil {
			n.models[adapter] = m
		}
	}
	return m
}

// report queues changed statistics and then the turn's frames for the router,
// so that who reads an answer's end finds its pages free.
func (n *node) report(w worker) {
	n.trace.Flush()
	s := w.stats()
	s.Epoch = n.epoch
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
