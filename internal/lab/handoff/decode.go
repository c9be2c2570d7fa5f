package handoff

import "slices"

// Decode is the machine of the node that answers. It reserves pages for the
// whole prompt before prefill computes it, and lets answers grow page by page;
// a request is let in only if all that it may ever need is free and not
// promised to others, so growth never fails.
type Decode struct {
	cfg      Config
	pool     Pool
	rooms    rooms[answer]
	queue    []Room // known from both sides, waits for pages
	promised int    // pages that those let in may still ask for
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
	pages   []int32  // page table
	written []uint64 // bit i: page i of the prompt has been written
	made    int      // tokens of the answer so far
}

// NewDecode returns a decode with all its pages free.
func NewDecode(cfg Config) *Decode {
	return &Decode{cfg: cfg, pool: NewPool(cfg.DecodePages, cfg.Policy)}
}

// Pool is the node's pool, to look at.
func (d *Decode) Pool() *Pool { return &d.pool }

// Failed is how many handoffs did not end in a commit.
func (d *Decode) Failed() int64 { return d.failed }

// Running is how many requests are being answered.
func (d *Decode) Running() int { return d.count(running) }

// Waiting is how many requests wait for pages.
func (d *Decode) Waiting() int { return len(d.queue) }

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
	case Stepped:
		return d.emit(e, r)
	case Abort, Gone:
		return d.drop(e.Room, r)
	}
	broken("decode cannot take %v", e.Kind)
	return nil
}

// submit is decode's door, with decode's own pool as the measure.
func (d *Decode) submit(e Event) []Action {
	if limit := d.cfg.DecodeInput(); e.Tokens >= limit {
		why := Refusal{Reason: OverInput, Have: e.Tokens, Limit: limit}
		return d.refuse(e.Room, why)
	}
	r := d.rooms.put(e.Room)
	if r.tokens != 0 {
		broken("room %d is submitted to decode twice", e.Room)
	}
	r.tokens, r.maxNew = e.Tokens, d.cfg.answer(e.Tokens, e.MaxNew)
	r.total = d.cfg.pages(r.tokens + r.maxNew - 1)
	return d.meet(e.Room, r)
}

func (d *Decode) hello(e Event) []Action {
	r := d.rooms.put(e.Room)
	r.hello = e.Tokens
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
	case r.hello != r.tokens && !d.cfg.Switches.StaleReserve:
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
		r.pages = d.alloc(room, d.cfg.pages(r.tokens))
		r.phase, r.written = reserved, make([]uint64, (len(r.pages)+63)/64)
		d.promised += r.total - len(r.pages)
		d.queue = d.queue[1:]
		out = append(out, zero(d.cfg, room, r.pages)...)
		out = append(out, Action{ToPrefill, Event{Kind: Reserved, Room: room, Pages: slices.Clone(r.pages)}})
	}
	return out
}

func (d *Decode) alloc(room Room, n int) []int32 {
	pages, ok := d.pool.Alloc(room, n)
	if !ok {
		broken("%d pages promised to room %d and only %d free", n, room, d.pool.Free())
	}
	return pages
}

// page lets a page in only where the room owns the page that it is for.
func (d *Decode) page(e Event, r *answer) []Action {
	if r.phase != reserved || e.Index < 0 || e.Index >= len(r.pages) || r.pages[e.Index] != e.To {
		return nil
	}
	r.written[e.Index/64] |= 1 << (e.Index % 64)
	return []Action{{Self, Event{Kind: Write, Room: e.Room, Index: e.Index, To: e.To}}}
}

// meta commits the handoff: it compares what was sent with what was reserved,
// and the answer begins.
func (d *Decode) meta(e Event, r *answer) []Action {
	if r.phase != reserved {
		return nil
	}
	if !d.cfg.Switches.StaleReserve && (e.Sent != r.tokens || !r.covered()) {
		return d.refuse(e.Room, Refusal{Reason: Incomplete, Have: e.Sent, Limit: r.tokens})
	}
	r.phase, r.prompt = running, e.Prompt
	if d.cfg.Switches.DecodeUsage {
		r.prompt = r.tokens
	}
	return append([]Action{{ToPrefill, Event{Kind: Ack, Room: e.Room}}}, d.emit(e, r)...)
}

func (r *answer) covered() bool {
	for i := range r.pages {
		if r.written[i/64]&(1<<(i%64)) == 0 {
			return false
		}
	}
	return true
}

// emit takes the next token of an answer and either ends it or asks for one more.
func (d *Decode) emit(e Event, r *answer) []Action {
	if r.phase != running {
		return nil
	}
	if e.Stop {
		return d.finish(e.Room, r, Stopped)
	}
	r.made++
	out := []Action{{ToRouter, Event{Kind: Token, Room: e.Room, Token: e.Token}}}
	if r.made >= r.maxNew {
		return append(out, d.finish(e.Room, r, Length)...)
	}
	pos := r.tokens + r.made - 1
	if pos/d.cfg.PageSize >= len(r.pages) {
		more := d.alloc(e.Room, 1)
		r.pages = append(r.pages, more...)
		d.promised--
		out = append(out, zero(d.cfg, e.Room, more)...)
	}
	return append(out, Action{Self, Event{Kind: Step, Room: e.Room, Pos: pos, Token: e.Token}})
}

func (d *Decode) finish(room Room, r *answer, why Finish) []Action {
	done := Event{Kind: Done, Room: room, Finish: why, Prompt: r.prompt, Made: r.made}
	return append([]Action{{ToRouter, done}}, d.release(room, r)...)
}

func (d *Decode) refuse(room Room, why Refusal) []Action {
	out := []Action{{ToRouter, Event{Kind: Refused, Room: room, Refusal: why}}}
	if r := d.rooms.get(room); r != nil {
		return append(out, d.drop(room, r)...)
	}
	return append(out, Action{Self, Event{Kind: Forget, Room: room}})
}

// drop ends a room early. Pages on their way to it find that it owns none.
func (d *Decode) drop(room Room, r *answer) []Action {
	if r.phase == reserved {
		d.failed++
	}
	return d.release(room, r)
}

// release lets go of all that a room holds and lets in whom that makes way for.
func (d *Decode) release(room Room, r *answer) []Action {
	if r.phase == reserved || r.phase == running {
		d.promised -= r.total - len(r.pages)
		d.pool.Release(room, r.pages)
	}
	d.queue = without(d.queue, room)
	d.rooms.del(room)
	return append([]Action{{Self, Event{Kind: Forget, Room: room}}}, d.reserve()...)
}
