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

// servePrefill makes the acquaintance of both others and serves.
func servePrefill(ctx context.Context, s node.Setup, m *model.Model, router, decode net.Conn, secret []byte) error {
	defer router.Close()
	defer decode.Close()
	if _, err := shake(router, s, handoff.ToPrefill, handoff.ToRouter, "", secret); err != nil {
		return fmt.Errorf("prefill to router: %w", err)
	}
	if _, err := shake(decode, s, handoff.ToPrefill, handoff.ToDecode, "", secret); err != nil {
		return fmt.Errorf("prefill to decode: %w", err)
	}
	return node.RunPrefill(ctx, s, m, router, decode)
}

// serveDecode makes the acquaintance of both others and serves.
func serveDecode(ctx context.Context, s node.Setup, m *model.Model, router, prefill net.Conn, secret []byte, addr string) error {
	defer router.Close()
	defer prefill.Close()
	if _, err := shake(router, s, handoff.ToDecode, handoff.ToRouter, addr, secret); err != nil {
		return fmt.Errorf("decode to router: %w", err)
	}
	if _, err := shake(prefill, s, handoff.ToDecode, handoff.ToPrefill, "", secret); err != nil {
		return fmt.Errorf("decode to prefill: %w", err)
	}
	return node.RunDecode(ctx, s, m, router, prefill)
}

// shake greets the other end of conn, which has to be the role that is
// expected, within the time that there is for it.
func shake(conn net.Conn, s node.Setup, me, peer handoff.Role, addr string, secret []byte) (node.Greeting, error) {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return node.Greeting{}, err
	}
	g, err := node.Handshake(conn, node.Greeting{Role: me, Shape: s.Shape(), Addr: addr}, secret)
	if err == nil && g.Role != peer {
		err = fmt.Errorf("%w: %v answers in place of %v", node.ErrHandshake, g.Role, peer)
	}
	return g, errors.Join(err, conn.SetDeadline(time.Time{}))
}
