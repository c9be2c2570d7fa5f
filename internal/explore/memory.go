package explore

import (
	"slices"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// cell is what a page holds: whose prompt or answer, which page of it, how many
// tokens; and the tag beside it.
type cell struct {
	req   uint8 // 0: nobody has written it
	index uint8
	n     uint8 // tokens; 0 of a page that is half written
	tag   tag
}

// tag is a page's tag. Room 0: there is none.
type tag struct {
	room, gen, index uint8
	n                uint8 // tokens that it vouches for; any with anyLength
}

const anyLength = 255

func (c cell) append(b []byte) []byte {
	return append(b, c.req, c.index, c.n, c.tag.room, c.tag.gen, c.tag.index, c.tag.n)
}

func (t tag) is(room handoff.Room, gen uint64, index int) bool {
	return t.room == uint8(room) && t.gen == uint8(gen) && t.index == uint8(index)
}

// memory is the pages of one pool, as bytes: who owns them is not known here.
type memory struct {
	self  slot
	cells []cell
}

func newMemory(self slot, pages int) *memory { return &memory{self, make([]cell, pages)} }

func (m *memory) append(b []byte) []byte {
	for _, c := range m.cells {
		b = c.append(b)
	}
	return b
}

func (m *memory) choices(*Model) []free    { return nil }
func (m *memory) check(*Model) []Violation { return nil }
func (m *memory) rest(*Model) rest         { return 0 }

func (m *memory) do(world *Model, o op) outcome {
	e := o.msg.ev
	next := &memory{m.self, slices.Clone(m.cells)}
	switch o.kind {
	case opFill:
		world.fill(next.cells, e, o.a)
	case opZero:
		next.cells[e.To] = cell{}
	case opStamp:
		next.cells[e.To].tag = tag{uint8(e.Room), uint8(e.Gen), uint8(e.Index), anyLength}
	case opFetch:
		return outcome{next: m, effects: world.fetched(m.cells[e.From], o)}
	case opStore, opHalf:
		to := &next.cells[e.To]
		old := to.tag
		*to = o.msg.cell
		if o.kind == opHalf { // a writer takes the tag away first and sets its own last
			to.n, to.tag = 0, tag{}
		}
		if !world.on.Any(handoff.TagsByWriter) {
			to.tag = old
		}
	case opCheck:
		ok := world.verify(m.cells, e, o.a)
		answer := msg{ev: handoff.Event{Kind: handoff.Verified, Room: e.Room, OK: ok}}
		return outcome{next: m, effects: []then{{slotDecode, op{kind: opStep, a: uint8(slotDecode), msg: answer}}}}
	case opScan:
		return world.read(next, e, o.a)
	case opWipe:
		clear(next.cells)
	default:
		panic(strayOp(o))
	}
	return outcome{next: next}
}

// fill stores a computed prompt, and tags it if that is the writer's duty.
func (m *Model) fill(cells []cell, e handoff.Event, req uint8) {
	for i, page := range e.Pages {
		n := uint8(min(m.size, e.Tokens-i*m.size))
		c := cell{req: req, index: uint8(i), n: n}
		if m.on.Any(handoff.TagsByWriter) {
			c.tag = tag{uint8(e.Room), uint8(e.Gen), uint8(i), n}
		}
		cells[page] = c
	}
}

// fetched carries on with a page that has been read from prefill's memory.
func (m *Model) fetched(c cell, o op) []then {
	o.msg.cell = c
	switch opKind(o.a) {
	case opSend:
		return []then{{slotPD, op{kind: opPush, msg: o.msg}}}
	case opTear:
		return []then{{slotPages, op{kind: opHalf, msg: o.msg}}}
	}
	return []then{{slotPages, op{kind: opStore, msg: o.msg}}}
}

// verify compares the pages of a room before its answer begins: e.Pages is its
// table, e.Tokens and e.Sent are how much was reserved and sent.
func (m *Model) verify(cells []cell, e handoff.Event, req uint8) bool {
	for i, page := range e.Pages {
		c, n := cells[page], uint8(min(m.size, e.Tokens-i*m.size))
		if m.on.Any(handoff.TagsAtReserve|handoff.TagsByWriter) &&
			(!c.tag.is(e.Room, e.Gen, i) || c.tag.n != n && c.tag.n != anyLength) {
			return false
		}
		if !e.Summed || i*m.size >= e.Sent && !m.on.Any(handoff.ChecksumReceiver) {
			continue
		}
		// The checksum is of what was computed; past what was sent there is none.
		sent := uint8(max(0, min(m.size, e.Sent-i*m.size)))
		if c.req != req || c.index != uint8(i) || c.n != sent || sent != n && m.on.Any(handoff.ChecksumReceiver) {
			return false
		}
	}
	return true
}

// read computes the token after slot e.Pos of an answer, from all slots before
// it: first the ownership check, if it is on, then the reading itself.
func (m *Model) read(next *memory, e handoff.Event, req uint8) outcome {
	out := outcome{next: next}
	answer := msg{ev: handoff.Event{Kind: handoff.Stepped, Room: e.Room, Token: goesOn(e.Token, req)}}
	for i := range (e.Pos + m.size - 1) / m.size {
		c := next.cells[e.Pages[i]]
		if m.on.Any(handoff.TagsAtReserve|handoff.TagsByWriter) && !c.tag.is(e.Room, e.Gen, i) {
			answer.ev = handoff.Event{Kind: handoff.Mismatch, Room: e.Room}
			out.broken = nil
			break
		}
		switch {
		case c.req != req && c.req != 0:
			out.broken = append(out.broken, violated(I1, "request %d reads a page that request %d has written", req, c.req))
			answer.ev.Token |= mixed
		case c.req != req || c.index != uint8(i) || int(c.n) < min(m.size, e.Pos-i*m.size):
			out.broken = append(out.broken, violated(I1, "request %d reads a page that it has not written whole", req))
			answer.ev.Token |= spoilt
		}
	}
	if answer.ev.Kind == handoff.Stepped {
		m.append(next, e, req)
	}
	out.effects = []then{{slotDecode, op{kind: opStep, a: uint8(slotDecode), msg: answer}}}
	return out
}

// A token is the number of the request that it answers, and what it was
// computed from besides: to the machines it is any token.
const (
	ofRequest = 0x0f
	spoilt    = 0x40 // a page that was not written whole
	mixed     = 0x80 // a page, or a token, of another request
)

// goesOn is the token of a request that follows on another, before pages are read.
func goesOn(before byte, req uint8) byte {
	if before&ofRequest != req {
		return req | mixed
	}
	return before
}

// append stores the token at slot e.Pos. A page that begins with it is its
// request's from here on.
func (m *Model) append(mem *memory, e handoff.Event, req uint8) {
	index := e.Pos / m.size
	c := &mem.cells[e.Pages[index]]
	if e.Pos%m.size == 0 {
		old := c.tag
		*c = cell{req: req, index: uint8(index), tag: old}
		if m.on.Any(handoff.TagsByWriter) {
			c.tag = tag{uint8(e.Room), uint8(e.Gen), uint8(index), anyLength}
		}
	}
	if c.req == req && c.index == uint8(index) && int(c.n) == e.Pos%m.size {
		c.n++
	}
}
