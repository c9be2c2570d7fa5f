package explore

import (
	"slices"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// power is which node processes run. A node that crashes is started again; it
// remembers nothing. One is down at a time.
type power struct {
	down slot // 0: both run
	// The router has not been told that they are there again.
	prefill, decode bool
}

func (p *power) append(b []byte) []byte {
	return append(b, byte(p.down), bit(p.prefill)|bit(p.decode)<<1)
}

func (p *power) choices(*Model) []free {
	if p.down != 0 {
		return []free{{op: op{kind: opRestart, a: uint8(p.down)}}}
	}
	var all []free
	for _, node := range []slot{slotPrefill, slotDecode} {
		// What it had sent last arrives, or is lost with its connections.
		all = append(all, free{op: op{kind: opCrash, a: uint8(node)}, cost: oneCrash},
			free{op: op{kind: opCrash, a: uint8(node), msg: msg{req: 1}}, cost: oneCrash})
	}
	return all
}

func (p *power) do(_ *Model, o op) outcome {
	if o.kind == opUp {
		return p.met()
	}
	node := slot(o.a)
	lost := handoff.Event{Kind: handoff.PeerLost, Refusal: handoff.Refusal{Reason: handoff.PrefillGone}}
	toNode, fromNode, toPeer, fromPeer := slotToPrefill, slotFromPrefill, slotPD, slotDP
	if node == slotDecode {
		lost.Refusal.Reason = handoff.DecodeGone
		toNode, fromNode, toPeer, fromPeer = slotToDecode, slotFromDecode, slotDP, slotPD
	}
	there := lost
	there.Kind = handoff.Reset
	peer := func(e handoff.Event) msg { e.Refusal = handoff.Refusal{}; return msg{ev: e} }
	if o.kind == opRestart {
		out := outcome{next: &power{0, p.prefill, p.decode}, effects: []then{{toPeer, op{kind: opUp}}}}
		if node == slotPrefill {
			out = withThen(out, then{slotWrites, op{kind: opDown}}, then{slotWrites, op{kind: opUp}})
		}
		out.effects = append(out.effects,
			then{node, op{kind: opRestart}},
			then{toPeer, op{kind: opPush, msg: peer(there)}})
		return out
	}
	out := outcome{next: &power{node, p.prefill || node == slotPrefill, p.decode || node == slotDecode}, effects: []then{
		{node, op{kind: opCrash}},
		{toNode, op{kind: opDown}},
		{fromNode, op{kind: opCut, a: o.msg.req, msg: msg{ev: lost}}},
		{fromPeer, op{kind: opDown}},
		{toPeer, op{kind: opCut, a: o.msg.req, msg: peer(lost)}},
	}}
	if node == slotPrefill {
		return withThen(out, then{slotWrites, op{kind: opOrphan}}, then{slotSource, op{kind: opWipe}})
	}
	return withThen(out, then{slotWrites, op{kind: opVoid}}, then{slotPages, op{kind: opWipe}})
}

// met tells the router of nodes that are there again, now that they know each other.
func (p *power) met() outcome {
	out := outcome{next: &power{down: p.down}}
	tell := func(untold bool, from slot, which handoff.Reason) {
		if untold {
			e := handoff.Event{Kind: handoff.Reset, Refusal: handoff.Refusal{Reason: which}}
			out.effects = append(out.effects, then{from, op{kind: opPush, msg: msg{ev: e}}})
		}
	}
	tell(p.prefill, slotFromPrefill, handoff.PrefillGone)
	tell(p.decode, slotFromDecode, handoff.DecodeGone)
	return out
}

func withThen(o outcome, more ...then) outcome {
	o.effects = slices.Concat(o.effects, more)
	return o
}

func (p *power) check(*Model) []Violation { return nil }
func (p *power) rest(*Model) rest         { return 0 }
