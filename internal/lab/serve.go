package lab

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/model"
	"github.com/kvcanary/kvcanary/internal/lab/node"
)

// patience is how long the parties of an engine wait for each other at its start.
const patience = 20 * time.Second

// greetAsPrefill makes the acquaintance of decode, and maps its pool if writes
// are one-sided. It closes the connection unless it succeeds.
func greetAsPrefill(ctx context.Context, s node.Setup, conn net.Conn, secret []byte) (node.Peer, error) {
	g, err := shake(ctx, conn, s, node.Greeting{Role: handoff.ToPrefill}, handoff.ToDecode, secret)
	peer := node.Peer{Conn: conn, Epoch: g.Epoch}
	if err == nil && g.Epoch == 0 {
		err = fmt.Errorf("%w: decode gives no epoch", node.ErrHandshake)
	}
	if err == nil && s.Handoff.OneSided {
		peer.Memory, err = node.OpenMemory(g.Memory, s.Handoff.DecodePages, s.Handoff.PageSize)
	}
	if err != nil {
		conn.Close()
		return node.Peer{}, fmt.Errorf("prefill to decode: %w", err)
	}
	return peer, nil
}

// servePrefill greets the router and serves with the decodes that come to it
// over peers. The first one comes before it greets the router, so that an
// engine that has started can lose or close either node and know which.
func servePrefill(ctx context.Context, s node.Setup, m *model.Model, router net.Conn, secret []byte,
	first node.Peer, call func(addr string), peers chan node.Peer) error {
	defer router.Close()
	if _, err := shake(ctx, router, s, node.Greeting{Role: handoff.ToPrefill}, handoff.ToRouter, secret); err != nil {
		first.Close()
		return fmt.Errorf("prefill to router: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go hand(ctx, peers, first)
	return node.RunPrefill(ctx, s, m, router, node.Meeting{Peers: peers, Call: call})
}

// hand gives a peer to a node, unless that has ended.
func hand(ctx context.Context, peers chan<- node.Peer, p node.Peer) {
	select {
	case peers <- p:
	case <-ctx.Done():
		p.Close()
	}
}

// serveDecode makes a pool, greets the router and serves with the prefills that
// come to it over peers. addr is where they find it; pool is told where the pool
// lies, before any of them is greeted.
func serveDecode(ctx context.Context, s node.Setup, m *model.Model, router net.Conn, addr string, secret []byte,
	peers chan node.Peer, accepts func(ctx context.Context, pool string)) error {
	defer router.Close()
	mem, path, err := decodeMemory(s)
	if err != nil {
		return err
	}
	if _, err := shake(ctx, router, s, node.Greeting{Role: handoff.ToDecode, Addr: addr}, handoff.ToRouter, secret); err != nil {
		return errors.Join(fmt.Errorf("decode to router: %w", err), mem.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		accepts(ctx, path)
	}()
	err = node.RunDecode(ctx, s, m, mem, router, node.Meeting{Peers: peers})
	cancel()
	<-ended
	return err
}

// decodeMemory is decode's pool, in a file of its own if prefill writes to it.
func decodeMemory(s node.Setup) (*node.Memory, string, error) {
	if !s.Handoff.OneSided {
		return node.NewMemory(s.Handoff.DecodePages, s.Handoff.PageSize), "", nil
	}
	return node.CreateMemory(s.Handoff.DecodePages, s.Handoff.PageSize)
}

// epoch is a number that has not been drawn before.
func epoch() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:]) | 1
}

// decodeGreeting is what decode says to a prefill that calls.
func decodeGreeting(pool string) node.Greeting {
	return node.Greeting{Role: handoff.ToDecode, Epoch: epoch(), Memory: pool}
}

// shake greets the other end of conn, which has to be the role that is
// expected, within the time that there is for it and before ctx ends.
func shake(ctx context.Context, conn net.Conn, s node.Setup, me node.Greeting, peer handoff.Role, secret []byte) (node.Greeting, error) {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return node.Greeting{}, err
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	me.Shape = s.Shape()
	g, err := node.Handshake(conn, me, secret)
	if err == nil && g.Role != peer {
		err = fmt.Errorf("%w: %v answers in place of %v", node.ErrHandshake, g.Role, peer)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	conn.SetDeadline(time.Time{}) // fails if the other end has hung up since, which its link will see
	return g, err
}

// accept waits for the peer to call, and hangs up on anybody else who does.
// Each caller gets a greeting of its own.
func accept(ctx context.Context, l net.Listener, s node.Setup, me func() node.Greeting, peer handoff.Role, secret []byte) (
	conn net.Conn, said, heard node.Greeting, err error) {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var refused error
	for {
		conn, err := l.Accept()
		if err != nil {
			return nil, said, heard, errors.Join(context.Cause(ctx), refused, err)
		}
		said = me()
		if heard, err = shake(ctx, conn, s, said, peer, secret); err == nil {
			return conn, said, heard, nil
		}
		refused = err
		conn.Close()
	}
}
