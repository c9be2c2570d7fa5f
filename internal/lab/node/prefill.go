package node

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/model"
	"github.com/kvcanary/kvcanary/internal/lab/prefix"
)

// chunk is how many tokens of a prompt are computed in one turn: about 5 ms,
// so that aborts are noticed and pages of the prompt before keep flowing.
const chunk = 2048

// RunPrefill serves as the prefill node over a handshaken connection to the
// router, which it closes, and with the decode that it meets. It returns nil
// once the router hangs up or ctx ends.
func RunPrefill(ctx context.Context, s Setup, m *model.Model, router net.Conn, meeting Meeting) error {
	trace, err := OpenTrace(s.Trace, handoff.ToPrefill)
	if err != nil {
		return errors.Join(err, router.Close())
	}
	mem := NewMemory(s.Handoff.PrefillPages, s.Handoff.PageSize)
	p := &prefill{
		node:    newNode(s, m, mem, handoff.ToPrefill, handoff.ToDecode, router, meeting),
		machine: handoff.NewPrefill(s.Handoff),
		prompts: map[handoff.Room]prompt{},
		lags:    rand.New(rand.NewPCG(uint64(s.Lag), 1)),
		reuse:   newReuse(s.Prefix),
		kept:    newKept(s),
	}
	p.trace = trace
	trace.Start()
	return p.run(ctx, p)
}

type prefill struct {
	*node
	machine *handoff.Prefill
	prompts map[handoff.Room]prompt
	job     job
	wake    time.Time // when the job goes on, if it waits for that
	reuse   *reuse    // nil without a prefix cache
	kept    *kept     // nil without slots

	unsent []handoff.Action // for decode, in order
	flying []flight         // one-sided writes that have begun
	over   []handoff.Event  // what became of writes, for the machine
	late   []late           // with fault MetadataSlot: records whose write has begun
	remote *Memory          // decode's pool, if writes are one-sided
	lags   *rand.Rand
}

type prompt struct {
	tokens   []byte
	of       Origin
	sampling Sampling
	sum      [sumBytes]byte // of its pages, as they were computed
	cached   int            // tokens of it that were not computed
	record   int            // with fault MetadataSlot: the slot of its metadata
}

// job is the prompt being computed; room 0 is none.
type job struct {
	room   handoff.Room
	model  *model.Model
	tokens []byte // pictures in place of their placeholders
	table  model.Table
	done   int         // tokens whose KV is written
	due    time.Time   // when the next tokens may be computed at the earliest
	slot   *promptSlot // nil without slots
	reused *reused     // nil if nothing is looked for or kept in the prefix cache
}

func (p *prefill) take(f *Frame) {
	if f.Event.Kind == handoff.Submit {
		p.prompts[f.Event.Room] = prompt{tokens: f.Data, of: f.Of, sampling: f.Sampling}
	}
	if r, ok := p.prompts[f.Event.Room]; ok && f.Event.Kind == handoff.Reserved {
		r.record, f.Event.Index = f.Event.Index, 0
		p.prompts[f.Event.Room] = r
	}
	p.step(f.Event)
}

// step gives the machine an event, and then what became of the writes that
// were dropped for it.
func (p *prefill) step(e handoff.Event) {
	p.feed(e)
	p.settle()
}

// settle tells the machine of the writes that are over.
func (p *prefill) settle() {
	for len(p.over) > 0 {
		e := p.over[0]
		p.over = p.over[1:]
		p.feed(e)
	}
}

func (p *prefill) feed(e handoff.Event) {
	actions := p.machine.Step(e)
	p.trace.Step(e, actions)
	for _, a := range actions {
		switch a.To {
		case handoff.ToRouter:
			p.tell(a.Event)
		case handoff.ToDecode:
			p.unsent = append(p.unsent, a)
		default:
			p.do(a)
		}
	}
}

func (p *prefill) do(a handoff.Action) {
	switch a.Kind {
	case handoff.Zero:
		p.cache.Zero(a.Event.To)
	case handoff.Run:
		p.begin(a)
	case handoff.Halt:
		if p.job.room == a.Room {
			p.halt()
		}
		p.unsent = p.dropped(p.unsent, func(e handoff.Event) bool { return e.Room == a.Room && e.Kind == handoff.Page })
	case handoff.Forget:
		delete(p.prompts, a.Room)
	default:
		unknown(a)
	}
}

// begin sets out to compute a prompt. Until that is done its pages are nobody's.
func (p *prefill) begin(a handoff.Action) {
	tokens := p.prompts[a.Room].tokens
	if a.Placeholder {
		tokens = []byte{model.DocStart}
	}
	of := p.prompts[a.Room].of
	p.job = job{room: a.Room, model: p.with(of.Adapter), tokens: of.embed(tokens[:a.Tokens]), table: p.machine.Table(a.Room)}
	for _, page := range p.job.table {
		p.mem.clear(page)
	}
	if p.kept != nil && !a.Placeholder {
		p.restore(of)
	}
	if p.reuse != nil && !a.Placeholder && p.job.done == 0 {
		p.job.reused = p.reuse.find(of.prompt(tokens[:a.Tokens]))
	}
}

