package handoff

// meta commits the handoff, or has its pages compared first. All writes were
// over when it was sent, so from here on the pages are free as soon as their
// room lets go of them.
func (d *Decode) meta(e Event, r *answer) []Action {
	if r.phase != reserved || d.stale(e, r) {
		return nil
	}
	r.phase = verifying
	if !d.covers(e, r) {
		return d.refuse(e.Room, Refusal{Reason: Incomplete, Have: e.Sent, Limit: r.tokens})
	}
	r.token, r.stop, r.prompt = e.Token, e.Stop, e.Prompt
	if d.cfg.Switches.Has(DecodeUsage) {
		r.prompt = r.tokens
	}
	summed := d.on.Any(checksums) && e.Summed
	switch {
	case d.on.Any(checksums) && !summed && !d.on.Any(AbsentSkipped):
		return d.refuse(e.Room, Refusal{Reason: Unverified})
	case !summed && !d.on.Any(tags):
		return d.commit(e.Room, r)
	}
	return []Action{{Self, Event{
		Kind: Verify, Room: e.Room, Tokens: r.tokens, Sent: e.Sent, Gen: r.gen, Summed: summed,
	}}}
}

// verified takes what came of comparing.
func (d *Decode) verified(e Event, r *answer) []Action {
	switch {
	case r.phase != verifying:
		return nil
	case !e.OK:
		return d.refuse(e.Room, Refusal{Reason: Unverified})
	}
	return d.commit(e.Room, r)
}

// commit begins the answer. Nothing of it leaves before.
func (d *Decode) commit(room Room, r *answer) []Action {
	r.phase, r.written = running, nil
	ack := Action{ToPrefill, Event{Kind: Ack, Room: room}}
	return append([]Action{ack}, d.emit(Event{Room: room, Token: r.token, Stop: r.stop}, r)...)
}

// mismatch ends an answer whose next token would have come from a page that is
// not its own.
func (d *Decode) mismatch(e Event, r *answer) []Action {
	if r.phase != running {
		return nil
	}
	return d.refuse(e.Room, Refusal{Reason: NotOwned})
}
