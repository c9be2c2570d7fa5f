package lab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
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
// The engine ends when one of the nodes does. The nodes end when this process
// does, however it ends.
func StartProcesses(cfg Config, exe string, args ...string) (e *Engine, err error) {
	setup, err := cfg.setup()
	if err != nil {
		return nil, err
	}
	trace, err := startTrace(setup)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e == nil {
			err = errors.Join(err, trace.Close())
		}
	}()
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	router, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("router: %w", err)
	}
	defer router.Close()
	s := spawner{setup: setup, secret: secret, router: router, exe: exe, args: args}

	decode, toDecode, addr, err := s.start(handoff.ToDecode, "")
	if err != nil {
		return nil, err
	}
	prefill, toPrefill, _, err := s.start(handoff.ToPrefill, addr)
	if err != nil {
		toDecode.Close()
		return nil, errors.Join(err, decode.end())
	}
	e = newEngine(cfg, setup, trace, toPrefill, toDecode, func() error {
		return errors.Join(prefill.end(), decode.end())
	})
	e.pids = map[string]int{"prefill": prefill.pid(), "decode": decode.pid()}
	go e.watch(prefill, handoff.ToPrefill)
	go e.watch(decode, handoff.ToDecode)
	return e, nil
}

// Pids are the processes of the nodes by role; empty if they have none of their own.
func (e *Engine) Pids() map[string]int { return e.pids }

// watch ends the engine when a node's process ends, which may be seen here
// before it shows on a link.
func (e *Engine) watch(p *process, role handoff.Role) {
	<-p.ended
	e.gone(role)
}

type spawner struct {
	setup  node.Setup
	secret []byte
	router net.Listener
	exe    string
	args   []string
}

// orders is what a node's process is told, as one line of JSON.
type orders struct {
	Role   handoff.Role
	Setup  node.Setup
	Secret string // hexadecimal
	Router string // address
	Decode string // address, for prefill
}

// start starts a node and waits until it has greeted the router; addr is where
// it listens.
func (s *spawner) start(role handoff.Role, decode string) (p *process, conn net.Conn, addr string, err error) {
	line, err := json.Marshal(orders{
		Role: role, Setup: s.setup, Secret: hex.EncodeToString(s.secret),
		Router: s.router.Addr().String(), Decode: decode,
	})
	if err != nil {
		return nil, nil, "", err
	}
	if p, err = startProcess(append(line, '\n'), s.exe, s.args...); err != nil {
		return nil, nil, "", fmt.Errorf("%v node: %w", role, err)
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, errors.New("it does not call back in time"))
	defer cancel()
	go func() {
		select {
		case <-p.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	conn, g, err := accept(ctx, s.router, s.setup, handoff.ToRouter, role, s.secret)
	if err != nil {
		return nil, nil, "", errors.Join(fmt.Errorf("%v node: %w", role, err), p.end())
	}
	return p, conn, g.Addr, nil
}
