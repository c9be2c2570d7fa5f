package node

import (
	"context"
	"net"
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/model"
)

var forgedSetup = Setup{Handoff: handoff.Config{Context: 64, PageSize: 4, PrefillPages: 8, DecodePages: 8}, Workers: 1}

// liar is a peer, or a router, that says whatever comes to its mind.
type liar struct {
	link  *Link
	inbox chan Inbound
}

func newLiar(conn net.Conn, peer handoff.Role) *liar {
	l := &liar{inbox: make(chan Inbound, 1000)}
	l.link = NewLink(conn, peer, forgedSetup.Shape(), l.inbox)
	return l
}

// says draws an event of one of the kinds, about few rooms and pages, so that
// it often fits something.
func (l *liar) says(t *rapid.T, kinds []handoff.Kind) *Frame {
	small := rapid.IntRange(0, 9)
	e := handoff.Event{
		Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Room: handoff.Room(rapid.IntRange(1, 4).Draw(t, "room")),
		Tokens: 1 + small.Draw(t, "tokens"), MaxNew: 1 + small.Draw(t, "max"), Sent: small.Draw(t, "sent"), Index: small.Draw(t, "index"),
		To: int32(rapid.IntRange(0, 7).Draw(t, "to")), Gen: uint64(small.Draw(t, "gen")), Stop: rapid.Bool().Draw(t, "stop"),
	}
	f := &Frame{Event: e}
	switch e.Kind {
	case handoff.Reserved:
		f.Event.Pages = rapid.SliceOfN(rapid.Int32Range(0, 7), 0, 8).Draw(t, "pages")
	case handoff.Page:
		f.Data = make([]byte, forgedSetup.Shape().PageBytes)
	case handoff.Meta:
		if f.Event.Summed = rapid.Bool().Draw(t, "summed"); f.Event.Summed {
			f.Data = make([]byte, sumBytes)
		}
	}
	return f
}

func (l *liar) send(f *Frame) {
	if f.Event.Kind != handoff.Page {
		l.link.Send(f)
		return
	}
	for !l.link.SendPage(f) {
		b := <-l.link.pages
		l.link.pages <- b
	}
}

// A node takes whatever its peer may send, in any order and number, and then
// serves on: it ends when the router hangs up, and not before.
func TestNodesTakeWhatAPeerMaySend(t *testing.T) {
	m := model.New()
	rapid.Check(t, func(t *rapid.T) {
		role := rapid.SampledFrom([]handoff.Role{handoff.ToPrefill, handoff.ToDecode}).Draw(t, "role")
		routerHere, routerThere := net.Pipe()
		peerHere, peerThere := net.Pipe()
		peers, ended := make(chan Peer, 1), make(chan error, 1)
		peers <- Peer{Conn: peerHere, Epoch: 1}
		meeting := Meeting{Peers: peers, Call: func(string) {}}
		kinds := []handoff.Kind{handoff.Reserved, handoff.Ack, handoff.Quiesce}
		go func() {
			if role == handoff.ToPrefill {
				ended <- RunPrefill(context.Background(), forgedSetup, m, routerHere, meeting)
			} else {
				ended <- RunDecode(context.Background(), forgedSetup, m, NewMemory(8, 4), routerHere, meeting)
			}
		}()
		if role == handoff.ToDecode {
			kinds = []handoff.Kind{handoff.Hello, handoff.Page, handoff.Meta, handoff.Gone}
		}
		router, peer := newLiar(routerThere, role), newLiar(peerThere, role)
		next := handoff.Room(1)
		for range rapid.IntRange(0, 60).Draw(t, "frames") {
			switch rapid.IntRange(0, 5).Draw(t, "from") {
			case 0:
				n := rapid.IntRange(1, 12).Draw(t, "length")
				router.send(&Frame{Event: handoff.Event{Kind: handoff.Submit, Room: next, Tokens: n, MaxNew: 3}, Data: make([]byte, n)})
				next++
			case 1:
				router.send(&Frame{Event: handoff.Event{Kind: handoff.Abort, Room: handoff.Room(rapid.IntRange(1, 4).Draw(t, "room"))}})
			default:
				peer.send(peer.says(t, kinds))
			}
		}
		router.link.Close()
		if err := <-ended; err != nil {
			t.Fatalf("%v ends with %v", role, err)
		}
		peer.link.Close()
	})
}

// A peer that sends what a node only hears from itself is hung up on.
func TestNodesHangUpOnForgeries(t *testing.T) {
	m := model.New()
	for _, kind := range []handoff.Kind{handoff.Stepped, handoff.Verified, handoff.Submit, handoff.Token, handoff.Reset, handoff.Put} {
		routerHere, routerThere := net.Pipe()
		peerHere, peerThere := net.Pipe()
		peers, ended := make(chan Peer, 1), make(chan error, 1)
		peers <- Peer{Conn: peerHere, Epoch: 1}
		go func() {
			ended <- RunDecode(context.Background(), forgedSetup, m, NewMemory(8, 4), routerHere, Meeting{Peers: peers})
		}()
		router, peer := newLiar(routerThere, handoff.ToDecode), newLiar(peerThere, handoff.ToDecode)
		if in := <-router.inbox; in.Frame.Stats == nil || in.Frame.Stats.Epoch != 1 {
			t.Fatalf("decode says %+v", in.Frame)
		}
		peer.send(&Frame{Event: handoff.Event{Kind: kind, Room: 1}})
		if in := <-peer.inbox; in.Err == nil {
			t.Errorf("%v: got %+v", kind, in.Frame)
		}
		if in := <-router.inbox; in.Frame.Stats == nil || in.Frame.Stats.Epoch != 0 {
			t.Errorf("%v: decode says %+v", kind, in.Frame)
		}
		router.link.Close()
		if err := <-ended; err != nil {
			t.Errorf("%v: decode ends with %v", kind, err)
		}
		peer.link.Close()
	}
}
