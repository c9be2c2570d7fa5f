package handoff

// lease is the right to write to some pages of decode's pool for one room. Each
// reservation has a generation of its own, so a late write can be told from one
// that is meant for the pages' next owner.
type lease struct {
	gen   uint64
	pages []int32 // in the order of the prompt; never changed
}

// write has a prompt's pages written: as many as this side's prompt has.
func (p *Prefill) write(room Room, r *prompt) []Action {
	r.phase, r.writes = sending, len(r.local)
	out := make([]Action, len(r.local))
	for i, page := range r.local {
		out[i] = Action{ToDecode, Event{
			Kind: Page, Room: room, Index: i, From: page, To: r.lease.pages[i], Gen: r.lease.gen,
		}}
	}
	if p.cfg.Switches.Has(StaleSource) {
		p.free(room, r)
	}
	return out
}

// put notes that a write is over. After the last one decode is told, never
// before: from then on it gives the pages to whom it wants.
func (p *Prefill) put(e Event) []Action {
	r := p.rooms.get(e.Room)
	if r == nil || r.phase != sending || r.lease.gen != e.Gen || e.Index < 0 || e.Index >= len(r.local) {
		return p.stopped(e)
	}
	r.writes--
	r.torn = r.torn || !e.OK || p.on.Any(Generations) && p.pool.Gen(r.local[e.Index]) != r.source
	if r.writes > 0 {
		return nil
	}
	r.phase = sent
	if r.torn {
		return p.refuse(e.Room, r, Refusal{Reason: Overwritten})
	}
	return []Action{{ToDecode, Event{
		Kind: Meta, Room: e.Room, Token: r.token, Stop: r.stop, Sent: r.tokens, Prompt: r.tokens,
		Gen: r.lease.gen, Summed: p.on.Any(checksums) && !(r.placeholder && p.on.Any(absent)),
	}}}
}

// page lets a page that comes as a message in only where the room owns the page
// that it is for. A one-sided write asks nobody.
func (d *Decode) page(e Event, r *answer) []Action {
	if r.phase != reserved || e.Index < 0 || e.Index >= len(r.pages) || r.pages[e.Index] != e.To || d.stale(e, r) {
		return nil
	}
	r.written[e.Index/64] |= 1 << (e.Index % 64)
	return []Action{{Self, Event{Kind: Write, Room: e.Room, Index: e.Index, To: e.To, Gen: r.gen}}}
}

// stale reports whether an event is about another lease than the room's.
func (d *Decode) stale(e Event, r *answer) bool { return d.on.Any(Generations) && e.Gen != r.gen }

// covers reports whether all that was reserved has been sent. Of one-sided
// writes decode knows only how much their sender says.
func (d *Decode) covers(e Event, r *answer) bool {
	if !d.on.Any(Coverage) || e.Sent != r.tokens {
		return !d.on.Any(Coverage)
	}
	for i := range r.pages {
		if !d.cfg.OneSided && r.written[i/64]&(1<<(i%64)) == 0 {
			return false
		}
	}
	return true
}

// holds reports whether all pages of a room's table are still under its lease.
func (d *Decode) holds(r *answer) bool {
	if d.on.Any(Generations) {
		for _, page := range r.pages {
			if d.pool.Gen(page) != r.gen {
				return false
			}
		}
	}
	return true
}
