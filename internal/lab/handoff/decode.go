package handoff

import "slices"

// Decode is the machine of the node that answers. It reserves pages for the
// whole prompt before prefill computes it, and lets answers grow page by page;
// a request is let in only if all that it may ever need is free and not
// promised to others, so growth never fails.
type Decode struct {
	cfg      Config
	on       Defences
	pool     Pool
	rooms    rooms[answer]
	queue    []Room // known from both sides, waits for pages
	promised int    // pages that those let in may still ask for
	draining []draining
	newest   Room // the highest room submitted
	failed   int64
}

// answer is a request as decode knows it.
type answer struct {
	phase   phase
	tokens  int      // length of the prompt
	maxNew  int      // longest answer, shortened to what the pool can ever hold
	hello   int      // length of the prompt as prefill said it
	prompt  int      // length of the prompt for the answer's usage
	total   int      // pages it may ever need
	gen     uint64   // lease of its pages
	pages   []int32  // page table; what is in it does not change, it grows by a copy
	written []uint64 // bit i: page i of the prompt has been written; while reserved
	token   byte     // first token of the answer; while verifying
	stop    bool     // it ends the answer; likewise
	made    int      // tokens of the answer so far
	aborted bool     // with fault DoubleOwner: a step of it is still under way
}

// NewDecode returns a decode with all its pages free.
func NewDecode(cfg Config) *Decode {
	d := &Decode{cfg: cfg, on: cfg.Switches.On(), pool: NewPool(cfg.DecodePages, cfg.Policy)}
	d.pool.careless = cfg.Switches.Has(DoubleOwner)
	return d
}

// Pool is the node's pool, to look at.
func (d *Decode) Pool() *Pool { return &d.pool }

// Failed is how many handoffs did not end in a commit.
func (d *Decode) Failed() int64 { return d.failed }

// Running is how many requests are being answered.
func (d *Decode) Running() int { return d.count(running) }

// Waiting is how many requests wait for pages.
func (d *Decode) Waiting() int { return len(d.queue) }

// Draining is how many pages wait for prefill to say that nothing is written to
// them any more.
func (d *Decode) Draining() int {
	n := 0
	for _, q := range d.draining {
		n += len(q.lease.pages)
	}
	return n
}

// Lease is the lease of a room's pages, to look at; 0 for none.
func (d *Decode) Lease(room Room) uint64 {
	if r := d.rooms.get(room); r != nil {
		return r.gen
	}
	return 0
}

// Table is the page table of a room, to look at.
func (d *Decode) Table(room Room) []int32 {
	if r := d.rooms.get(room); r != nil {
		return r.pages
	}
	return nil
}

func (d *Decode) count(ph phase) int {
	n := 0
	for _, e := range d.rooms {
		if e.val.phase == ph {
			n++
		}
	}
	return n
}

// Step takes one event. Events of rooms that are not held here are late and
// mean nothing; so are pages for a room that does not own them.
func (d *Decode) Step(e Event) []Action {
	switch e.Kind {
	case Submit:
		return d.submit(e)
	case Hello:
		return d.hello(e)
	case Gone:
		return d.gone(e)
	case PeerLost:
		return d.peerLost()
	case Reset:
		return d.reset()
	}
	r := d.rooms.get(e.Room)
	if r == nil {
		return nil
	}
	switch e.Kind {
	case Page:
		return d.page(e, r)
	case Meta:
		return d.meta(e, r)
	case Verified:
		return d.verified(e, r)
	case Stepped:
		return d.stepped(e, r)
	case Mismatch:
		return d.mismatch(e, r)
	case Abort:
		return d.abort(e.Room, r)
	}
	broken("decode cannot take %v", e.Kind)
	return nil
}

// submit is decode's door, with decode's own pool as the measure.
func (d *Decode) submit(e Event) []Action {
	if d.on.Any(UniqueIDs) && e.Room <= d.newest {
		broken("room %d is submitted to decode after room %d", e.Room, d.newest)
	}
	d.newest = max(d.newest, e.Room)
	if limit := d.cfg.DecodeInput(); e.Tokens >= limit {
		why := Refusal{Reason: OverInput, Have: e.Tokens, Limit: limit}
		return d.refuse(e.Room, why)
	}
	var out []Action
	r := d.rooms.put(e.Room)
	if r.tokens != 0 { // the id of a request that the router has ended by mistake
		out = d.end(e.Room, true)
		r = d.rooms.put(e.Room)
	}
	r.tokens, r.maxNew = e.Tokens, d.cfg.answer(e.Tokens, e.MaxNew)
	r.total = d.cfg.pages(r.tokens + r.maxNew - 1)
	return append(out, d.meet(e.Room, r)...)
}

// hello takes what prefill says of a prompt that it has let in. Rooms are
// submitted in order, so one that is not held and not above all others is over.
func (d *Decode) hello(e Event) []Action {
	if d.on.Any(UniqueIDs) && e.Room <= d.newest && d.rooms.get(e.Room) == nil {
		return nil
	}
	r := d.rooms.put(e.Room)
	if r.hello == 0 {
		r.hello = e.Tokens
	}
	return d.meet(e.Room, r)
}

