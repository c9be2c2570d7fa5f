package handoff

import "slices"

// A request that ends between Reserved and Meta leaves pages behind that writes
// may be under way to. They drain: nobody has them until prefill says that
// nothing is under way any more, or is known to be dead. No clock frees them.
//
//	decode  Quiesce -> prefill   once the pages drain
//	prefill Gone    -> decode    once the last write is over

// draining is a room's pages on decode's side.
type draining struct {
	room  Room
	lease lease
}

// drain takes a room's pages away from it. ask is false where there is nobody
// to ask.
func (d *Decode) drain(room Room, r *answer, ask bool) []Action {
	d.pool.Drain(room, r.pages)
	d.draining = append(d.draining, draining{room, lease{r.gen, r.pages}})
	d.promised -= r.total - len(r.pages)
	r.pages = nil
	if !ask {
		return nil
	}
	return []Action{{ToPrefill, Event{Kind: Quiesce, Room: room, Gen: r.gen}}}
}

// gone frees what has drained.
func (d *Decode) gone(e Event) []Action {
	i := slices.IndexFunc(d.draining, func(q draining) bool { return q.room == e.Room && q.lease.gen == e.Gen })
	if i < 0 {
		return nil
	}
	d.pool.Release(Draining, d.draining[i].lease.pages)
	d.draining = slices.Delete(d.draining, i, i+1)
	return d.reserve()
}

// peerLost ends the requests that still need prefill. Those that run do not.
func (d *Decode) peerLost() []Action {
	d.queue = nil
	var out []Action
	for _, e := range slices.Clone(d.rooms) {
		switch e.val.phase {
		case verifying, running:
			continue
		case greeted: // the router has not sent it here yet
		default:
			out = append(out, Action{ToRouter, Event{Kind: Refused, Room: e.room, Refusal: Refusal{Reason: PrefillGone}}})
		}
		out = append(out, d.end(e.room, false)...)
	}
	return out
}

// reset frees all that drains: the prefill that could write there is dead.
func (d *Decode) reset() []Action {
	for _, q := range d.draining {
		d.pool.Release(Draining, q.lease.pages)
	}
	d.draining = nil
	return d.reserve()
}

// stopping is a room on prefill's side that is over, but for writes that have
// begun and cannot be called back. Its own pages are read by them.
type stopping struct {
	room   Room
	gen    uint64
	local  []int32 // owned until the last write is over
	writes int
	asked  bool // decode waits for Gone
}

// stop lets go of a room whose writes are under way.
func (p *Prefill) stop(room Room, r *prompt) {
	s := stopping{room: room, gen: r.lease.gen, writes: r.writes}
	if r.owned {
		s.local = r.local
	}
	p.stopping = append(p.stopping, s)
}

func (p *Prefill) stops(e Event) int {
	return slices.IndexFunc(p.stopping, func(s stopping) bool { return s.room == e.Room && s.gen == e.Gen })
}

// stopped notes that a write of a room that is over is over too.
func (p *Prefill) stopped(e Event) []Action {
	i := p.stops(e)
	if i < 0 {
		return nil
	}
	s := &p.stopping[i]
	if s.writes--; s.writes > 0 {
		return nil
	}
	var out []Action
	if s.asked {
		out = []Action{{ToDecode, Event{Kind: Gone, Room: e.Room, Gen: e.Gen}}}
	}
	p.pool.Release(e.Room, s.local)
	p.stopping = slices.Delete(p.stopping, i, i+1)
	return append(out, p.schedule()...)
}

// quiesce answers at once where nothing is under way, else after the last
// write. A room that is still held here has been ended elsewhere; it goes now,
// so that what is under way from decode finds it no more.
func (p *Prefill) quiesce(e Event) []Action {
	var out []Action
	if r := p.rooms.get(e.Room); r != nil && (r.phase == greeted || r.lease.gen == e.Gen) {
		out = p.drop(e.Room, r)
	}
	if i := p.stops(e); i >= 0 {
		p.stopping[i].asked = true
		return out
	}
	return append(out, Action{ToDecode, Event{Kind: Gone, Room: e.Room, Gen: e.Gen}})
}

// peerLost ends all requests: decode's memory is gone. Nobody waits for Gone.
func (p *Prefill) peerLost() []Action {
	p.queue = nil
	for i := range p.stopping {
		p.stopping[i].asked = false
	}
	var out []Action
	for len(p.rooms) > 0 {
		e := &p.rooms[0]
		out = append(out, p.refuse(e.room, &e.val, Refusal{Reason: DecodeGone})...)
	}
	return out
}
