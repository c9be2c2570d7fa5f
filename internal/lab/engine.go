package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/node"
)

// Version is the engine's version, as it states it: no release of SGLang's.
const Version = "0.0.0+kvcanary"

// ModelName is the name of the lab's only model.
const ModelName = "kvcanary-lab"

// Engine is a router with a prefill and a decode node. It is a [Backend].
type Engine struct {
	cfg     Config
	setup   node.Setup
	prefill *node.Link
	decode  *node.Link
	inbox   chan node.Inbound
	stop    func() error   // ends the nodes, after the links are closed
	pids    map[string]int // processes of the nodes by role, if they have any

	closing chan struct{} // closed when Close begins or a node is lost
	ended   chan struct{} // closed when all of the engine has ended
	calls   sync.WaitGroup

	mu     sync.Mutex
	router *handoff.Router
	trace  *node.Tracer
	open   map[handoff.Room]*call
	stats  map[handoff.Role]node.Stats
	why    handoff.Refusal // once no more requests are taken
	err    error           // what Wait returns
}

// newEngine runs a router over handshaken connections to both nodes. stop has
// to end the nodes; it is called once, after their links are closed.
func newEngine(cfg Config, setup node.Setup, trace *node.Tracer, prefill, decode net.Conn, stop func() error) *Engine {
	e := &Engine{
		cfg: cfg, setup: setup, trace: trace, stop: stop, inbox: make(chan node.Inbound, 64),
		closing: make(chan struct{}), ended: make(chan struct{}),
		router: handoff.NewRouter(setup.Handoff),
		open:   map[handoff.Room]*call{}, stats: map[handoff.Role]node.Stats{},
	}
	e.prefill = node.NewLink(prefill, handoff.ToPrefill, setup.Shape(), e.inbox)
	e.decode = node.NewLink(decode, handoff.ToDecode, setup.Shape(), e.inbox)
	go e.run()
	return e
}

// Submit implements [Backend].
func (e *Engine) Submit(ctx context.Context, r Request) <-chan Event {
	c := newCall()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.why.Reason != handoff.Served {
		c.force(errorOf(e.why))
		close(c.out)
		return c.out
	}
	c.room, _ = e.router.Mint(0)
	e.open[c.room] = c
	open := handoff.Event{Kind: handoff.Open, Room: c.room, Tokens: len(r.Tokens), MaxNew: r.MaxTokens}
	actions := e.router.Step(open)
	e.trace.Open(r.ID, open, actions)
	e.trace.Flush()
	e.act(r, actions)
	e.calls.Go(func() {
		if !c.deliver(ctx, e.closing) {
			e.cancel(c.room)
		}
	})
	return c.out
}

// State implements [Backend]. It shows the nodes as they last reported, which
// they do whenever something changes.
func (e *Engine) State() State {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.setup.Handoff
	p, d := e.stats[handoff.ToPrefill], e.stats[handoff.ToDecode]
	return State{
		Model: ModelName, Version: Version,
		Context: h.Context, MaxInput: h.MaxInput(), PageSize: h.PageSize,
		PrefillPool: h.PrefillPages * h.PageSize, DecodePool: h.DecodePages * h.PageSize,
		PrefillUsed: p.UsedPages * h.PageSize, DecodeUsed: d.UsedPages * h.PageSize,
		Running: d.Running, Waiting: p.Waiting + d.Waiting,
		AutoTruncate: e.cfg.AutoTruncate, Faults: e.cfg.Faults, Defences: e.cfg.Defences,
		FailedTransfers: p.Failed + d.Failed,
		Broken:          e.why.Text(),
	}
}

// Close ends all requests with an error and then the nodes. It returns once
// nothing of the engine runs any more.
func (e *Engine) Close() error {
	e.lose(handoff.Closing, nil)
	return e.Wait()
}

// Wait returns once the engine has ended: nil after Close, or what ended it.
func (e *Engine) Wait() error {
	<-e.ended
	return e.err
}

