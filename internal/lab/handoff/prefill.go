package handoff

import "slices"

// Prefill is the machine of the node that computes prompts. It runs one prompt
// at a time, first come first served.
type Prefill struct {
	cfg      Config
	on       Defences
	pool     Pool
	rooms    rooms[prompt]
	queue    []Room     // has decode's pages, waits for its turn
	busy     Room       // is being computed
	stopping []stopping // let go of, with writes still under way
}

// prompt is a request as prefill knows it.
type prompt struct {
	phase       phase
	tokens      int
	placeholder bool
	pending     Refusal // why it ought to be refused
	lease       lease   // decode's pages for it, from Reserved on
	local       []int32 // pages it is computed in
	source      uint64  // this node's own lease of them
	owned       bool    // they are still the room's
	writes      int     // pages whose write is not over
	torn        bool    // a page was not written as it was computed
	token       byte    // first token of the answer
	stop        bool    // it ends the answer
}

type phase uint8

const (
	submitted phase = iota // decode: Submit came, Hello did not
	greeted                // Hello said (prefill), or heard without Submit (decode)
	queued                 // waits for pages or its turn
	running                // is computed (prefill) or answered (decode)
	sending                // prefill: pages are being written
	sent                   // prefill: all pages are written
	reserved               // decode: pages are reserved and being filled
	verifying              // decode: pages are filled and being compared
)

// NewPrefill returns a prefill with all its pages free.
func NewPrefill(cfg Config) *Prefill {
	return &Prefill{cfg: cfg, on: cfg.Switches.On(), pool: NewPool(cfg.PrefillPages, cfg.Policy)}
}

// Pool is the node's pool, to look at.
func (p *Prefill) Pool() *Pool { return &p.pool }

// Waiting is how many requests have not begun to be computed.
func (p *Prefill) Waiting() int {
	n := 0
	for _, e := range p.rooms {
		if e.val.phase == greeted || e.val.phase == queued {
			n++
		}
	}
	return n
}

// Table is the page table of a room that is being computed or sent, to look at.
func (p *Prefill) Table(room Room) []int32 {
	if r := p.rooms.get(room); r != nil {
		return r.local
	}
	return nil
}

// Lease is decode's lease of the pages for a room, to look at; 0 for none.
func (p *Prefill) Lease(room Room) uint64 {
	if r := p.rooms.get(room); r != nil {
		return r.lease.gen
	}
	return 0
}

// Step takes one event. Events of rooms that are not held here are late and
// mean nothing.
func (p *Prefill) Step(e Event) []Action {
	switch e.Kind {
	case Submit:
		return p.submit(e)
	case Put:
		return p.put(e)
	case Quiesce:
		return p.quiesce(e)
	case PeerLost:
		return p.peerLost()
	case Reset:
		return nil // everything of the old decode went when it was lost
	}
	r := p.rooms.get(e.Room)
	if r == nil {
		return nil
	}
	switch e.Kind {
	case Reserved:
		return p.reserved(e, r)
	case Ran:
		return p.ran(e, r)
	case Ack:
		return p.ack(e.Room, r)
	case Abort:
		return p.drop(e.Room, r)
	}
	broken("prefill cannot take %v", e.Kind)
	return nil
}

// submit is prefill's door: who is refused leaves before decode hears of it.
func (p *Prefill) submit(e Event) []Action {
	if p.rooms.get(e.Room) != nil {
		broken("room %d is submitted to prefill twice", e.Room)
	}
	r := p.check(e.Tokens)
	if e.Flawed && r.pending.Reason == Served {
		r = prompt{phase: greeted, tokens: 1, placeholder: true, pending: Refusal{Reason: Unreadable}}
	}
	if p.retires(r.pending.Reason) {
		return []Action{
			{ToRouter, Event{Kind: Refused, Room: e.Room, Refusal: r.pending}},
			{Self, Event{Kind: Forget, Room: e.Room}},
		}
	}
	*p.rooms.put(e.Room) = r
	return []Action{{ToDecode, Event{Kind: Hello, Room: e.Room, Tokens: r.tokens}}}
}