// meet queues a room once it is known from both sides.
func (d *Decode) meet(room Room, r *answer) []Action {
	switch {
	case r.tokens == 0:
		r.phase = greeted
		return nil
	case r.hello == 0:
		r.phase = submitted
		return nil
	case r.phase != submitted && r.phase != greeted:
		return nil
	case r.hello != r.tokens && !d.cfg.Switches.Has(StaleReserve|OtherAbort):
		return d.refuse(room, Refusal{Reason: Disagreement, Have: r.hello, Limit: r.tokens})
	}
	r.phase = queued
	d.queue = append(d.queue, room)
	return d.reserve()
}

// reserve lets in requests from the head of the queue while all that they may
// need is free, and tells prefill where their prompts go.
func (d *Decode) reserve() []Action {
	var out []Action
	for len(d.queue) > 0 {
		room := d.queue[0]
		r := d.rooms.get(room)
		if r.total > d.pool.Free()-d.promised {
			break
		}
		pages, ok := d.pool.Alloc(room, d.cfg.pages(r.tokens))
		if !ok {
			broken("%d pages promised to room %d and only %d free", r.total, room, d.pool.Free())
		}
		r.pages, r.gen = pages, d.pool.leases
		r.phase, r.written = reserved, make([]uint64, (len(pages)+63)/64)
		d.promised += r.total - len(pages)
		d.queue = d.queue[1:]
		out = append(out, d.fresh(room, r, 0)...)
		out = append(out, Action{ToPrefill, Event{
			Kind: Reserved, Room: room, Pages: pages, Gen: r.gen,
		}})
	}
	return out
}

// fresh prepares the pages of a room from page first of its table on.
func (d *Decode) fresh(room Room, r *answer, first int) []Action {
	out := zero(d.on, room, r.pages[first:])
	if d.on.Any(TagsAtReserve) {
		for i := first; i < len(r.pages); i++ {
			out = append(out, Action{Self, Event{Kind: Stamp, Room: room, Index: i, To: r.pages[i], Gen: r.gen}})
		}
	}
	return out
}

// grow gives a room the page for its next token. It was promised.
func (d *Decode) grow(room Room, r *answer) []Action {
	more, ok := d.pool.Grow(room, r.gen, 1)
	if !ok {
		broken("a page promised to room %d and none free", room)
	}
	r.pages = slices.Concat(r.pages, more)
	d.promised--
	return d.fresh(room, r, len(r.pages)-1)
}

// stepped takes what came of a step.
func (d *Decode) stepped(e Event, r *answer) []Action {
	if r.aborted {
		return d.end(e.Room, false) // frees its pages a second time
	}
	return d.emit(e, r)
}

// emit takes the next token of an answer and either ends it or asks for one more.
func (d *Decode) emit(e Event, r *answer) []Action {
	switch {
	case r.phase != running:
		return nil
	case !d.holds(r):
		return d.refuse(e.Room, Refusal{Reason: NotOwned})
	case e.Stop:
		return d.finish(e.Room, r, Stopped)
	}
	r.made++
	out := []Action{{ToRouter, Event{Kind: Token, Room: e.Room, Token: e.Token}}}
	if r.made >= r.maxNew {
		return append(out, d.finish(e.Room, r, Length)...)
	}
	pos := r.tokens + r.made - 1
	if pos/d.cfg.PageSize >= len(r.pages) {
		out = append(out, d.grow(e.Room, r)...)
	}
	return append(out, Action{Self, Event{Kind: Step, Room: e.Room, Pos: pos, Token: e.Token}})
}

func (d *Decode) finish(room Room, r *answer, why Finish) []Action {
	done := Event{Kind: Done, Room: room, Finish: why, Prompt: r.prompt, Made: r.made}
	return append([]Action{{ToRouter, done}}, d.end(room, true)...)
}

func (d *Decode) refuse(room Room, why Refusal) []Action {
	out := []Action{{ToRouter, Event{Kind: Refused, Room: room, Refusal: why}}}
	if d.rooms.get(room) != nil {
		return append(out, d.end(room, true)...)
	}
	return append(out, Action{Self, Event{Kind: Forget, Room: room}})
}

func (d *Decode) abort(room Room, r *answer) []Action {
	if d.cfg.Switches.Has(DoubleOwner) && r.phase == running && !r.aborted {
		r.aborted = true
		d.promised -= r.total - len(r.pages)
		r.total = len(r.pages)
		d.pool.Release(room, r.pages)
		return d.reserve()
	}
	return d.end(room, true)
}

// end lets go of all that a room holds and lets in whom that makes way for. ask
// says that prefill can be asked whether it still writes to the room's pages.
func (d *Decode) end(room Room, ask bool) []Action {
	var out []Action
	r := d.rooms.get(room)
	if r.phase == reserved || r.phase == verifying {
		d.failed++
	}
	if r.phase == reserved && d.on.Any(QuiesceFirst) {
		out = d.drain(room, r, ask)
	}
	if r.pages != nil {
		d.promised -= r.total - len(r.pages)
		d.pool.Release(room, r.pages)
	}
	d.queue = without(d.queue, room)
	d.rooms.del(room)
	return append(append(out, Action{Self, Event{Kind: Forget, Room: room}}), d.reserve()...)
}
