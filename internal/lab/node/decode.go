package node

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/model"
)

// RunDecode serves as the decode node with the pool mem over a handshaken
// connection to the router, both of which it closes, and with the prefill that
// it meets. It returns nil once the router hangs up or ctx ends.
func RunDecode(ctx context.Context, s Setup, m *model.Model, mem *Memory, router net.Conn, meeting Meeting) error {
	trace, err := OpenTrace(s.Trace, handoff.ToDecode)
	if err != nil {
		return errors.Join(err, router.Close(), mem.Close())
	}
	d := &decode{
		node:    newNode(s, m, mem, handoff.ToDecode, handoff.ToPrefill, router, meeting),
		machine: handoff.NewDecode(s.Handoff),
		asked:   map[handoff.Room]*asked{},
		rows:    rows{skewed: s.Also.Faults.Any(RowSkew)},
	}
	d.slots.clean = d.also.Any(SlotReset|ZeroSlots) || !s.Also.Faults.Any(DirtyRecurrent)
	if s.Also.Faults.Any(MetadataSlot) {
		d.records = &records{clean: d.also.Any(ZeroSlots), named: d.also.Any(SlotTags)}
	}
	d.trace = trace
	trace.Start()
	return d.run(ctx, d)
}

// decode never sees a prompt's text: what it knows of it is its length and the
// KV in the pages.
type decode struct {
	*node
	machine *handoff.Decode
	asked   map[handoff.Room]*asked
	steps   []handoff.Event // one for each answer under way
	rows    rows            // of them
	slots   slots
	records *records       // with fault MetadataSlot
	overdue overdue        // with DrainDeadline
	owners  []handoff.Room // by page, while tables are audited
	begins  time.Time      // when the next step may, with a DecodeRate
	frame   *Frame         // what is being taken
	renamed handoff.Room   // with fault IDReuse: a room whose next Forget is of the request before
}

type asked struct {
	tokens   int // length of the prompt
	cached   int // of them, how many prefill has not computed
	model    *model.Model
	sampling Sampling
	guard    guard // of its pages, from Reserved on
	slot     *slot // from the first step on
	fed      bool  // it has had a step
	last     byte  // token that its last step has chosen
	shared   bool  // a page of its table is in another one too
}

func (d *decode) take(f *Frame) {
	if f.Event.Kind == handoff.Submit {
		if before := d.asked[f.Event.Room]; before != nil {
			d.renamed = f.Event.Room
			d.slots.give(before.slot)
		}
		d.asked[f.Event.Room] = &asked{tokens: f.Event.Tokens, model: d.with(f.Of.Adapter), sampling: f.Sampling}
	}
	if f.Event.Kind == handoff.Gone {
		d.overdue.gone(f.Event)
	}
	if d.records != nil && f.Event.Kind == handoff.Meta {
		d.record(f)
		return
	}
	d.arrive(f)
	d.lookInto()
}

// arrive gives the machine a frame's event.
func (d *decode) arrive(f *Frame) {
	if a := d.asked[f.Event.Room]; a != nil && f.Event.Kind == handoff.Meta {
		a.cached = f.Cached
	}
	d.frame = f
	d.step(f.Event)
	d.frame = nil
}

func (d *decode) step(e handoff.Event) {
	actions := d.machine.Step(e)
	d.trace.Step(e, actions)
	for _, a := range actions {
		switch a.To {
		case handoff.ToRouter:
			d.say(a.Event)
		case handoff.ToPrefill:
			if a.Kind == handoff.Reserved {
				d.asked[a.Room].guard.owner = owner(d.epoch, a.Room, a.Gen)
				if d.records != nil {
					a.Event.Index = d.records.give(a.Room)
				}
			}
			if a.Kind == handoff.Quiesce && d.also.Any(DrainDeadline) {
				d.overdue.asked(a.Event, time.Now())
			}
			d.toPeer(&Frame{Event: a.Event})
		default:
			d.do(a)
		}
	}
}

// say tells the router of an answer.
func (d *decode) say(e handoff.Event) {
	f := Frame{Event: e}
	if a := d.asked[e.Room]; a != nil && tellsCached(e.Kind) {
		f.Cached = a.cached
	}
	d.out = append(d.out, f)
}

func (d *decode) do(a handoff.Action) {
	switch a.Kind {
	case handoff.Zero:
		d.cache.Zero(a.Event.To)
	case handoff.Stamp:
		o := owner(d.epoch, a.Room, a.Gen)
		d.mem.mark(a.Event.To, markOf(o, a.Index, d.asked[a.Room].tokens, d.setup.Handoff.PageSize))
	case handoff.Write:
		d.mem.store(a.Event.To, d.frame.Data, d.frame.Mark, d.on.Any(handoff.TagsByWriter))
	case handoff.Verify:
		d.step(handoff.Event{Kind: handoff.Verified, Room: a.Room, OK: d.verify(a.Event)})
	case handoff.Step:
		d.steps = append(d.steps, a.Event)
	case handoff.Forget:
		if before := d.asked[a.Room]; before != nil && d.renamed != a.Room {
			d.slots.give(before.slot)
			delete(d.asked, a.Room)
			if d.records != nil {
				d.records.end(a.Room)
			}
		}
		d.renamed = 0
		d.steps = slices.DeleteFunc(d.steps, func(s handoff.Event) bool { return s.Room == a.Room })
	default:
		unknown(a)
	}
}