// retires reports whether a prompt leaves at the door for a reason. StaleReserve
// lets those live on that are too long, OtherAbort those that cannot be read:
// with one of them the other reason is looked at as it should be.
func (p *Prefill) retires(why Reason) bool {
	long, other := p.cfg.Switches.Has(StaleReserve), p.cfg.Switches.Has(OtherAbort)
	if long != other && (why == OverInput && other || why == Unreadable && long) {
		return true
	}
	return why != Served && p.on.Any(Retire)
}

// check notes what is wrong with the length of a prompt. Like SGLang's it puts a placeholder
// of one token in place of a prompt that is too long; the refusal is pending
// until somebody looks.
func (p *Prefill) check(tokens int) prompt {
	limit := p.cfg.PrefillInput()
	if tokens < limit {
		return prompt{phase: greeted, tokens: tokens}
	}
	return prompt{
		phase: greeted, tokens: 1, placeholder: true,
		pending: Refusal{Reason: OverInput, Have: tokens, Limit: limit},
	}
}

func (p *Prefill) reserved(e Event, r *prompt) []Action {
	if r.phase != greeted {
		return nil
	}
	need, stale := p.cfg.pages(r.tokens), p.cfg.Switches.Has(StaleReserve|OtherAbort)
	if len(e.Pages) != need && !stale || len(e.Pages) < need {
		why := Refusal{Reason: Disagreement, Have: r.tokens, Limit: len(e.Pages) * p.cfg.PageSize}
		return p.refuse(e.Room, r, why)
	}
	r.phase, r.lease = queued, lease{e.Gen, e.Pages}
	p.queue = append(p.queue, e.Room)
	return p.schedule()
}

// schedule starts the prompt at the head of the queue if nothing runs and its
// pages are free. Those who hold pages are computed or sent, which both end
// without more pages, so the head's turn comes.
func (p *Prefill) schedule() []Action {
	if p.busy != 0 || len(p.queue) == 0 {
		return nil
	}
	room := p.queue[0]
	r := p.rooms.get(room)
	local, ok := p.pool.Alloc(room, p.cfg.pages(r.tokens))
	if !ok {
		return nil
	}
	p.queue = p.queue[1:]
	p.busy, r.phase = room, running
	r.local, r.source, r.owned = local, p.pool.leases, true
	run := Event{Kind: Run, Room: room, Tokens: r.tokens, Placeholder: r.placeholder}
	return append(zero(p.on, room, local), Action{Self, run})
}

// ran has what has been computed written to decode's pages.
func (p *Prefill) ran(e Event, r *prompt) []Action {
	if r.phase != running {
		return nil
	}
	p.busy, r.token, r.stop = 0, e.Token, e.Stop
	return append(p.write(e.Room, r), p.schedule()...)
}

func (p *Prefill) ack(room Room, r *prompt) []Action {
	if r.phase != sent {
		return nil
	}
	p.free(room, r)
	p.rooms.del(room)
	return append([]Action{{Self, Event{Kind: Forget, Room: room}}}, p.schedule()...)
}

// free lets go of the pages that a room still owns.
func (p *Prefill) free(room Room, r *prompt) {
	if r.owned {
		p.pool.Release(room, r.local)
		r.owned = false
	}
}

func (p *Prefill) refuse(room Room, r *prompt, why Refusal) []Action {
	return append([]Action{{ToRouter, Event{Kind: Refused, Room: room, Refusal: why}}}, p.drop(room, r)...)
}

// drop lets go of a room at any point of its life.
func (p *Prefill) drop(room Room, r *prompt) []Action {
	var out []Action
	if r.phase == running || r.phase == sending {
		out = append(out, Action{Self, Event{Kind: Halt, Room: room}})
	}
	if r.phase == sending {
		p.stop(room, r)
	} else {
		p.free(room, r)
	}
	if p.busy == room {
		p.busy = 0
	}
	p.queue = without(p.queue, room)
	p.rooms.del(room)
	return append(append(out, Action{Self, Event{Kind: Forget, Room: room}}), p.schedule()...)
}

func zero(on Defences, room Room, pages []int32) []Action {
	if !on.Any(ZeroOnAlloc) {
		return nil
	}
	out := make([]Action, len(pages))
	for i, page := range pages {
		out[i] = Action{Self, Event{Kind: Zero, Room: room, To: page}}
	}
	return out
}

func without(queue []Room, room Room) []Room {
	if i := slices.Index(queue, room); i >= 0 {
		return slices.Delete(queue, i, i+1)
	}
	return queue
}
