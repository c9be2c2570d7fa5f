package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/model"
	"github.com/kvcanary/kvcanary/internal/lab/node"
)

// Version is the engine's version, as it states it: no release of SGLang's.
const Version = "0.0.0+kvcanary"

// ModelName is the name of the lab's only model.
const ModelName = "kvcanary-lab"

// Bounds on a request: pictures, and bytes of a tenant's name.
const (
	MaxImages = node.MaxImages
	maxTenant = node.MaxName
)

// Engine is a router with a prefill and a decode node. It is a [Backend].
type Engine struct {
	cfg   Config
	on    Settings
	setup node.Setup
	inbox chan node.Inbound
	stop  func() error // ends the nodes, after the links are closed
	keep  *keeper      // starts nodes that die anew; nil where the engine ends with them

	closing chan struct{} // closed when Close begins or a node is lost, once why is set
	ended   chan struct{} // closed when all of the engine has ended
	calls   sync.WaitGroup

	mu      sync.Mutex
	links   map[handoff.Role]*node.Link
	pids    map[string]int // processes of the nodes by role, if they have any
	router  *handoff.Router
	trace   *node.Tracer
	unnamed uint64 // requests without a name, where names count
	desk    desk
	outbox  *outbox // nil if nothing waits on its way from decode
	stats   map[handoff.Role]node.Stats
	why     handoff.Refusal // once no more requests are taken
	err     error           // what Wait returns
}

// newEngine runs a router over handshaken connections to both nodes. stop has
// to end the nodes; it is called once, after their links are closed.
func newEngine(cfg Config, setup node.Setup, trace *node.Tracer, prefill, decode net.Conn, stop func() error, keep *keeper) *Engine {
	on, err := cfg.settings()
	if err != nil {
		panic("kvcanary: internal error: an engine starts with a configuration that is not valid: " + err.Error())
	}
	e := &Engine{
		cfg: cfg, on: on, setup: setup, trace: trace, stop: stop, keep: keep, inbox: make(chan node.Inbound, 64),
		closing: make(chan struct{}), ended: make(chan struct{}),
		router: handoff.NewRouter(setup.Handoff), links: map[handoff.Role]*node.Link{},
		desk: newDesk(on.IDs.clock(cfg.Now)), stats: map[handoff.Role]node.Stats{},
	}
	e.attach(handoff.ToPrefill, prefill)
	e.attach(handoff.ToDecode, decode)
	if e.outbox = newOutbox(on.IDs.Outbox && !on.IDs.Unique); e.outbox != nil {
		e.calls.Go(func() {
			e.outbox.run(func(ev handoff.Event) {
				e.mu.Lock()
				defer e.mu.Unlock()
				e.step(ev)
			}, e.closing)
		})
	}
	go e.run()
	return e
}

// attach takes to a node over a handshaken connection.
func (e *Engine) attach(role handoff.Role, conn net.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.links[role], e.stats[role] = node.NewLink(conn, role, e.setup.Shape(), e.inbox), node.Stats{}
}

// detach hangs up on a node.
func (e *Engine) detach(role handoff.Role) {
	e.mu.Lock()
	l := e.links[role]
	delete(e.links, role)
	e.mu.Unlock()
	if l != nil {
		l.Close()
	}
}

// Gateway says how the gateway in front of this engine is built.
func (e *Engine) Gateway() GatewaySettings { return e.on.Gateway }

// Submit implements [Backend].
func (e *Engine) Submit(ctx context.Context, r Request) <-chan Event {
	c := newCall()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.why.Reason != handoff.Served {
		return c.refuse(errorOf(e.why))
	}
	if why := proper(r); why != nil {
		return c.refuse(why)
	}
	if why := e.admit(r); why.Reason != handoff.Served {
		return c.refuse(errorOf(why))
	}
	name := e.name(r)
	if !e.open(ctx, c, r, name) {
		if e.on.IDs.Refuse {
			return c.refuse(idInUse)
		}
		e.calls.Go(func() { e.queue(ctx, c, r, name) })
	}
	return c.out
}

