package explore

import (
	"bytes"
	"slices"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// writes are the pages under way from prefill's memory to decode's. A one-sided
// write lands at any time between its start and its completion, in two halves,
// without decode being asked; only prefill is told of its completion. A page of
// the other kind is read when it is sent and becomes a message.
type writes struct {
	oneSided bool
	// astray says that prefill still writes to the memory of a decode that has
	// crashed: it has not heard of the new one.
	astray bool
	all    []write // sorted if one-sided, else in the order in which they started
}

type write struct {
	msg    msg // Page
	stage  stage
	halted bool // it may be dropped while it has not begun
	orphan bool // prefill has crashed and is told of nothing
	void   bool // decode has crashed: the memory that it was for is gone
}

type stage uint8

const (
	issued stage = iota
	half
	landed
)

func (w write) append(b []byte) []byte {
	return w.msg.append(append(b, byte(w.stage), bit(w.halted)|bit(w.orphan)<<1|bit(w.void)<<2))
}

func (ws *writes) append(b []byte) []byte {
	b = append(b, bit(ws.astray), byte(len(ws.all)))
	for _, w := range ws.all {
		b = w.append(b)
	}
	return b
}

func (ws *writes) choices(m *Model) []free {
	var all []free
	for i, w := range ws.all {
		do := func(k opKind) { all = append(all, free{op: op{kind: k, a: uint8(i)}}) }
		switch {
		case w.stage == issued && !ws.oneSided:
			if i == 0 {
				do(opSend)
			}
		case w.stage == issued:
			do(opLand)
			if m.setup.Torn {
				do(opTear)
			}
		case w.stage == half:
			do(opLand)
		default:
			do(opPut)
		}
		if w.halted && w.stage == issued && !w.orphan {
			do(opDrop)
		}
	}
	return all
}

func (ws *writes) do(_ *Model, o op) outcome {
	next := &writes{ws.oneSided, ws.astray, slices.Clone(ws.all)}
	out := outcome{next: next}
	w := &write{}
	if o.kind == opTear || o.kind == opLand || o.kind == opPut || o.kind == opDrop || o.kind == opSend {
		w = &next.all[o.a]
	}
	switch o.kind {
	case opStart:
		next.all = append(next.all, write{msg: o.msg, void: ws.astray})
	case opHalt:
		next.each(func(w *write) { w.halted = w.halted || w.msg.ev.Room == o.msg.ev.Room })
	case opOrphan:
		next.each(func(w *write) { w.orphan = true })
		next.all = slices.DeleteFunc(next.all, func(w write) bool { return !ws.oneSided || w.stage == landed })
	case opDown: // torn down: nothing lands any more
		next.all = slices.DeleteFunc(next.all, func(w write) bool { return w.orphan })
	case opVoid:
		next.astray = ws.oneSided
		next.each(func(w *write) { w.void = ws.oneSided })
	case opUp:
		next.astray = false
	case opTear:
		w.stage = half
		out.effects = w.fetch(opTear)
	case opLand:
		out.effects = w.fetch(opLand)
		w.stage = landed
		if w.orphan {
			next.all = slices.Delete(next.all, int(o.a), int(o.a)+1)
		}
	case opSend:
		out.effects = append(w.fetch(opSend), w.put(true))
		next.all = slices.Delete(next.all, int(o.a), int(o.a)+1)
	case opPut, opDrop:
		out.effects = []then{w.put(o.kind == opPut)}
		next.all = slices.Delete(next.all, int(o.a), int(o.a)+1)
	default:
		panic(strayOp(o))
	}
	if ws.oneSided {
		slices.SortFunc(next.all, func(a, b write) int { return bytes.Compare(a.append(nil), b.append(nil)) })
	}
	return out
}

func (ws *writes) each(f func(*write)) {
	for i := range ws.all {
		f(&ws.all[i])
	}
}

// fetch reads prefill's page and goes on from there. Where the bytes go is
// decode's memory, if that is still the one that the write was for.
func (w *write) fetch(how opKind) []then {
	if w.void {
		return nil
	}
	fetched := then{slotSource, op{kind: opFetch, a: uint8(how), msg: w.msg}}
	if how == opSend {
		return []then{fetched}
	}
	return []then{fetched, {slotDecode, op{kind: opLeased, msg: w.msg}}}
}

// put tells prefill that a write is over.
func (w *write) put(ok bool) then {
	e := w.msg.ev
	put := handoff.Event{Kind: handoff.Put, Room: e.Room, Index: e.Index, To: e.To, Gen: e.Gen, OK: ok}
	return then{slotPrefill, op{kind: opStep, a: uint8(slotPrefill), msg: msg{ev: put}}}
}

func (ws *writes) check(*Model) []Violation { return nil }

func (ws *writes) rest(*Model) rest { return 0 }
