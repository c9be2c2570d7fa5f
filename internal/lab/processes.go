package lab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/node"
)

// grace is how long a node's process gets to end by itself.
const grace = 2 * time.Second

// StartProcesses starts an engine whose nodes are processes of their own,
// linked over TCP on the loopback interface. Each node is exe with args, which
// has to call [RunNode]; what it has to know comes over its standard input, so
// the links' secret shows in no process list.
//
// The engine ends when one of the nodes does, unless it is to restart them. The
// nodes end when this process does, however it ends.
func StartProcesses(cfg Config, exe string, args ...string) (e *Engine, err error) {
	setup, trace, err := begin(cfg)
	if err != nil {
		return nil, err
	}
	s := &spawner{setup: setup, exe: exe, args: args, secret: make([]byte, 32)}
	defer func() {
		if e == nil {
			err = errors.Join(err, trace.Close())
		}
	}()
	rand.Read(s.secret) // never fails
	ctx := context.Background()
	decode, err := s.start(ctx, handoff.ToDecode, "")
	if err != nil {
		return nil, err
	}
	prefill, err := s.start(ctx, handoff.ToPrefill, decode.addr)
	if err != nil {
		decode.conn.Close()
		return nil, errors.Join(err, decode.end())
	}
	k := newKeeper(s, prefill, decode)
	if cfg.Restart {
		e = newEngine(cfg, setup, trace, prefill.conn, decode.conn, k.stop, k)
	} else {
		e = newEngine(cfg, setup, trace, prefill.conn, decode.conn, k.stop, nil)
	}
	k.serve(e)
	return e, nil
}

// Pids are the processes of the nodes by role; empty if they have none of their own.
func (e *Engine) Pids() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.pids)
}

type spawner struct {
	setup  node.Setup
	secret []byte
	exe    string
	args   []string
}

// child is a node's process that has greeted the router.
type child struct {
	*process
	conn net.Conn
	addr string // where decode listens
}

// orders is what a node's process is told, as one line of JSON.
type orders struct {
	Role   handoff.Role
	Setup  node.Setup
	Secret string // hexadecimal
	Router string // address
	Decode string // address, for prefill
}

// start starts a node and waits until it has greeted the router, where nobody
// else is expected.
func (s *spawner) start(ctx context.Context, role handoff.Role, decode string) (*child, error) {
	router, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("router: %w", err)
	}
	defer router.Close()
	line, err := json.Marshal(orders{
		Role: role, Setup: s.setup, Secret: hex.EncodeToString(s.secret),
		Router: router.Addr().String(), Decode: decode,
	})
	if err != nil {
		return nil, err
	}
	p, err := startProcess(append(line, '\n'), s.exe, s.args...)
	if err != nil {
		return nil, fmt.Errorf("%v node: %w", role, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("it does not call back in time"))
	defer cancel()
	go func() {
		select {
		case <-p.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	me := func() node.Greeting { return node.Greeting{Role: handoff.ToRouter} }
	conn, _, heard, err := accept(ctx, router, s.setup, me, role, s.secret)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%v node: %w", role, err), p.end())
	}
	return &child{p, conn, heard.Addr}, nil
}