// restore begins with what a slot has of the prompt.
func (p *prefill) restore(of Origin) {
	j := &p.job
	r := p.prompts[j.room]
	j.slot, j.done, r.cached = p.kept.restore(j, of, p.cache)
	p.prompts[j.room] = r
}

// halt lets go of the prompt under way.
func (p *prefill) halt() {
	if p.reuse != nil {
		p.reuse.end(p.job.reused)
	}
	p.job, p.wake = job{}, time.Time{}
}

// work computes the next chunk of the prompt under way, or copies what the prefix
// cache has of it.
func (p *prefill) work() bool {
	j := &p.job
	switch {
	case j.room == 0:
		return false
	case j.reused != nil && j.reused.plan == nil:
		p.load(j)
		return true
	}
	end := min(j.done+p.turn(), len(j.tokens))
	if !p.paced(j, end, time.Now()) {
		return false
	}
	p.compute(j, end)
	if j.done = end; end == len(j.tokens) {
		p.first()
	}
	return true
}

// turn is how many tokens are computed in one turn: those of ten milliseconds, if
// there is a rate.
func (p *prefill) turn() int {
	if rate := p.setup.PrefillRate; rate > 0 {
		return min(chunk, max(1, rate/100))
	}
	return chunk
}

// paced reports whether enough time has passed to compute a prompt up to end.
func (p *prefill) paced(j *job, end int, now time.Time) bool {
	rate := p.setup.PrefillRate
	if rate <= 0 {
		return true
	}
	if j.due.IsZero() {
		j.due = now
	}
	due := j.due.Add(time.Duration(end-j.done) * time.Second / time.Duration(rate))
	if now.Before(due) {
		p.wake = due
		return false
	}
	j.due, p.wake = due, time.Time{}
	return true
}

// load copies what there is of a prompt, and finds room for the rest of it.
func (p *prefill) load(j *job) {
	if !p.reuse.load(j.reused, p.cache, j.table) {
		return
	}
	r := p.prompts[j.room]
	j.done = j.reused.loaded * p.setup.Handoff.PageSize
	r.cached = j.done
	p.prompts[j.room] = r
	p.reuse.plan(j.reused)
	p.keep(j, j.done)
}

// compute writes the KV of a prompt up to end and keeps its whole blocks.
func (p *prefill) compute(j *job, end int) {
	now := end
	if j.reused != nil && p.reuse.cache.Early(prefix.CopyRace) {
		now = j.done + (end-j.done)/2
	}
	j.model.Write(p.cache, j.table, j.done, j.tokens[j.done:now])
	p.keep(j, end)
	j.model.Write(p.cache, j.table, now, j.tokens[now:end])
}

// keep puts the whole blocks among the first tokens of a prompt into the prefix
// cache.
func (p *prefill) keep(j *job, tokens int) {
	if j.reused != nil {
		p.reuse.store(j.reused, p.cache, j.table, tokens)
		p.reuse.commit(j.reused, tokens)
	}
}

// first picks the first token of the answer, which ends prefill's part of it.
func (p *prefill) first() {
	j := p.job
	p.job = job{}
	if j.slot != nil {
		p.kept.save(j.slot, j, p.prompts[j.room].of, p.cache)
	}
	p.sign(j)
	last := len(j.tokens) - 1
	logits := j.model.Logits(p.cache, j.table, last, j.tokens[last], p.setup.Workers)
	token := p.prompts[j.room].sampling.Choose(&logits, 0)
	if j.reused != nil {
		p.reuse.last(j.reused, p.cache, j.table, token)
	}
	p.step(handoff.Event{Kind: handoff.Ran, Room: j.room, Token: token, Stop: token == model.EndOfTurn})
}

// sign tags the pages that this node has written, for the lease that they will
// be written under on the other side, and takes their checksum.
func (p *prefill) sign(j job) {
	o := owner(p.epoch, j.room, p.machine.Lease(j.room))
	for i, page := range j.table {
		p.mem.mark(page, markOf(o, i, len(j.tokens), p.setup.Handoff.PageSize))
	}
	if p.on.Any(handoff.ChecksumSender | handoff.ChecksumReceiver) {
		r := p.prompts[j.room]
		r.sum = checksum(p.cache, j.table)
		p.prompts[j.room] = r
	}
}

func (p *prefill) met(peer Peer) { p.remote = peer.Memory }

// lost drops all that was meant for a peer that is gone. No write of this node
// lands there any more.
func (p *prefill) lost() {
	p.unsent = p.dropped(p.unsent, func(handoff.Event) bool { return true })
	for _, f := range p.flying {
		p.over = append(p.over, put(f.Event, false))
	}
	p.flying, p.late = nil, nil
	if p.remote != nil {
		p.remote.Close()
		p.remote = nil
	}
	p.settle()
}

func (p *prefill) close() error {
	if p.remote != nil {
		p.remote.Close()
	}
	return p.node.close()
}

func (p *prefill) stats() Stats {
	s := Stats{UsedPages: p.machine.Pool().Used(), Waiting: p.machine.Waiting()}
	if p.job.room != 0 {
		s.Running = 1
	}
	return s
}
