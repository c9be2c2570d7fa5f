package explore

import (
	"errors"
	"fmt"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

var errNowhere = errors.New("an event out of nowhere")

// allowed says whether an event could happen: it was sent and is next, or the
// node was asked for it. It returns the request that a message is about.
func (c *checker) allowed(l *line) (req int, err error) {
	if from := senders(l.by, l.in.Kind); from != nil {
		for _, role := range from {
			if m, ok := c.post(role, l.by, l.in.Kind).receive(l.inText); ok {
				return m.req, nil
			}
		}
		return 0, fmt.Errorf("%w: %v receives %v, which was not sent or is not next", errNowhere, l.by, l.in)
	}
	ok := false
	switch l.by {
	case handoff.ToRouter:
		return 0, c.around(l.in)
	case handoff.ToPrefill:
		ok = c.source.allows(l.in)
	case handoff.ToDecode:
		ok = c.pages.allows(l.in)
	}
	if l.in.Kind == handoff.PeerLost || l.in.Kind == handoff.Reset {
		ok = l.by == handoff.ToPrefill || l.by == handoff.ToDecode
	}
	if !ok {
		return 0, fmt.Errorf("%w: %v was not asked for %v", errNowhere, l.by, l.in)
	}
	return 0, nil
}

// around checks an event from a client, a clock, or the engine itself.
func (c *checker) around(e handoff.Event) error {
	switch e.Kind {
	case handoff.Open:
		if room, ok := c.router.Mint(e.Room); !ok || room != e.Room {
			return fmt.Errorf("%w: a request is opened as room %d where room %d is next", errNowhere, e.Room, room)
		}
		c.report.Requests++
	case handoff.Cancel:
		c.report.Cancels++
		if c.clients[e.Room] == nil {
			return nil // it had ended already
		}
		delete(c.clients, e.Room)
	case handoff.Expire:
	case handoff.PeerLost:
		c.lost[e.Refusal.Reason] = true
		c.cut(e.Refusal.Reason)
	case handoff.Reset:
		if !c.lost[e.Refusal.Reason] {
			return fmt.Errorf("%w: a node is there again that was not lost", errNowhere)
		}
		delete(c.lost, e.Refusal.Reason)
		c.cut(e.Refusal.Reason)
	default:
		return fmt.Errorf("%w: the router was not asked for %v", errNowhere, e)
	}
	return nil
}

// cut marks the link from a node to the router as lost.
func (c *checker) cut(why handoff.Reason) {
	switch why {
	case handoff.PrefillGone:
		c.lose(handoff.ToPrefill, handoff.ToRouter)
	case handoff.DecodeGone:
		c.lose(handoff.ToDecode, handoff.ToRouter)
	}
}

func (c *checker) routerDid(l *line, actions []handoff.Action, req int) error {
	if l.in.Kind == handoff.Open {
		c.clients[l.in.Room] = &customer{req: c.report.Requests, tokens: l.in.Tokens}
	}
	for i := range actions {
		a := &actions[i]
		if a.To == handoff.ToClient {
			if err := c.tell(a.Event, req); err != nil {
				return err
			}
			continue
		}
		about := 0
		if a.Kind == handoff.Submit {
			about = c.report.Requests
		}
		c.send(handoff.ToRouter, i, a, about)
	}
	return nil
}

// tell gives a client what the router has for it; from is the request that it
// comes of.
func (c *checker) tell(e handoff.Event, from int) error {
	w := c.clients[e.Room]
	if w == nil {
		return fmt.Errorf("%v: a client that has its answer, or is gone, is sent %v", I5, e)
	}
	if from != 0 && from != w.req {
		return fmt.Errorf("%v: the client of request %d is sent %v of request %d", I6, w.req, e, from)
	}
	switch e.Kind {
	case handoff.Token:
		w.got++
	case handoff.Done:
		c.report.Answers++
		if w.got != e.Made {
			return fmt.Errorf("%v: the answer of room %d has %d tokens, and %d came", I5, e.Room, e.Made, w.got)
		}
		delete(c.clients, e.Room)
	case handoff.Refused:
		c.report.Refusals++
		delete(c.clients, e.Room)
	}
	return nil
}

func (c *checker) prefillDid(l *line, actions []handoff.Action, req int) error {
	s := &c.source
	switch l.in.Kind {
	case handoff.Submit:
		s.held(l.in.Room, req, l.in.Tokens >= c.cfg.MaxInput() || l.in.Flawed)
	case handoff.PeerLost, handoff.Reset:
		c.lose(handoff.ToDecode, handoff.ToPrefill)
		s.hears(l.in.Kind)
	case handoff.Put:
		if err := c.written(l.in); err != nil {
			return err
		}
	}
	for i := range actions {
		a := &actions[i]
		switch {
		case a.Kind == handoff.Page:
			if s.rooms[a.Room].long {
				return fmt.Errorf("%v: prefill sends a page of room %d, which it must refuse", I2, a.Room)
			}
			s.start(a.Event)
			if !c.cfg.OneSided {
				c.send(handoff.ToPrefill, i, a, 0)
			}
		case a.To != handoff.Self:
			c.send(handoff.ToPrefill, i, a, s.rooms[a.Room].req)
		default:
			s.do(a.Event)
			if a.Kind == handoff.Run {
				if err := s.fill(a.Room, c.prefill.Table(a.Room)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// written takes note of a write that is over.
func (c *checker) written(e handoff.Event) error {
	w := c.source.finish(e)
	if !c.cfg.OneSided {
		if !e.OK {
			c.post(handoff.ToPrefill, handoff.ToDecode, handoff.Page).drop(e)
		}
		return nil
	}
	switch {
	case e.OK && w.dead:
		return fmt.Errorf("%v: a page of room %d lands in page %d after decode was told that who writes it is dead", I7, e.Room, e.To)
	case !e.OK || w.void || c.decode == nil:
		return nil
	}
	return c.pages.land(c.decode, e)
}

func (c *checker) decodeDid(l *line, actions []handoff.Action, req int) error {
	h := &c.pages
	switch l.in.Kind {
	case handoff.Submit:
		h.held(l.in.Room, req, l.in.Tokens >= c.cfg.MaxInput() || l.in.Flawed)
	case handoff.PeerLost:
		c.lose(handoff.ToPrefill, handoff.ToDecode)
	case handoff.Reset:
		c.lose(handoff.ToPrefill, handoff.ToDecode)
		c.source.died()
	case handoff.Stepped:
		if err := h.read(l.in.Room); err != nil {
			return err
		}
	}
	req = h.rooms[l.in.Room].req // before it is forgotten
	delete(h.work, l.in.Room*2+h.waits(l.in.Kind))
	for i := range actions {
		a := &actions[i]
		if a.To != handoff.Self {
			about := 0
			if a.Room == l.in.Room && (a.Kind == handoff.Token || a.Kind == handoff.Done) {
				about = req
			}
			c.send(handoff.ToDecode, i, a, about)
		}
		if err := h.do(c.decode, a); err != nil {
			return err
		}
	}
	return h.audit(c.decode)
}
