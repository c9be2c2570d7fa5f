package explore

import (
	"bytes"
	"slices"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// decodeNode is the machine with what its node keeps beside it: which request
// belongs to a room, and the work under way.
type decodeNode struct {
	m    *handoff.Decode // nil: the process is down
	held []held
	work []handoff.Event // Verify and Step, sorted
}

func (d *decodeNode) append(b []byte) []byte {
	if d.m == nil {
		return b
	}
	b = append(d.m.AppendState(b), byte(len(d.work)))
	for _, w := range d.work {
		b = appendEvent(b, w)
	}
	return appendHeld(b, d.held)
}

func (d *decodeNode) choices(*Model) []free {
	var all []free
	for i, w := range d.work {
		k := opVerify
		if w.Kind == handoff.Step {
			k = opRead
		}
		all = append(all, free{op: op{kind: k, a: uint8(i)}})
	}
	return all
}

func (d *decodeNode) do(m *Model, o op) outcome {
	switch {
	case o.kind == opCrash:
		return outcome{next: &decodeNode{}}
	case o.kind == opRestart:
		return outcome{next: &decodeNode{m: handoff.NewDecode(m.setup.Engine)}}
	case d.m == nil:
		return outcome{next: d}
	case o.kind == opLeased:
		return outcome{next: d, broken: d.leased(o.msg.ev)}
	}
	next := &decodeNode{d.m.Clone(), slices.Clone(d.held), slices.Clone(d.work)}
	if o.kind == opVerify || o.kind == opRead {
		return next.look(o)
	}
	if o.kind != opStep {
		panic(strayOp(o))
	}
	if o.msg.ev.Kind == handoff.Submit {
		next.held = hold(next.held, m, o.msg)
	}
	out := outcome{next: next, in: o.msg.ev}
	if !out.step(next.m.Step) {
		out.next = d
		return out
	}
	for _, a := range out.did {
		next.carryOut(o, a, &out)
	}
	slices.SortFunc(next.work, func(a, b handoff.Event) int {
		return bytes.Compare(appendEvent(nil, a), appendEvent(nil, b))
	})
	return out
}

// look has the pages of a room compared or read. What comes of it is the next
// event of the machine.
func (d *decodeNode) look(o op) outcome {
	e := d.work[o.a]
	d.work = slices.Delete(d.work, int(o.a), int(o.a)+1)
	req := holder(d.held, e.Room).req
	out := outcome{next: d}
	e.Pages, e.Gen = slices.Clone(d.m.Table(e.Room)), d.m.Lease(e.Room)
	k := opCheck
	if o.kind == opRead {
		k = opScan
	}
	out.effects = []then{{slotPages, op{kind: k, a: req, msg: msg{ev: e}}}}
	return out
}

func (d *decodeNode) carryOut(o op, a handoff.Action, out *outcome) {
	pass := msg{ev: a.Event}
	push := func(s slot, k opKind) { out.effects = append(out.effects, then{s, op{kind: k, msg: pass}}) }
	switch {
	case a.To == handoff.ToRouter:
		push(slotFromDecode, opPush)
	case a.To == handoff.ToPrefill:
		push(slotDP, opPush)
	case a.Kind == handoff.Zero:
		push(slotPages, opZero)
	case a.Kind == handoff.Stamp:
		push(slotPages, opStamp)
	case a.Kind == handoff.Write:
		out.broken = append(out.broken, d.leased(o.msg.ev)...)
		pass.cell = o.msg.cell
		push(slotPages, opStore)
	case a.Kind == handoff.Verify, a.Kind == handoff.Step:
		d.work = append(d.work, a.Event)
	case a.Kind == handoff.Forget:
		d.held = forget(d.held, a.Room)
		d.work = slices.DeleteFunc(d.work, func(w handoff.Event) bool { return w.Room == a.Room })
	default:
		panic("kvcanary: internal error: explorer cannot do " + a.String())
	}
}

// leased holds a write that lands against who has the page.
func (d *decodeNode) leased(e handoff.Event) []Violation {
	pool := d.m.Pool()
	owner := pool.Owner(e.To)
	if pool.Gen(e.To) == e.Gen && (owner == e.Room || owner == handoff.Draining) {
		return nil
	}
	return []Violation{violated(I7, "a page of room %d lands in page %d, which is not leased to it any more", e.Room, e.To)}
}

func (d *decodeNode) check(m *Model) []Violation {
	if d.m == nil {
		return nil
	}
	return slices.Concat(checkBooks("decode", d.m.Pool(), d.m.Table, d.held), checkTables(d.m),
		refusedOwns("decode", d.m.Table, d.held))
}

func (d *decodeNode) rest(*Model) rest {
	var r rest
	switch {
	case d.m == nil:
		return 0
	case d.m.Pool().Used() > d.m.Draining():
		r = restOwned
	case d.m.Draining() > 0:
		r = restDrain
	}
	if d.m.Held() > 0 || len(d.held) > 0 {
		r |= restHeld
	}
	return r
}
