package explore

import (
	"fmt"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// That each request ends (I5) is looked at in states where nothing more happens.
// That is enough if every run comes to such a state once no more faults happen,
// however its events are ordered. runsEnd shows this from what was remembered
// about the machines alone, which is little:
//
//   - The router with its clients never comes back to a value that it had. So
//     Submit, which it sends only when it changes, is sent a finite number of
//     times, and so is Hello, which prefill sends only when it gets a Submit.
//   - A node never comes back to a value that it had either, but for Submit and
//     Hello. So in an endless run nothing changes any more from some point on.
//   - A message that changes nothing is answered, if at all, by messages of kinds
//     that come later in an order of kinds. So messages run out, and with them
//     all that happens: writes and work under way are finite and end.
//
// Crashes and what follows from them at once are faults. It returns what stands
// in the way, or "".
func (s *search) runsEnd() string {
	answers := map[partID][]partID{} // kinds that change nothing, to kinds that answer them
	for _, at := range []slot{slotRouter, slotPrefill, slotDecode} {
		edges := map[partID][]partID{}
		for _, w := range s.workers {
			for i := range w.memo.entries[at].slots {
				r := &w.memo.entries[at].slots[i]
				if r.key == 0 {
					continue
				}
				from, o := partID((r.key-1)>>32), s.store.opOf(opID(r.key-1))
				if why := s.mayEnd(at, o, r.next != from, w.memo.after(r), answers); why != "" {
					return why
				}
				if r.next != from && !starts(at, o) {
					edges[from] = append(edges[from], r.next)
				}
			}
		}
		if cyclic(edges) {
			return fmt.Sprintf("the %v can come back to where it was", partyOf[at])
		}
	}
	if cyclic(answers) {
		return "messages that change nothing can answer each other for ever"
	}
	return ""
}

// starts reports whether an operation is one of those that there are only a
// finite number of in a run without more faults.
func starts(at slot, o *op) bool {
	k := o.msg.ev.Kind
	return o.kind == opCrash || o.kind == opRestart || mark(o.msg) ||
		at != slotRouter && k == handoff.Submit || at == slotDecode && k == handoff.Hello
}

// mayEnd looks at one step of a machine.
func (s *search) mayEnd(at slot, o *op, changed bool, effects []effect, answers map[partID][]partID) string {
	for _, e := range effects {
		sent := s.store.opOf(e.op)
		k := sent.msg.ev.Kind
		switch {
		case sent.kind != opPush && (changed || e.slot == slotPages || e.slot == slotSource):
		case sent.kind != opPush:
			return fmt.Sprintf("a step of the %v that changes nothing starts work", partyOf[at])
		case k == handoff.Submit && !changed, k == handoff.Hello && o.msg.ev.Kind != handoff.Submit:
			return fmt.Sprintf("the %v can send %v again and again", partyOf[at], k)
		case !changed:
			kind := partID(o.msg.ev.Kind)
			answers[kind] = append(answers[kind], partID(k))
		}
	}
	return ""
}

// cyclic reports whether a graph has a cycle.
func cyclic(edges map[partID][]partID) bool {
	incoming := map[partID]int{}
	for from, tos := range edges {
		incoming[from] += 0
		for _, to := range tos {
			incoming[to]++
		}
	}
	var ready []partID
	for v, n := range incoming {
		if n == 0 {
			ready = append(ready, v)
		}
	}
	left := len(incoming)
	for len(ready) > 0 {
		v := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		left--
		for _, to := range edges[v] {
			if incoming[to]--; incoming[to] == 0 {
				ready = append(ready, to)
			}
		}
	}
	return left > 0
}
