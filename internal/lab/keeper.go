package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/node"
)

// keeper owns the processes of the nodes and, where the engine is to go on
// without them, starts those that die anew: a node whose process ends or whose
// link breaks, and prefill if the link between the nodes breaks. The other node
// learns of a new one only when the old process is known to be dead, so that
// nothing of it can still be written.
type keeper struct {
	spawn *spawner
	e     *Engine
	ctx   context.Context // ends with the engine
	end   context.CancelFunc
	done  chan struct{} // closed when nothing is repaired any more; nil if nothing ever is
	wake  chan struct{}

	mu       sync.Mutex
	children map[handoff.Role]*child
	bad      map[handoff.Role]bool
}

const (
	retries = 20                     // starts of a node that may fail in a row
	pause   = 100 * time.Millisecond // between them; and how long a node may be seen to have lost the other before that one is seen to be dead
)

func newKeeper(s *spawner, prefill, decode *child) *keeper {
	k := &keeper{
		spawn: s, wake: make(chan struct{}, 1), bad: map[handoff.Role]bool{},
		children: map[handoff.Role]*child{handoff.ToPrefill: prefill, handoff.ToDecode: decode},
	}
	k.ctx, k.end = context.WithCancel(context.Background())
	return k
}

// serve watches over the nodes of an engine.
func (k *keeper) serve(e *Engine) {
	k.e = e
	e.mu.Lock()
	e.pids = map[string]int{}
	e.mu.Unlock()
	for role, c := range k.children {
		k.watch(role, c)
	}
	if e.keep == k {
		k.done = make(chan struct{})
		go k.run()
	}
}

// watch tells when a node's process ends, which may be seen here before it
// shows on a link.
func (k *keeper) watch(role handoff.Role, c *child) {
	k.e.mu.Lock()
	k.e.pids[role.String()] = c.pid()
	k.e.mu.Unlock()
	go func() {
		<-c.ended
		k.mu.Lock()
		current := k.children[role] == c
		k.mu.Unlock()
		if current {
			k.e.gone(role)
		}
	}()
}

// report notes that a node has to be replaced.
func (k *keeper) report(role handoff.Role) {
	k.mu.Lock()
	k.bad[role] = true
	k.mu.Unlock()
	k.nudge()
}

func (k *keeper) nudge() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// take is the set of nodes to be replaced now.
func (k *keeper) take() map[handoff.Role]bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	bad := k.bad
	k.bad = map[handoff.Role]bool{}
	return bad
}

func (k *keeper) run() {
	defer close(k.done)
	if bad := k.acquaint(); len(bad) > 0 {
		k.repair(bad)
	}
	for {
		select {
		case <-k.e.closing:
			return
		case <-k.wake:
		}
		bad := k.take()
		if len(bad) == 0 && !k.met() {
			bad = k.parted()
		}
		if len(bad) > 0 {
			k.repair(bad)
		}
	}
}

// met reports whether both nodes know each other.
func (k *keeper) met() bool {
	k.e.mu.Lock()
	defer k.e.mu.Unlock()
	p, d := k.e.stats[handoff.ToPrefill], k.e.stats[handoff.ToDecode]
	return p.Epoch == d.Epoch && p.Epoch != 0
}

// parted waits for what has parted the nodes to be seen. If nothing is, their
// link has broken, and prefill has to go: what it may still write must end.
func (k *keeper) parted() map[handoff.Role]bool {
	for range 10 {
		k.sleep()
		if bad := k.take(); len(bad) > 0 || k.met() {
			return bad
		}
	}
	return map[handoff.Role]bool{handoff.ToPrefill: true}
}

func (k *keeper) sleep() {
	select {
	case <-time.After(pause):
	case <-k.e.closing:
	}
}

// repair ends all requests, replaces nodes until there are two that know each
// other, and opens the door again.
func (k *keeper) repair(bad map[handoff.Role]bool) {
	lost := map[handoff.Role]bool{}
	for failed := 0; ; {
		for role := range bad {
			lost[role] = true
			k.bury(role)
		}
		err := k.replace(bad)
		switch {
		case k.ctx.Err() != nil:
			return
		case err == nil:
			bad = k.acquaint()
		case failed == retries:
			k.e.lose(lossOf(handoff.ToDecode).Reason, fmt.Errorf("a node cannot be started again: %w", err))
			return
		default:
			failed++
			k.sleep()
		}
		for role := range k.take() {
			bad[role] = true
		}
		if len(bad) == 0 {
			break
		}
	}
	for role := range lost {
		k.e.tell(handoff.Reset, role)
	}
}

// bury tells the router that a node is gone and sees to it that it is.
func (k *keeper) bury(role handoff.Role) {
	k.e.tell(handoff.PeerLost, role)
	k.e.detach(role)
	k.mu.Lock()
	c := k.children[role]
	delete(k.children, role)
	delete(k.bad, role) // its process and its link both tell
	k.mu.Unlock()
	if c == nil {
		return
	}
	c.kill()
	if k.e.cfg.Replaced != nil {
		k.e.cfg.Replaced(role.String(), c.died())
	}
}

// replace starts those of the nodes that are not there, decode first, and takes
// them off the list.
func (k *keeper) replace(bad map[handoff.Role]bool) error {
	for _, role := range []handoff.Role{handoff.ToDecode, handoff.ToPrefill} {
		if !bad[role] {
			continue
		}
		c, err := k.spawn.start(k.ctx, role, k.addr())
		if err != nil {
			return err
		}
		k.mu.Lock()
		k.children[role] = c
		k.mu.Unlock()
		k.e.attach(role, c.conn)
		k.watch(role, c)
		if role == handoff.ToDecode && !bad[handoff.ToPrefill] {
			k.e.mu.Lock()
			k.e.send(handoff.ToPrefill, &node.Frame{Meet: c.addr})
			k.e.mu.Unlock()
		}
		delete(bad, role)
	}
	return nil
}

// addr is where decode listens.
func (k *keeper) addr() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.children[handoff.ToDecode]; c != nil {
		return c.addr
	}
	return ""
}

// acquaint waits until the nodes know each other; it returns who has to be
// replaced because they do not.
func (k *keeper) acquaint() map[handoff.Role]bool {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		if bad := k.take(); len(bad) > 0 || k.met() {
			return bad
		}
		select {
		case <-k.wake:
		case <-timeout.C:
			return map[handoff.Role]bool{handoff.ToPrefill: true}
		case <-k.e.closing:
			return map[handoff.Role]bool{}
		}
	}
}

// stop ends the processes. The engine has closed by then.
func (k *keeper) stop() error {
	k.end()
	if k.done != nil {
		<-k.done
		k.e.detach(handoff.ToPrefill)
		k.e.detach(handoff.ToDecode)
	}
	k.mu.Lock()
	children := k.children
	k.mu.Unlock()
	var err error
	for _, role := range []handoff.Role{handoff.ToPrefill, handoff.ToDecode} {
		if c := children[role]; c != nil {
			err = errors.Join(err, c.end())
		}
	}
	return err
}
