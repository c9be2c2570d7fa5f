package explore

import (
	"bytes"
	"slices"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// link carries messages from one machine to another. Between router and nodes
// order is kept and nothing is lost until one end crashes. Between the nodes,
// if Setup.Unordered says so, messages overtake each other, come twice or never.
type link struct {
	from, to slot
	self     slot
	bag      bool
	down     bool
	msgs     []msg // of a bag: sorted between one mark and the next
}

// mark reports whether a message says what became of the other end. Nothing
// overtakes it; if it is taken before older ones they are lost.
func mark(m msg) bool { return m.ev.Kind == handoff.PeerLost || m.ev.Kind == handoff.Reset }

func (l *link) append(b []byte) []byte {
	b = append(b, bit(l.down), byte(len(l.msgs)))
	for _, m := range l.msgs {
		b = m.append(b)
	}
	return b
}

func (l *link) do(_ *Model, o op) outcome {
	next := *l
	next.msgs = slices.Clone(l.msgs)
	switch o.kind {
	case opPush:
		if !l.down {
			next.push(o.msg)
		}
		return outcome{next: &next}
	case opTake, opCopy:
		m := l.msgs[o.a]
		switch {
		case mark(m):
			next.msgs = next.msgs[o.a+1:]
		case o.kind == opTake:
			next.msgs = slices.Delete(next.msgs, int(o.a), int(o.a)+1)
		}
		out := outcome{next: &next, effects: []then{{l.to, op{kind: opStep, a: uint8(l.from), msg: m}}}}
		if m.ev.Kind == handoff.Reset && !slices.ContainsFunc(next.msgs, mark) { // it has not died again since
			out.effects = append(out.effects, l.met()...)
		}
		return out
	case opLose:
		next.msgs = slices.Delete(next.msgs, int(o.a), int(o.a)+1)
		return outcome{next: &next, in: l.msgs[o.a].ev}
	case opCut:
		if o.a != 0 {
			next.msgs = nil
		}
		if !l.down {
			next.push(o.msg)
		}
	case opDown:
		next.msgs, next.down = nil, true
	case opUp:
		next.down = false
	default:
		panic(strayOp(o))
	}
	return outcome{next: &next}
}

// met is what follows when a receiver hears that the other end is there again:
// what it says is heard from here on, and if both are nodes they have met, and
// the router is told that both can be sent to.
func (l *link) met() []then {
	up := then{back(l.self), op{kind: opUp}}
	if l.self != slotPD && l.self != slotDP {
		return []then{up}
	}
	all := []then{up, {slotPower, op{kind: opUp}}}
	if l.self == slotDP {
		all = append(all, then{slotWrites, op{kind: opUp}})
	}
	return all
}

// back is the link the other way.
func back(s slot) slot {
	switch s {
	case slotPD:
		return slotDP
	case slotDP:
		return slotPD
	case slotFromPrefill:
		return slotToPrefill
	case slotFromDecode:
		return slotToDecode
	}
	panic("kvcanary: internal error: no way back")
}

func (l *link) push(m msg) {
	at := len(l.msgs)
	if l.bag && !mark(m) {
		text := m.append(nil)
		for at > 0 && !mark(l.msgs[at-1]) && bytes.Compare(l.msgs[at-1].append(nil), text) > 0 {
			at--
		}
	}
	l.msgs = slices.Insert(l.msgs, at, m)
}

func (l *link) choices(*Model) []free {
	if len(l.msgs) == 0 {
		return nil
	}
	if !l.bag {
		return []free{{op: op{kind: opTake}}}
	}
	var all []free
	for i, m := range l.msgs {
		switch {
		case mark(m):
			return append(all, free{op: op{kind: opTake, a: uint8(i)}})
		case i > 0 && bytes.Equal(m.append(nil), l.msgs[i-1].append(nil)):
			continue
		}
		all = append(all, free{op: op{kind: opTake, a: uint8(i)}},
			free{op: op{kind: opCopy, a: uint8(i)}, cost: oneCopy},
			free{op: op{kind: opLose, a: uint8(i)}, cost: oneLoss})
	}
	return all
}

func (l *link) check(*Model) []Violation { return nil }

func (l *link) rest(*Model) rest { return 0 }