// open lets a request in, unless its room is taken. e.mu is held.
func (e *Engine) open(ctx context.Context, c *call, r Request, name handoff.Room) bool {
	var ok bool
	if c.room, ok = e.router.Mint(name); !ok {
		return false
	}
	e.desk.wait(c)
	open := handoff.Event{Kind: handoff.Open, Room: c.room, Tokens: len(r.Tokens), MaxNew: r.MaxTokens, Flawed: flawed(r)}
	actions := e.router.Step(open)
	e.trace.Open(r.ID, open, actions)
	e.trace.Flush()
	e.act(r, actions)
	e.calls.Go(func() {
		defer e.limit(c)()
		if !c.deliver(ctx, e.closing, e.whyClosed) {
			e.end(c, handoff.Cancel)
		}
	})
	return true
}

// proper refuses what no node would understand.
func proper(r Request) *Error {
	if r.Adapter != "" && !slices.Contains(model.Adapters(), r.Adapter) {
		return &Error{Status: 404, Type: "NotFoundError", Message: "no such adapter; GET /v1/models lists those that are served"}
	}
	if len(r.Images) > MaxImages || max(len(r.Tenant), len(r.Salt)) > maxTenant {
		return &Error{Status: 400, Type: "BadRequestError",
			Message: fmt.Sprintf("a request has at most %d pictures, and a tenant a name, or a client a salt, of at most %d bytes", MaxImages, maxTenant)}
	}
	return nil
}

// limit gives up a request that takes too long, until stop is called.
func (e *Engine) limit(c *call) (stop func()) {
	if e.cfg.TimeLimit <= 0 {
		return func() {}
	}
	t := time.AfterFunc(e.cfg.TimeLimit, func() { e.end(c, handoff.Expire) })
	return func() { t.Stop() }
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
		DecodeDraining:  d.DrainingPages * h.PageSize,
		FailedTransfers: p.Failed + d.Failed,
		PrefixCache:     e.setup.Prefix.Pages * h.PageSize,
		Tier:            e.setup.Prefix.Blobs * h.PageSize,
		Adapters:        model.Adapters(),
		Broken:          e.broken().Text(),
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

// broken says why nothing can be served, if nothing can. e.mu is held.
func (e *Engine) broken() handoff.Refusal {
	if e.why.Reason != handoff.Served {
		return e.why
	}
	return handoff.Refusal{Reason: e.router.Lost()}
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
	e.detach(handoff.ToPrefill)
	e.detach(handoff.ToDecode)
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
	defer in.Release() // nodes send no pages here; one that does is not worth its buffer
	e.mu.Lock()
	current := in.On(e.links[in.From])
	e.mu.Unlock()
	switch {
	case !current: // late, from a node that is gone
	case in.Err != nil:
		e.gone(in.From)
	case in.Frame.Stats != nil:
		e.hear(in.From, *in.Frame.Stats)
	case !in.Frame.Event.Kind.Travels(in.From, handoff.ToRouter):
		e.stray(in)
	case e.outbox != nil && in.From == handoff.ToDecode:
		e.outbox.put(in.Frame.Event, e.closing)
	default:
		e.mu.Lock()
		if c := e.desk.of(in.Frame.Event.Room); c != nil && in.Frame.Cached > 0 {
			c.reused = in.Frame.Cached
		}
		e.step(in.Frame.Event)
		e.mu.Unlock()
	}
}

// stray ends what sends the router what is not for it.
func (e *Engine) stray(in *node.Inbound) {
	if e.keep != nil {
		e.keep.report(in.From)
		return
	}
	e.lose(handoff.Closing, fmt.Errorf("%v sent %v, which is not for the router", in.From, in.Frame.Event.Kind))
}

// hear takes what a node says about itself.
func (e *Engine) hear(from handoff.Role, s node.Stats) {
	e.mu.Lock()
	before := e.stats[from]
	e.stats[from] = s
	e.mu.Unlock()
	switch {
	case e.keep != nil:
		e.keep.nudge() // it looks at the epochs
	case before.Epoch != 0 && s.Epoch == 0:
		e.gone(map[handoff.Role]handoff.Role{
			handoff.ToPrefill: handoff.ToDecode, handoff.ToDecode: handoff.ToPrefill,
		}[from])
	}
}

// lossOf is what the router is told when a node is gone.
func lossOf(role handoff.Role) handoff.Refusal {
	if role == handoff.ToPrefill {
		return handoff.Refusal{Reason: handoff.PrefillGone}
	}
	return handoff.Refusal{Reason: handoff.DecodeGone}
}

// gone deals with a node that is not there any more.
func (e *Engine) gone(role handoff.Role) {
	if e.keep != nil {
		e.keep.report(role)
		return
	}
	e.lose(lossOf(role).Reason, fmt.Errorf("%v node is gone", role))
}

// lose ends the engine for a reason; only the first one counts.
func (e *Engine) lose(why handoff.Reason, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.why.Reason != handoff.Served {
		return
	}
	e.why, e.err = handoff.Refusal{Reason: why}, err
	e.step(handoff.Event{Kind: handoff.PeerLost, Refusal: e.why})
	close(e.closing)
}

// whyClosed is what clients are told once closing is closed.
func (e *Engine) whyClosed() *Error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return errorOf(e.why)
}

