package explore

import (
	"slices"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// prefillNode is the machine with what its node keeps beside it: which prompt
// belongs to a room, and the one that is being computed.
type prefillNode struct {
	m       *handoff.Prefill // nil: the process is down
	prompts []held
	job     handoff.Event // Run, or zero
}

// held says which request a node holds for a room.
type held struct {
	room handoff.Room
	req  uint8
	long bool // it is over the limit of a node, or flawed, and must be refused
}

func (p *prefillNode) append(b []byte) []byte {
	if p.m == nil {
		return b
	}
	return appendHeld(appendEvent(p.m.AppendState(b), p.job), p.prompts)
}

func appendHeld(b []byte, all []held) []byte {
	for _, h := range all {
		b = append(b, uint8(h.room), h.req, bit(h.long))
	}
	return b
}

// hold notes whose prompt came for a room; the last one counts.
func hold(all []held, m *Model, s msg) []held {
	h := held{s.ev.Room, s.req, s.ev.Tokens >= m.limit || s.ev.Flawed}
	i := slices.IndexFunc(all, func(h held) bool { return h.room >= s.ev.Room })
	switch {
	case i < 0:
		return append(all, h)
	case all[i].room == h.room:
		all[i] = h
		return all
	}
	return slices.Insert(all, i, h)
}

func forget(all []held, room handoff.Room) []held {
	return slices.DeleteFunc(all, func(h held) bool { return h.room == room })
}

func holder(all []held, room handoff.Room) held {
	if i := slices.IndexFunc(all, func(h held) bool { return h.room == room }); i >= 0 {
		return all[i]
	}
	return held{}
}

func (p *prefillNode) choices(*Model) []free {
	if p.job.Kind == handoff.Run {
		return []free{{op: op{kind: opCompute}}}
	}
	return nil
}

func (p *prefillNode) do(m *Model, o op) outcome {
	if o.kind == opCrash {
		return outcome{next: &prefillNode{}}
	}
	if o.kind == opRestart {
		return outcome{next: &prefillNode{m: handoff.NewPrefill(m.setup.Engine)}}
	}
	if p.m == nil {
		return outcome{next: p}
	}
	next := &prefillNode{p.m.Clone(), slices.Clone(p.prompts), p.job}
	out := outcome{next: next, in: o.msg.ev}
	switch {
	case o.kind == opCompute:
		out.in = next.compute(m, &out)
	case o.kind != opStep:
		panic(strayOp(o))
	case o.msg.ev.Kind == handoff.Submit:
		next.prompts = hold(next.prompts, m, o.msg)
	}
	if !out.step(next.m.Step) {
		out.next = p
		return out
	}
	for _, a := range out.did {
		next.carryOut(m, a, &out)
	}
	return out
}

// compute stores the prompt's KV and returns the event that says so.
func (p *prefillNode) compute(m *Model, out *outcome) handoff.Event {
	job := p.job
	p.job = handoff.Event{}
	req := holder(p.prompts, job.Room).req
	job.Pages, job.Gen = p.m.Table(job.Room), p.m.Lease(job.Room)
	out.effects = append(out.effects, then{slotSource, op{kind: opFill, a: req, msg: msg{ev: job}}})
	return handoff.Event{Kind: handoff.Ran, Room: job.Room, Token: req}
}

func (p *prefillNode) carryOut(m *Model, a handoff.Action, out *outcome) {
	pass := msg{ev: a.Event}
	push := func(s slot, k opKind) { out.effects = append(out.effects, then{s, op{kind: k, msg: pass}}) }
	switch {
	case a.To == handoff.ToRouter:
		push(slotFromPrefill, opPush)
	case a.Kind == handoff.Page:
		if holder(p.prompts, a.Room).long {
			out.broken = append(out.broken, violated(I2, "prefill sends a page of a prompt that it must refuse"))
		}
		push(slotWrites, opStart)
	case a.To == handoff.ToDecode:
		push(slotPD, opPush)
	case a.Kind == handoff.Zero:
		push(slotSource, opZero)
	case a.Kind == handoff.Run:
		p.job = a.Event
	case a.Kind == handoff.Halt:
		if p.job.Room == a.Room {
			p.job = handoff.Event{}
		}
		push(slotWrites, opHalt)
	case a.Kind == handoff.Forget:
		p.prompts = forget(p.prompts, a.Room)
	default:
		panic("kvcanary: internal error: explorer cannot do " + a.String())
	}
}

func (p *prefillNode) check(m *Model) []Violation {
	if p.m == nil {
		return nil
	}
	return append(checkBooks("prefill", p.m.Pool(), p.m.Table, p.prompts), refusedOwns("prefill", p.m.Table, p.prompts)...)
}

func (p *prefillNode) rest(*Model) rest {
	switch {
	case p.m == nil:
		return 0
	case p.m.Pool().Used() > 0:
		return restOwned
	case p.m.Held() > 0 || len(p.prompts) > 0:
		return restHeld
	}
	return 0
}
