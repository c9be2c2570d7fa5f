package handoff

import "slices"

// Prefill is the machine of the node that computes prompts. It runs one prompt
// at a time, first come first served.
type Prefill struct {
	cfg   Config
	pool  Pool
	rooms rooms[prompt]
	queue []Room // has decode's pages, waits for its turn
	busy  Room   // is being computed
}

// prompt is a request as prefill knows it.
type prompt struct {
	phase       phase
	tokens      int
	placeholder bool
	pending     Refusal // why it ought to be refused
	local       []int32 // pages it is computed in, owned while running and sent
	remote      []int32 // decode's pages for it, from Reserved on
}

type phase uint8

const (
	submitted phase = iota // decode: Submit came, Hello did not
	greeted                // Hello said (prefill), or heard without Submit (decode)
	queued                 // waits for pages or its turn
	running                // is computed (prefill) or answered (decode)
	sent                   // prefill: all pages are on their way
	reserved               // decode: pages are reserved and being filled
)

// NewPrefill returns a prefill with all its pages free.
func NewPrefill(cfg Config) *Prefill {
	return &Prefill{cfg: cfg, pool: NewPool(cfg.PrefillPages, cfg.Policy)}
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

// Step takes one event. Events of rooms that are not held here are late and
// mean nothing.
func (p *Prefill) Step(e Event) []Action {
	if e.Kind == Submit {
		return p.submit(e)
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
		return p.abort(e.Room, r)
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
	if r.pending.Reason != Served && p.cfg.Switches.honoursPending() {
		return []Action{
			{ToRouter, Event{Kind: Refused, Room: e.Room, Refusal: r.pending}},
			{Self, Event{Kind: Forget, Room: e.Room}},
		}
	}
	*p.rooms.put(e.Room) = r
	return []Action{{ToDecode, Event{Kind: Hello, Room: e.Room, Tokens: r.tokens}}}
}

// check notes what is wrong with a prompt. Like SGLang's it puts a placeholder
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
	need := p.cfg.pages(r.tokens)
	if len(e.Pages) != need && !p.cfg.Switches.StaleReserve || len(e.Pages) < need {
		why := Refusal{Reason: Disagreement, Have: r.tokens, Limit: len(e.Pages) * p.cfg.PageSize}
		return append([]Action{{ToRouter, Event{Kind: Refused, Room: e.Room, Refusal: why}}}, p.drop(e.Room, r)...)
	}
	r.phase, r.remote = queued, slices.Clone(e.Pages)
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
	p.busy, r.phase, r.local = room, running, local
	run := Event{Kind: Run, Room: room, Tokens: r.tokens, Placeholder: r.placeholder}
	return append(zero(p.cfg, room, local), Action{Self, run})
}

// ran sends what has been computed: as many pages as this side's prompt has.
func (p *Prefill) ran(e Event, r *prompt) []Action {
	if r.phase != running {
		return nil
	}
	p.busy, r.phase = 0, sent
	out := make([]Action, 0, len(r.local)+1)
	for i, page := range r.local {
		out = append(out, Action{ToDecode, Event{Kind: Page, Room: e.Room, Index: i, From: page, To: r.remote[i]}})
	}
	out = append(out, Action{ToDecode, Event{
		Kind: Meta, Room: e.Room, Token: e.Token, Stop: e.Stop, Sent: r.tokens, Prompt: r.tokens,
	}})
	return append(out, p.schedule()...)
}

func (p *Prefill) ack(room Room, r *prompt) []Action {
	if r.phase != sent {
		return nil
	}
	p.pool.Release(room, r.local)
	p.rooms.del(room)
	return append([]Action{{Self, Event{Kind: Forget, Room: room}}}, p.schedule()...)
}

func (p *Prefill) abort(room Room, r *prompt) []Action { return p.drop(room, r) }

// drop lets go of a room at any point of its life and tells decode, which has
// heard of it.
func (p *Prefill) drop(room Room, r *prompt) []Action {
	var out []Action
	if r.phase == running || r.phase == sent {
		out = append(out, Action{Self, Event{Kind: Halt, Room: room}})
		p.pool.Release(room, r.local)
	}
	if p.busy == room {
		p.busy = 0
	}
	p.queue = without(p.queue, room)
	p.rooms.del(room)
	out = append(out, Action{ToDecode, Event{Kind: Gone, Room: room}}, Action{Self, Event{Kind: Forget, Room: room}})
	return append(out, p.schedule()...)
}

func zero(cfg Config, room Room, pages []int32) []Action {
	if !cfg.Switches.ZeroOnAlloc {
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
