package node

import (
	"slices"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// flight is a one-sided write that has begun. Nothing calls it back.
type flight struct {
	handoff.Event
	end time.Time
}

// Bounds on one-sided writes: how many are under way at once, and how many end
// in one turn.
const (
	inTheAir = 4096
	landings = 256
)

// put is what becomes of a page's write.
func put(page handoff.Event, done bool) handoff.Event {
	return handoff.Event{
		Kind: handoff.Put, Room: page.Room, Index: page.Index, To: page.To, Gen: page.Gen, OK: done,
	}
}

// dropped removes what has not begun from a queue, and notes the end of writes
// among it.
func (p *prefill) dropped(queue []handoff.Action, which func(handoff.Event) bool) []handoff.Action {
	return slices.DeleteFunc(queue, func(a handoff.Action) bool {
		drop := which(a.Event)
		if drop && a.Kind == handoff.Page {
			p.over = append(p.over, put(a.Event, false))
		}
		return drop
	})
}

func (p *prefill) ready() bool { return len(p.unsent) > 0 }

// due is how long it takes until the next one-sided write ends, or the prompt
// under way goes on.
func (p *prefill) due(now time.Time) time.Duration {
	next := p.wake
	for _, f := range p.flying {
		if next.IsZero() || f.end.Before(next) {
			next = f.end
		}
	}
	for i := range p.late {
		if end := p.late[i].end; next.IsZero() || end.Before(next) {
			next = end
		}
	}
	if next.IsZero() {
		return -1
	}
	return max(0, next.Sub(now))
}

// send has messages and pages leave in order as far as there is room for them;
// one-sided writes end when their time has come.
func (p *prefill) send(now time.Time) {
	for p.peer != nil && len(p.unsent) > 0 {
		a := p.unsent[0]
		if a.Kind == handoff.Page && !p.write(a.Event, now) {
			break
		}
		if a.Kind != handoff.Page {
			p.message(a.Event, now)
		}
		p.unsent = p.unsent[1:]
		p.settle() // the end of the last page sends the metadata
	}
	p.land(now)
	p.landRecords(now)
}

func (p *prefill) message(e handoff.Event, now time.Time) {
	f := Frame{Event: e}
	if e.Kind == handoff.Meta {
		f.Cached = p.prompts[e.Room].cached
	}
	if e.Summed {
		sum := p.prompts[e.Room].sum
		f.Data = sum[:]
	}
	if e.Kind == handoff.Meta && p.setup.Also.Faults.Any(MetadataSlot) {
		p.sendRecord(f, now)
		return
	}
	p.toPeer(&f)
}

// write begins to write a page, which as a message is over once it is copied.
func (p *prefill) write(e handoff.Event, now time.Time) bool {
	if p.setup.Handoff.OneSided {
		if len(p.flying) >= inTheAir {
			return false
		}
		p.flying = append(p.flying, flight{e, now.Add(p.lag())})
		return true
	}
	p.trace.Flush()
	if !p.peer.SendPage(&Frame{Event: e, Mark: p.mem.at(e.From), Data: p.cache.Page(e.From)}) {
		return false
	}
	p.over = append(p.over, put(e, true))
	return true
}

// lag is how long one write takes.
func (p *prefill) lag() time.Duration {
	if p.setup.Lag <= 0 {
		return 0
	}
	return time.Duration(p.lags.Int64N(int64(p.setup.Lag)))
}

// land ends the writes whose time has come: what the page holds now is copied.
func (p *prefill) land(now time.Time) {
	left := landings
	p.flying = slices.DeleteFunc(p.flying, func(f flight) bool {
		if left == 0 || f.end.After(now) {
			return false
		}
		left--
		p.remote.store(f.To, p.cache.Page(f.From), p.mem.at(f.From), p.on.Any(handoff.TagsByWriter))
		p.over = append(p.over, put(f.Event, true))
		return true
	})
	p.settle()
}
