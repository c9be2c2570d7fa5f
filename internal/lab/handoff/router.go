package handoff

// Router admits requests, hands them to both nodes and sees that each one ends
// exactly once, with Done or with Refused.
type Router struct {
	cfg    Config
	unique bool
	rooms  rooms[struct{}]
	newest Room // the highest room opened
	lost   losses
}

// losses is a set of the reasons for which nothing can be served.
type losses uint16

// first is the reason of those in the set that is listed first.
func (l losses) first() Reason {
	for why := PrefillGone; why <= Closing; why++ {
		if l&(1<<why) != 0 {
			return why
		}
	}
	return Served
}

// NewRouter returns a router with no requests.
func NewRouter(cfg Config) *Router {
	return &Router{cfg: cfg, unique: cfg.Switches.On().Any(UniqueIDs)}
}

// Live is how many requests have not ended.
func (r *Router) Live() int { return len(r.rooms) }

// Lost is why nothing can be served, Served if something can.
func (r *Router) Lost() Reason { return r.lost.first() }

// Mint is the room for the next request: a new one, or with fault IDReuse what
// its client calls it, which fails while another request is called the same.
func (r *Router) Mint(client Room) (Room, bool) {
	if r.unique {
		return r.newest + 1, true
	}
	return client, client != 0 && client != Draining && r.rooms.get(client) == nil
}

// Step takes one event from the client, a clock or a node. Events of rooms that
// have ended are late and mean nothing.
func (r *Router) Step(e Event) []Action {
	switch e.Kind {
	case Open:
		return r.open(e)
	case PeerLost:
		return r.lose(e.Refusal.Reason)
	case Reset:
		r.lost &^= 1 << e.Refusal.Reason
		return nil
	}
	if r.rooms.get(e.Room) == nil {
		return nil
	}
	switch e.Kind {
	case Token:
		return []Action{{ToClient, e}}
	case Done:
		// Decode's Ack may have been lost, and prefill waits for it.
		r.rooms.del(e.Room)
		return []Action{{ToClient, e}, {ToPrefill, Event{Kind: Abort, Room: e.Room}}}
	case Refused:
		return r.refuse(e.Room, e.Refusal)
	case Expire:
		return r.refuse(e.Room, Refusal{Reason: Expired})
	case Cancel:
		r.rooms.del(e.Room)
		return abortBoth(e.Room)
	}
	broken("router cannot take %v", e.Kind)
	return nil
}

func (r *Router) refuse(room Room, why Refusal) []Action {
	r.rooms.del(room)
	return append([]Action{{ToClient, Event{Kind: Refused, Room: room, Refusal: why}}}, abortBoth(room)...)
}

// lose ends all requests because a node is gone or the engine closes, and
// admits no others until it is there again.
func (r *Router) lose(why Reason) []Action {
	if why != PrefillGone && why != DecodeGone && why != Closing {
		broken("router loses a peer for reason %d", why)
	}
	r.lost |= 1 << why
	var out []Action
	for len(r.rooms) > 0 {
		out = append(out, r.refuse(r.rooms[0].room, Refusal{Reason: why})...)
	}
	return out
}

func (r *Router) open(e Event) []Action {
	if e.Room == 0 || e.Room == Draining || r.rooms.get(e.Room) != nil || r.unique && e.Room <= r.newest {
		broken("room %d is opened twice", e.Room)
	}
	r.newest = max(r.newest, e.Room)
	tokens, maxNew := e.Tokens, e.MaxNew
	if r.cfg.AutoTruncate {
		tokens = min(tokens, r.cfg.MaxInput()-1)
		maxNew = min(maxNew, max(1, r.cfg.Context-tokens))
	}
	if why := r.admit(tokens, maxNew); why.Reason != Served {
		return []Action{{ToClient, Event{Kind: Refused, Room: e.Room, Refusal: why}}}
	}
	r.rooms.put(e.Room)
	submit := Event{Kind: Submit, Room: e.Room, Tokens: tokens, MaxNew: maxNew, Flawed: e.Flawed}
	return []Action{{ToDecode, submit}, {ToPrefill, submit}}
}

// admit holds a request against the context window. Pools are the nodes' matter.
func (r *Router) admit(tokens, maxNew int) Refusal {
	switch {
	case r.lost != 0:
		return Refusal{Reason: r.lost.first()}
	case tokens < 1 || maxNew < 1:
		return Refusal{Reason: Empty, Have: tokens, Extra: maxNew}
	case tokens >= r.cfg.Context:
		return Refusal{Reason: OverContext, Have: tokens, Limit: r.cfg.Context}
	case tokens+maxNew > r.cfg.Context:
		return Refusal{Reason: OverTotal, Have: tokens, Extra: maxNew, Limit: r.cfg.Context}
	}
	return Refusal{}
}

func abortBoth(room Room) []Action {
	return []Action{{ToPrefill, Event{Kind: Abort, Room: room}}, {ToDecode, Event{Kind: Abort, Room: room}}}
}
