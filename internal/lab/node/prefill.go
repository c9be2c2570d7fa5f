package node

import (
	"context"
	"errors"
	"net"
	"slices"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/model"
)

// chunk is how many tokens of a prompt are computed in one turn: about 5 ms,
// so that aborts are noticed and pages of the prompt before keep flowing.
const chunk = 2048

// RunPrefill serves as the prefill node over handshaken connections to the
// router and to decode, which it closes. It returns nil once the router hangs
// up or ctx ends.
func RunPrefill(ctx context.Context, s Setup, m *model.Model, router, decode net.Conn) error {
	trace, err := OpenTrace(s.Trace, handoff.ToPrefill)
	if err != nil {
		return errors.Join(err, router.Close(), decode.Close())
	}
	p := &prefill{
		node:    newNode(s, m, s.Handoff.PrefillPages, router, decode, handoff.ToDecode),
		machine: handoff.NewPrefill(s.Handoff),
		prompts: map[handoff.Room]prompt{},
	}
	p.trace = trace
	return p.run(ctx, p)
}

type prefill struct {
	*node
	machine *handoff.Prefill
	prompts map[handoff.Room]prompt
	job     job
	unsent  []handoff.Action // for decode, in order
	over    []handoff.Event  // what became of writes, for the machine
}

type prompt struct {
	tokens   []byte
	sampling Sampling
}

// job is the prompt being computed; room 0 is none.
type job struct {
	room   handoff.Room
	tokens []byte
	table  model.Table
	done   int // tokens whose KV is written
}

func (p *prefill) take(f *Frame) {
	if f.Event.Kind == handoff.Submit {
		p.prompts[f.Event.Room] = prompt{f.Data, f.Sampling}
	}
	p.step(f.Event)
	p.settle()
}

func (p *prefill) step(e handoff.Event) {
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

// settle tells the machine of the writes that are over.
func (p *prefill) settle() {
	for len(p.over) > 0 {
		e := p.over[0]
		p.over = p.over[1:]
		p.step(e)
	}
}

// put is what becomes of a page's write.
func put(page handoff.Event, done bool) handoff.Event {
	return handoff.Event{
		Kind: handoff.Put, Room: page.Room, Index: page.Index, To: page.To, Gen: page.Gen, OK: done,
	}
}

func (p *prefill) do(a handoff.Action) {
	switch a.Kind {
	case handoff.Zero:
		p.cache.Zero(a.Event.To)
	case handoff.Run:
		tokens := p.prompts[a.Room].tokens
		if a.Placeholder {
			tokens = []byte{model.DocStart}
		}
		p.job = job{room: a.Room, tokens: tokens[:a.Tokens], table: p.machine.Table(a.Room)}
	case handoff.Halt:
		if p.job.room == a.Room {
			p.job = job{}
		}
		p.unsent = slices.DeleteFunc(p.unsent, func(u handoff.Action) bool {
			if u.Room != a.Room || u.Kind != handoff.Page {
				return false
			}
			p.over = append(p.over, put(u.Event, false))
			return true
		})
	case handoff.Forget:
		delete(p.prompts, a.Room)
	default:
		unknown(a)
	}
}

// work computes the next chunk of the prompt under way.
func (p *prefill) work() bool {
	j := &p.job
	if j.room == 0 {
		return false
	}
	end := min(j.done+chunk, len(j.tokens))
	p.model.Write(p.cache, j.table, j.done, j.tokens[j.done:end])
	if j.done = end; end == len(j.tokens) {
		p.first()
	}
	return true
}

// first picks the first token of the answer, which ends prefill's part of it.
func (p *prefill) first() {
	j := p.job
	p.job = job{}
	last := len(j.tokens) - 1
	logits := p.model.Logits(p.cache, j.table, last, j.tokens[last], p.setup.Workers)
	token := p.prompts[j.room].sampling.Choose(&logits, 0)
	p.step(handoff.Event{Kind: handoff.Ran, Room: j.room, Token: token, Stop: token == model.EndOfTurn})
}

func (p *prefill) ready() bool { return len(p.unsent) > 0 && !p.lost }

func (p *prefill) send() {
	for len(p.unsent) > 0 {
		f := Frame{Event: p.unsent[0].Event}
		if f.Event.Kind != handoff.Page {
			p.peer.Send(&f)
		} else {
			f.Data = p.cache.Page(f.Event.From)
			if !p.lost && !p.peer.SendPage(&f) {
				return
			}
			p.over = append(p.over, put(f.Event, true))
		}
		p.unsent = p.unsent[1:]
		p.settle() // the last page's end sends the metadata
	}
}

func (p *prefill) stats() Stats {
	s := Stats{UsedPages: p.machine.Pool().Used(), Waiting: p.machine.Waiting()}
	if p.job.room != 0 {
		s.Running = 1
	}
	return s
}
