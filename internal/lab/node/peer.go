package node

import (
	"net"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// Peer is the other node, over a handshaken connection.
type Peer struct {
	Conn net.Conn
	// Epoch numbers this acquaintance: decode draws it, no two are alike, 0 is
	// none. It is in every tag, so that those of an earlier one fit nowhere.
	Epoch uint64
	// Memory is decode's pool, for prefill to write to; nil where pages are messages.
	Memory *Memory
}

// Meeting is how a node comes to know the other one: at the start, and again
// when that one has died and another has taken its place.
type Meeting struct {
	// Peers yields each new acquaintance, which takes the place of the one
	// before. Whoever sends one knows that the process before is dead.
	Peers <-chan Peer
	// Call is asked to make the acquaintance of the decode that listens at addr;
	// nil where it is the other one who calls.
	Call func(addr string)
}

// meet takes to another peer.
func (n *node) meet(w worker, p Peer) {
	n.losePeer(w)
	n.epoch, n.peer = p.Epoch, NewLink(p.Conn, n.peerRole, n.setup.Shape(), n.inbox)
	w.met(p)
	if n.acquainted {
		w.step(handoff.Event{Kind: handoff.Reset})
	}
	n.acquainted = true
}

// losePeer hangs up and lets the machine know.
func (n *node) losePeer(w worker) {
	if n.peer == nil {
		return
	}
	n.peer.Close()
	n.peer, n.epoch = nil, 0
	w.step(handoff.Event{Kind: handoff.PeerLost})
	w.lost()
}

// toPeer sends an event, if there is somebody to send it to.
func (n *node) toPeer(f *Frame) {
	if n.peer != nil {
		n.trace.Flush() // before anybody can see what came of the steps
		n.peer.Send(f)
	}
}

// Close lets go of a peer that no node has taken.
func (p Peer) Close() {
	p.Conn.Close()
	if p.Memory != nil {
		p.Memory.Close()
	}
}
