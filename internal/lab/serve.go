package lab

import (
	"context"
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

// servePrefill makes the acquaintance of both others and serves. It greets the
// router last: by then the nodes have met, so that an engine that has started
// can lose or close either and know which.
func servePrefill(ctx context.Context, s node.Setup, m *model.Model, router, decode net.Conn, secret []byte) error {
	defer router.Close()
	defer decode.Close()
	if _, err := shake(ctx, decode, s, handoff.ToPrefill, handoff.ToDecode, "", secret); err != nil {
		return fmt.Errorf("prefill to decode: %w", err)
	}
	if _, err := shake(ctx, router, s, handoff.ToPrefill, handoff.ToRouter, "", secret); err != nil {
		return fmt.Errorf("prefill to router: %w", err)
	}
	return node.RunPrefill(ctx, s, m, router, decode)
}

// serveDecode makes the acquaintance of the router, then of prefill, which
// meet waits for, and serves. addr is where prefill finds it.
func serveDecode(ctx context.Context, s node.Setup, m *model.Model, router net.Conn, addr string, secret []byte,
	meet func() (net.Conn, error)) error {
	defer router.Close()
	if _, err := shake(ctx, router, s, handoff.ToDecode, handoff.ToRouter, addr, secret); err != nil {
		return fmt.Errorf("decode to router: %w", err)
	}
	prefill, err := meet()
	if err != nil {
		return fmt.Errorf("decode to prefill: %w", err)
	}
	return node.RunDecode(ctx, s, m, router, prefill)
}

// shake greets the other end of conn, which has to be the role that is
// expected, within the time that there is for it and before ctx ends.
func shake(ctx context.Context, conn net.Conn, s node.Setup, me, peer handoff.Role, addr string, secret []byte) (node.Greeting, error) {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return node.Greeting{}, err
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	g, err := node.Handshake(conn, node.Greeting{Role: me, Shape: s.Shape(), Addr: addr}, secret)
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
func accept(ctx context.Context, l net.Listener, s node.Setup, me, peer handoff.Role, secret []byte) (net.Conn, node.Greeting, error) {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var refused error
	for {
		conn, err := l.Accept()
		if err != nil {
			return nil, node.Greeting{}, errors.Join(context.Cause(ctx), refused, err)
		}
		g, err := shake(ctx, conn, s, me, peer, "", secret)
		if err == nil {
			return conn, g, nil
		}
		refused = err
		conn.Close()
	}
}