// tell has the router know that a node is lost, or there again.
func (e *Engine) tell(kind handoff.Kind, role handoff.Role) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.step(handoff.Event{Kind: kind, Refusal: lossOf(role)})
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
				f.Sampling, f.Of, f.Data = sampling(r), origin(r), r.Tokens[:a.Tokens]
			}
			e.send(handoff.ToPrefill, &f)
		case handoff.ToDecode:
			f := node.Frame{Event: a.Event}
			if a.Kind == handoff.Submit {
				f.Sampling, f.Of.Adapter = sampling(r), r.Adapter
			}
			e.send(handoff.ToDecode, &f)
		default:
			panic(fmt.Sprintf("kvcanary: internal error: router cannot do %v for %v", a.Kind, a.To))
		}
	}
}

// send sends to a node, if it is there. e.mu is held.
func (e *Engine) send(role handoff.Role, f *node.Frame) {
	if l := e.links[role]; l != nil {
		l.Send(f)
	}
}

func sampling(r Request) node.Sampling {
	return node.Sampling{Temperature: r.Temperature, Seed: r.Seed}
}

// flawed reports whether prefill will not be able to read a picture. The router
// carries pictures and does not look at them.
func flawed(r Request) bool {
	return slices.ContainsFunc(r.Images, func(m Image) bool { return m.Broken })
}

// origin is what a prompt's KV depends on beside its tokens, and its tenant.
func origin(r Request) node.Origin {
	o := node.Origin{Tenant: r.Tenant, Salt: r.Salt, Adapter: r.Adapter}
	for _, m := range r.Images {
		o.Images = append(o.Images, node.Image{At: m.At, Digest: m.Digest, Sees: m.Sees})
	}
	return o
}

// answer passes an event on to its client. e.mu is held.
func (e *Engine) answer(ev handoff.Event) {
	c := e.desk.of(ev.Room)
	if c == nil {
		c = newCall() // nobody listens
	}
	switch ev.Kind {
	case handoff.Token:
		c.put(Event{Token: ev.Token, Cached: c.reused})
		return
	case handoff.Done:
		c.put(Event{Done: &Done{Finish: ev.Finish.String(), PromptTokens: ev.Prompt, CompletionTokens: ev.Made, CachedTokens: c.reused}})
	case handoff.Refused:
		c.put(Event{Error: errorOf(ev.Refusal)})
	}
	e.desk.end(ev.Room)
}

func errorOf(r handoff.Refusal) *Error {
	return &Error{Status: r.Status(), Type: r.Type(), Message: r.Text()}
}

// end lets go of a request whose client is gone or which has taken too long.
func (e *Engine) end(c *call, kind handoff.Kind) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.desk.waits(c) {
		return
	}
	if kind == handoff.Cancel {
		e.desk.leave(c)
	}
	e.step(handoff.Event{Kind: kind, Room: c.room})
}
