package handoff

// Router admits requests, hands them to both nodes and sees that each one ends
// exactly once, with Done or with Refused.
type Router struct {
	cfg   Config
	rooms rooms[struct{}]
}

// NewRouter returns a router with no requests.
func NewRouter(cfg Config) *Router { return &Router{cfg: cfg} }

// Live is how many requests have not ended.
func (r *Router) Live() int { return len(r.rooms) }

// Step takes one event from the client or a node. Events of rooms that have
// ended are late and mean nothing.
func (r *Router) Step(e Event) []Action {
	if e.Kind == Open {
		return r.open(e)
	}
	if r.rooms.get(e.Room) == nil {
		return nil
	}
	switch e.Kind {
	case Token:
		return []Action{{ToClient, e}}
	case Done:
		r.rooms.del(e.Room)
		return []Action{{ToClient, e}}
	case Refused:
		r.rooms.del(e.Room)
		return append([]Action{{ToClient, e}}, abortBoth(e.Room)...)
	case Cancel:
		r.rooms.del(e.Room)
		return abortBoth(e.Room)
	}
	broken("router cannot take %v", e.Kind)
	return nil
}

// Lose ends all requests because a node is gone or the engine closes.
func (r *Router) Lose(why Reason) []Action {
	var out []Action
	for _, e := range r.rooms {
		out = append(out, Action{ToClient, Event{Kind: Refused, Room: e.room, Refusal: Refusal{Reason: why}}})
		out = append(out, abortBoth(e.room)...)
	}
	r.rooms = nil
	return out
}

func (r *Router) open(e Event) []Action {
	if r.rooms.get(e.Room) != nil || e.Room == 0 {
		broken("room %d is opened twice", e.Room)
	}
	tokens, maxNew := e.Tokens, e.MaxNew
	if r.cfg.AutoTruncate {
		tokens = min(tokens, r.cfg.MaxInput()-1)
		maxNew = min(maxNew, max(1, r.cfg.Context-tokens))
	}
	if why := r.admit(tokens, maxNew); why.Reason != Served {
		return []Action{{ToClient, Event{Kind: Refused, Room: e.Room, Refusal: why}}}
	}
	r.rooms.put(e.Room)
	submit := Event{Kind: Submit, Room: e.Room, Tokens: tokens, MaxNew: maxNew}
	return []Action{{ToDecode, submit}, {ToPrefill, submit}}
}

// admit holds a request against the context window. Pools are the nodes' matter.
func (r *Router) admit(tokens, maxNew int) Refusal {
	switch {
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