// run takes what the nodes say until the engine closes or loses one of them.
func (e *Engine) run() {
	defer close(e.ended)
	for running := true; running; {
		select {
		case in := <-e.inbox:
			e.take(&in)
		case <-e.closing:
			running = false
		}
	}
	e.prefill.Close()
	e.decode.Close()
	err := e.stop()
	e.calls.Wait()
	err = errors.Join(err, e.trace.Close())
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.err == nil:
		e.err = err
	case err != nil:
		e.err = fmt.Errorf("%w: %w", e.err, err)
	}
}

func (e *Engine) take(in *node.Inbound) {
	switch {
	case in.Err != nil:
		e.gone(in.From)
	case in.Frame.Stats != nil:
		e.mu.Lock()
		e.stats[in.From] = *in.Frame.Stats
		e.mu.Unlock()
		if in.Frame.Stats.PeerLost {
			e.gone(map[handoff.Role]handoff.Role{
				handoff.ToPrefill: handoff.ToDecode, handoff.ToDecode: handoff.ToPrefill,
			}[in.From])
		}
	default:
		in.Release() // nodes send no pages here; one that does is not worth its buffer
		switch in.Frame.Event.Kind {
		case handoff.Token, handoff.Done, handoff.Refused:
			e.mu.Lock()
			e.step(in.Frame.Event)
			e.mu.Unlock()
		default:
			e.lose(handoff.Closing, fmt.Errorf("%v sent %v, which is not for the router", in.From, in.Frame.Event.Kind))
		}
	}
}

func (e *Engine) gone(role handoff.Role) {
	if role == handoff.ToPrefill {
		e.lose(handoff.PrefillGone, errors.New("prefill node is gone"))
		return
	}
	e.lose(handoff.DecodeGone, errors.New("decode node is gone"))
}

// lose ends the engine for a reason; only the first one counts.
func (e *Engine) lose(why handoff.Reason, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.why.Reason != handoff.Served {
		return
	}
	e.why, e.err = handoff.Refusal{Reason: why}, err
	e.step(handoff.Event{Kind: handoff.PeerLost, Refusal: handoff.Refusal{Reason: why}})
	close(e.closing)
}

// step gives the router an event. e.mu is held.
func (e *Engine) step(in handoff.Event) {
	actions := e.router.Step(in)
	e.trace.Step(in, actions)
	e.trace.Flush()
	e.act(Request{}, actions)
}

// act carries out the router's actions; r is the request they are about where
// they submit one. e.mu is held.
func (e *Engine) act(r Request, actions []handoff.Action) {
	for _, a := range actions {
		switch a.To {
		case handoff.ToClient:
			e.answer(a.Event)
		case handoff.ToPrefill:
			f := node.Frame{Event: a.Event}
			if a.Kind == handoff.Submit {
				f.Sampling, f.Data = sampling(r), r.Tokens[:a.Tokens]
			}
			e.prefill.Send(&f)
		case handoff.ToDecode:
			f := node.Frame{Event: a.Event}
			if a.Kind == handoff.Submit {
				f.Sampling = sampling(r)
			}
			e.decode.Send(&f)
		default:
			panic(fmt.Sprintf("kvcanary: internal error: router cannot do %v for %v", a.Kind, a.To))
		}
	}
}

func sampling(r Request) node.Sampling {
	return node.Sampling{Temperature: r.Temperature, Seed: r.Seed}
}

// answer passes an event on to its client. e.mu is held.
func (e *Engine) answer(ev handoff.Event) {
	c := e.open[ev.Room]
	if c == nil {
		return
	}
	switch ev.Kind {
	case handoff.Token:
		c.put(Event{Token: ev.Token})
		return
	case handoff.Done:
		c.put(Event{Done: &Done{Finish: ev.Finish.String(), PromptTokens: ev.Prompt, CompletionTokens: ev.Made}})
	case handoff.Refused:
		c.put(Event{Error: errorOf(ev.Refusal)})
	}
	delete(e.open, ev.Room)
}

func errorOf(r handoff.Refusal) *Error {
	return &Error{Status: r.Status(), Type: r.Type(), Message: r.Text()}
}

// cancel lets go of a request whose client is gone.
func (e *Engine) cancel(room handoff.Room) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open[room] == nil {
		return
	}
	delete(e.open, room)
	e.step(handoff.Event{Kind: handoff.Cancel, Room: room})
}
