package lab

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/model"
	"github.com/kvcanary/kvcanary/internal/lab/node"
)

// RunNode is the life of a process that [StartProcesses] has started: it reads
// its orders from stdin, serves as the node that they say, and returns when
// the router hangs up or stdin ends, which it does when the parent dies. It
// takes stdin over; a read of it may still be under way on return.
func RunNode(ctx context.Context, stdin io.Reader) error {
	in := bufio.NewReader(io.LimitReader(stdin, 1<<16))
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("a lab node is started by kvcanary lab, with orders on standard input: %w", err)
	}
	var o orders
	if err := json.Unmarshal(line, &o); err != nil {
		return fmt.Errorf("lab node: orders: %w", err)
	}
	secret, err := hex.DecodeString(o.Secret)
	if err != nil || len(secret) == 0 {
		return errors.New("lab node: orders without a secret")
	}
	if err := o.Setup.Handoff.Validate(); err != nil {
		return fmt.Errorf("lab node: orders: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		io.Copy(io.Discard, in)
		cancel()
	}()
	if err := o.run(ctx, secret); err != nil && ctx.Err() == nil {
		return fmt.Errorf("lab node: %w", err)
	}
	return nil
}

func (o orders) run(ctx context.Context, secret []byte) error {
	switch o.Role {
	case handoff.ToPrefill:
		return o.prefill(ctx, secret)
	case handoff.ToDecode:
		return o.decode(ctx, secret)
	}
	return fmt.Errorf("orders for %v, which is no node", o.Role)
}

func (o orders) prefill(ctx context.Context, secret []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	meet := func(addr string) (node.Peer, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return node.Peer{}, fmt.Errorf("prefill to decode: %w", err)
		}
		return greetAsPrefill(ctx, o.Setup, conn, secret)
	}
	var d net.Dialer
	router, err := d.DialContext(ctx, "tcp", o.Router)
	if err != nil {
		return fmt.Errorf("prefill to router: %w", err)
	}
	first, err := meet(o.Decode)
	if err != nil {
		router.Close()
		return err
	}
	peers := make(chan node.Peer)
	return servePrefill(ctx, o.Setup, model.New(), router, secret, first, func(addr string) {
		calls.Go(func() {
			if peer, err := meet(addr); err == nil { // else it has died, and another will be there to meet
				hand(ctx, peers, peer)
			}
		})
	}, peers)
}

func (o orders) decode(ctx context.Context, secret []byte) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	var d net.Dialer
	router, err := d.DialContext(ctx, "tcp", o.Router)
	if err != nil {
		return fmt.Errorf("decode to router: %w", err)
	}
	peers := make(chan node.Peer)
	return serveDecode(ctx, o.Setup, model.New(), router, l.Addr().String(), secret, peers, func(ctx context.Context, pool string) {
		for {
			conn, said, _, err := accept(ctx, l, o.Setup, func() node.Greeting { return decodeGreeting(pool) }, handoff.ToPrefill, secret)
			if err != nil {
				return // nobody can call any more
			}
			hand(ctx, peers, node.Peer{Conn: conn, Epoch: said.Epoch})
		}
	})
}
