package node

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/model"
)

// RunDecode serves as the decode node over handshaken connections to the
// router and to prefill, which it closes. It returns nil once the router hangs
// up or ctx ends.
func RunDecode(ctx context.Context, s Setup, m *model.Model, router, prefill net.Conn) error {
	trace, err := OpenTrace(s.Trace, handoff.ToDecode)
	if err != nil {
		return errors.Join(err, router.Close(), prefill.Close())
	}
	d := &decode{
		node:    newNode(s, m, s.Handoff.DecodePages, router, prefill, handoff.ToPrefill),
		machine: handoff.NewDecode(s.Handoff),
		asked:   map[handoff.Room]asked{},
	}
	d.trace = trace
	return d.run(ctx, d)
}

// decode never sees a prompt's text: what it knows of it is its length and the
// KV in the pages.
type decode struct {
	*node
	machine *handoff.Decode
	asked   map[handoff.Room]asked
	steps   []handoff.Event // one for each answer under way
	page    []byte          // bytes of the page frame being taken
}

type asked struct {
	tokens   int // length of the prompt
	sampling Sampling
}

func (d *decode) take(f *Frame) {
	if f.Event.Kind == handoff.Submit {
		d.asked[f.Event.Room] = asked{f.Event.Tokens, f.Sampling}
	}
	d.page = f.Data
	d.step(f.Event)
	d.page = nil
}

func (d *decode) step(e handoff.Event) {
	actions := d.machine.Step(e)
	d.trace.Step(e, actions)
	for _, a := range actions {
		switch a.To {
		case handoff.ToRouter:
			d.tell(a.Event)
		case handoff.ToPrefill:
			d.peer.Send(&Frame{Event: a.Event})
		default:
			d.do(a)
		}
	}
}

func (d *decode) do(a handoff.Action) {
	switch a.Kind {
	case handoff.Zero:
		d.cache.Zero(a.Event.To)
	case handoff.Write:
		copy(d.cache.Page(a.Event.To), d.page)
	case handoff.Verify:
		d.step(handoff.Event{Kind: handoff.Verified, Room: a.Room, OK: true})
	case handoff.Step:
		d.steps = append(d.steps, a.Event)
	case handoff.Forget:
		delete(d.asked, a.Room)
		d.steps = slices.DeleteFunc(d.steps, func(s handoff.Event) bool { return s.Room == a.Room })
	default:
		unknown(a)
	}
}

// work computes one token of every answer under way.
func (d *decode) work() bool {
	steps := d.steps
	d.steps = nil
	tokens := make([]byte, len(steps))
	d.each(len(steps), func(i, workers int) { tokens[i] = d.next(steps[i], workers) })
	for i, s := range steps {
		t := tokens[i]
		d.step(handoff.Event{Kind: handoff.Stepped, Room: s.Room, Token: t, Stop: t == model.EndOfTurn})
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

func (d *decode) next(s handoff.Event, workers int) byte {
	table := model.Table(d.machine.Table(s.Room))
	d.model.Write(d.cache, table, s.Pos, []byte{s.Token})
	logits := d.model.Logits(d.cache, table, s.Pos, s.Token, workers)
	a := d.asked[s.Room]
	return a.sampling.Choose(&logits, s.Pos-a.tokens+1)
}

func (d *decode) ready() bool { return false }
func (d *decode) send()       {}

func (d *decode) stats() Stats {
	return Stats{
		UsedPages: d.machine.Pool().Used(), Running: d.machine.Running(),
		Waiting: d.machine.Waiting(), Failed: d.machine.Failed(),
	}
}