// paced reports whether enough time has passed for another step.
func (d *decode) paced(now time.Time) bool {
	rate := d.setup.DecodeRate
	if rate <= 0 || len(d.steps) == 0 {
		return true
	}
	if now.Before(d.begins) {
		return false
	}
	d.begins = now.Add(time.Second / time.Duration(rate))
	return true
}

// verify compares the tags of a room's pages, and their checksum with the one
// that has come with the metadata, as far as they are on.
func (d *decode) verify(e handoff.Event) bool {
	if !d.owns(e.Room, e.Tokens) {
		return false
	}
	if !e.Summed {
		return true
	}
	table := d.machine.Table(e.Room)
	if !d.on.Any(handoff.ChecksumReceiver) {
		size := d.setup.Handoff.PageSize
		table = table[:min(len(table), (e.Sent+size-1)/size)]
	}
	return checksum(d.cache, table) == [sumBytes]byte(d.frame.Data)
}

// owns compares the tags of the pages of the first tokens of a room.
func (d *decode) owns(room handoff.Room, tokens int) bool {
	return !d.on.Any(tagged) ||
		d.asked[room].guard.owns(d.mem, d.machine.Table(room), tokens, d.setup.Handoff.PageSize)
}

// work computes one token of every answer under way, as a batch of rows.
func (d *decode) work() bool {
	if !d.paced(time.Now()) {
		return false
	}
	steps := map[handoff.Room]handoff.Event{}
	d.rows.update(d.steps)
	for _, s := range d.steps {
		steps[s.Room] = s
		if a := d.asked[s.Room]; a.slot == nil {
			a.slot = d.slots.take()
		}
	}
	d.steps = nil
	d.audit()
	results := make([]result, len(d.rows.computed))
	d.each(len(results), func(row, workers int) {
		room := d.rows.computed[row]
		results[row] = result{room, d.next(steps[room], workers)}
	})
	for row, r := range results {
		d.step(d.back(row, r))
	}
	d.lookInto()
	if len(d.steps) == 0 {
		d.slots.tidy()
	}
	return len(d.steps) > 0
}

// each calls f for 0 to n-1, with as many workers as there are: side by side
// where there are several answers, which own different pages, else within one.
func (d *decode) each(n int, f func(i, workers int)) {
	lanes := min(n, d.setup.Workers)
	if lanes < 2 {
		for i := range n {
			f(i, d.setup.Workers)
		}
		return
	}
	var wg sync.WaitGroup
	for lane := range lanes {
		wg.Go(func() {
			for i := lane; i < n; i += lanes {
				f(i, 1)
			}
		})
	}
	wg.Wait()
}

// next computes a token, unless a page that it would come from is not the
// room's own. One-sided writes may land while it is computed: what was read is
// known to have been the room's own only if it still is.
func (d *decode) next(s handoff.Event, workers int) handoff.Event {
	mismatch := handoff.Event{Kind: handoff.Mismatch, Room: s.Room}
	a := d.asked[s.Room]
	if a.shared || !d.owns(s.Room, s.Pos) {
		return mismatch
	}
	if a.fed { // what was chosen has not left the row; s.Token is what came back
		s.Token = a.last
	}
	table := d.machine.Table(s.Room)
	a.model.Write(d.cache, table, s.Pos, []byte{s.Token})
	if !d.grow(s, table) {
		return mismatch
	}
	logits := a.model.LogitsAfter(&a.slot.state, d.cache, table, s.Pos, s.Token, workers)
	if d.setup.Handoff.OneSided && !d.owns(s.Room, s.Pos+1) {
		return mismatch
	}
	token := a.sampling.Choose(&logits, s.Pos-a.tokens+1)
	a.fed, a.last = true, token
	return handoff.Event{Kind: handoff.Stepped, Room: s.Room, Token: token, Stop: token == model.EndOfTurn}
}

// grow tags the page of the token that has been written.
func (d *decode) grow(s handoff.Event, table []int32) bool {
	if !d.on.Any(tagged) {
		return true
	}
	size := d.setup.Handoff.PageSize
	g, page := &d.asked[s.Room].guard, table[s.Pos/size]
	if s.Pos%size == 0 && d.on.Any(handoff.TagsByWriter) {
		d.mem.mark(page, markOf(g.owner, s.Pos/size, s.Pos+1, size))
		return true
	}
	return g.grow(d.mem, page, s.Pos, size)
}

func (d *decode) met(Peer)    {}
func (d *decode) lost()       { d.overdue = nil }
func (d *decode) ready() bool { return false }

func (d *decode) due(now time.Time) time.Duration {
	wait := d.overdue.wait(now)
	if d.setup.DecodeRate <= 0 || len(d.steps) == 0 {
		return wait
	}
	step := max(0, d.begins.Sub(now))
	if wait < 0 {
		return step
	}
	return min(wait, step)
}

func (d *decode) send(now time.Time) {
	for _, e := range d.overdue.take(now) {
		d.step(e)
	}
}

func (d *decode) stats() Stats {
	return Stats{
		UsedPages: d.machine.Pool().Used(), DrainingPages: d.machine.Draining(), Running: d.machine.Running(),
		Waiting: d.machine.Waiting(), Failed: d.machine.Failed(),
	}
}
