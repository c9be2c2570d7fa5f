package explore

import (
	"slices"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// front is the router with its clients. Requests are numbered in the order in
// which they are opened: which of several requests of one shape comes first
// makes no difference, and is not explored.
type front struct {
	m       *handoff.Router
	left    []uint8 // requests of each shape that are still to come
	clients []client
}

type client struct {
	shape  uint8
	room   handoff.Room
	state  clientState
	tokens uint8 // of the answer so far
}

type clientState uint8

const (
	waiting  clientState = iota
	answered             // Done
	refused              // Refused: the request, the engine's end, or time
	caught               // Refused: something of the transfer or the pages was not as it should be
	gone                 // cancelled
)

// caughtBy are the refusals that say that a check found something.
var caughtBy = []handoff.Reason{
	handoff.Incomplete, handoff.Disagreement, handoff.Overwritten, handoff.Unverified, handoff.NotOwned,
}

func (f *front) append(b []byte) []byte {
	b = append(f.m.AppendState(b), f.left...)
	for _, c := range f.clients {
		b = append(b, c.shape, uint8(c.room), uint8(c.state), c.tokens)
	}
	return b
}

func (f *front) choices(m *Model) []free {
	var all []free
	for i, n := range f.left {
		if n == 0 {
			continue
		}
		if _, ok := f.m.Mint(handoff.Room(m.setup.Shapes[i].ID)); ok {
			all = append(all, free{op: op{kind: opOpen, a: uint8(i)}})
		}
	}
	for i, c := range f.clients {
		if c.state == waiting {
			all = append(all, free{op: op{kind: opCancel, a: uint8(i)}, cost: oneCancel},
				free{op: op{kind: opExpire, a: uint8(i)}, cost: oneExpiry},
				free{op: op{kind: opExpire, a: uint8(i)}, lull: true})
		}
	}
	return all
}

func (f *front) do(m *Model, o op) outcome {
	next := &front{f.m.Clone(), slices.Clone(f.left), slices.Clone(f.clients)}
	e := o.msg.ev
	switch o.kind {
	case opStep:
	case opOpen:
		s := m.setup.Shapes[o.a]
		room, _ := f.m.Mint(handoff.Room(s.ID))
		next.left[o.a]--
		next.clients = append(next.clients, client{shape: o.a, room: room})
		e = handoff.Event{Kind: handoff.Open, Room: room, Tokens: s.Tokens, MaxNew: s.MaxNew, Flawed: s.Flawed}
	case opCancel:
		next.clients[o.a].state = gone
		e = handoff.Event{Kind: handoff.Cancel, Room: f.clients[o.a].room}
	case opExpire:
		e = handoff.Event{Kind: handoff.Expire, Room: f.clients[o.a].room}
	default:
		panic(strayOp(o))
	}
	out := outcome{next: next, in: e}
	if !out.step(next.m.Step) {
		out.next = f
		return out
	}
	for _, a := range out.did {
		pass := msg{ev: a.Event}
		switch a.To {
		case handoff.ToClient:
			out.broken = append(out.broken, next.tell(m, a.Event)...)
			continue
		case handoff.ToDecode:
			pass.req = next.current(a.Room)
			out.effects = append(out.effects, then{slotToDecode, op{kind: opPush, msg: pass}})
		case handoff.ToPrefill:
			pass.req = next.current(a.Room)
			out.effects = append(out.effects, then{slotToPrefill, op{kind: opPush, msg: pass}})
		}
		if a.Kind != handoff.Submit {
			out.effects[len(out.effects)-1].op.msg.req = 0
		}
	}
	return out
}

// current is the number of the request that a room stands for: the last one
// that was given it.
func (f *front) current(room handoff.Room) uint8 {
	for i := len(f.clients) - 1; i >= 0; i-- {
		if f.clients[i].room == room {
			return uint8(i + 1)
		}
	}
	return 0
}

// tell gives a client what the router has for it.
func (f *front) tell(m *Model, e handoff.Event) []Violation {
	req := f.current(e.Room)
	if req == 0 || f.clients[req-1].state != waiting {
		return []Violation{violated(I6, "a client that has its answer, or is gone, is sent %v", e.Kind)}
	}
	c := &f.clients[req-1]
	switch e.Kind {
	case handoff.Token:
		c.tokens++
		switch from := e.Token & ofRequest; {
		case from != req:
			return []Violation{violated(I6, "the client of request %d is sent a token of request %d", req, from)}
		case e.Token&mixed != 0:
			return []Violation{violated(I6, "the client of request %d is sent a token that was computed from what is another's", req)}
		case e.Token&spoilt != 0:
			return []Violation{violated(Spoilt, "the client of request %d is sent a token that was computed from pages not written for it", req)}
		}
	case handoff.Done:
		c.state = answered
		if most := m.setup.Shapes[c.shape].MaxNew; int(c.tokens) != e.Made || e.Made > most {
			return []Violation{violated(I5, "the answer of request %d has %d tokens of at most %d, and %d came", req, e.Made, most, c.tokens)}
		}
	case handoff.Refused:
		c.state = refused
		if slices.Contains(caughtBy, e.Refusal.Reason) {
			c.state = caught
			return []Violation{violated(Noticed, "request %d is refused: %s", req, e.Refusal.Text())}
		}
	}
	return nil
}

func (f *front) check(*Model) []Violation { return nil }

func (f *front) rest(*Model) rest {
	for _, c := range f.clients {
		if c.state == waiting {
			return restWaiting
		}
	}
	if f.m.Live() > 0 {
		return restHeld
	}
	return 0
}
