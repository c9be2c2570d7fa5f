package campaign

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// pending is an exchange from the moment that it was asked for.
type pending struct {
	send     probe.Send
	exchange wire.Exchange
	base     *wire.Exchange // whose prompt it repeats; nil for none
	head     prefix         // what stands before its own turns
	prompt   prompt
	reserved int      // tokens
	old      *kept    // what an earlier sitting has made of it; nil for nothing
	counts   countLog // what the tokenizer said of its prompt
	requests int      // made for it
	lost     int      // tokens of requests whose connection broke before any answer
}

// round makes exchanges, up to Concurrency at the same time, and hands them
// back in the order of the sends. why is "" or says why the protocol cannot go
// on: the exchanges that were made are handed back all the same.
//
// Everything that a result may depend on happens in the order of the sends:
// numbering, reserving, learning. Only fitting and sending run side by side.
func (r *runner) round(ctx context.Context, protocol string, sends []probe.Send) (done []wire.Exchange, why string) {
	batch, why := r.number(protocol, sends)
	r.sideBySide(len(batch), func(i int) { r.prepare(ctx, &batch[i]) })
	if r.broken = r.recall(batch); r.broken != nil {
		return nil, r.broken.Error()
	}
	batch, short := r.reserve(batch)
	if short != "" {
		why, r.overdrawn = short, short
	}
	for group := range abreast(batch) {
		r.sideBySide(len(group), func(i int) {
			if ctx.Err() == nil || group[i].old != nil {
				r.exchange(ctx, &group[i])
			}
		})
	}
	for i := range batch {
		p := &batch[i]
		r.account(p)
		if p.exchange.Answer == nil {
			continue
		}
		done = append(done, p.exchange)
		r.prompts[p.exchange.Seq] = p.prompt
		if why == "" && !p.send.Extra() {
			why = cmp.Or(ended(p.exchange.Answer), r.silence(p.exchange.Answer))
		}
	}
	if s := r.stopped(ctx); s != "" {
		why = s
	}
	return done, why
}

// abreast cuts a batch before each exchange that follows behind the others.
func abreast(batch []pending) iter.Seq[[]pending] {
	return func(yield func([]pending) bool) {
		for from := 0; from < len(batch); {
			to := from + 1
			for to < len(batch) && !batch[to].send.Behind {
				to++
			}
			if !yield(batch[from:to]) {
				return
			}
			from = to
		}
	}
}

// number gives every send its place in the run and its canary id.
func (r *runner) number(protocol string, sends []probe.Send) ([]pending, string) {
	why := ""
	if room := seqSpace - controlIDs - len(r.all); len(sends) > room {
		sends, why = sends[:room], fmt.Sprintf("a run can hold %d exchanges and no more", seqSpace-controlIDs)
	}
	batch := make([]pending, len(sends))
	for i, s := range sends {
		if s.Tenant < 0 || s.Tenant >= len(r.cfg.Tenants) {
			panic("kvcanary: internal error: protocol " + protocol + " sends as a tenant that is not there")
		}
		seq := len(r.all) + i
		batch[i] = pending{send: s, exchange: wire.Exchange{
			Seq: seq, ID: uint64(canary.MakeID(r.id, s.Tenant, seq)),
			Protocol: protocol, Purpose: s.Purpose, Label: s.Label,
			Tenant: r.cfg.Tenants[s.Tenant].Name, Tail: s.Tail, Limit: s.Limit,
			MaxTokens: s.MaxTokens, Stream: s.Stream, Asked: s.Asked,
			Arm: s.Arm, Group: s.Group, Adapter: s.Adapter, RequestID: s.RequestID,
		}}
		if r.past != nil && r.past.done[seq] != nil {
			batch[i].old = r.past.done[seq]
			batch[i].counts.known = batch[i].old.Counts
		}
		if s.Prefix != nil {
			batch[i].head = r.prefix(*s.Prefix)
			batch[i].exchange.Holds = batch[i].head.holds
		}
		if s.Again != nil {
			batch[i].again(r.all, *s.Again)
		}
	}
	return batch, why
}

// again makes an exchange carry the canary of an earlier one.
func (p *pending) again(all []wire.Exchange, seq int) {
	i := slices.IndexFunc(all, func(e wire.Exchange) bool { return e.Seq == seq })
	if i < 0 || all[i].Tenant != p.exchange.Tenant {
		panic("kvcanary: internal error: a prompt of an exchange that was not made, or of another tenant, is to be sent again")
	}
	p.base = &all[i]
	p.exchange.ID, p.exchange.Again, p.exchange.Pad = all[i].ID, &seq, p.send.Pad
}

// prepare gives the prompt its length.
func (r *runner) prepare(ctx context.Context, p *pending) {
	key := r.cfg.Tenants[p.send.Tenant].Key
	fit := *r.fit // what it knows does not change meanwhile
	p.counts.Client, fit.client = fit.client, &p.counts
	if p.base != nil {
		p.prompt = fit.again(ctx, key, p.send, p.base, r.made[p.base.Seq])
	} else {
		p.prompt = fit.fit(ctx, key, p.send, canary.ID(p.exchange.ID), p.head)
	}
	e := &p.exchange
	e.SentTokens, e.SentExact, e.SentBytes = p.prompt.tokens, p.prompt.exact, p.prompt.bytes
	e.Messages, e.Nonces, e.Token = len(p.prompt.messages), p.prompt.nonces, p.prompt.token
	e.SentSHA256 = digest(p.prompt.messages)
}

// reserve takes the worst cost of every exchange out of the budget, as far as
// it goes.
func (r *runner) reserve(batch []pending) ([]pending, string) {
	for i := range batch {
		p := &batch[i]
		answer := p.send.MaxTokens
		if answer == 0 {
			answer = openAnswer
		}
		p.reserved = r.fit.worst(p.prompt) + answer
		if why := r.budget.reserve(p.reserved); why != "" {
			return batch[:i], why
		}
	}
	return batch, ""
}

// recall reads back what an earlier sitting has made of a batch.
func (r *runner) recall(batch []pending) error {
	for i := range batch {
		p := &batch[i]
		if p.old == nil {
			continue
		}
		if what := differs(&p.exchange, &p.old.Exchange); what != "" {
			return fmt.Errorf("%w: exchange %d of the interrupted run is not the one that this run makes, %s differs: name a new directory", ErrConfig, p.exchange.Seq, what)
		}
		if err := p.old.hear(r.past.dir); err != nil {
			return err
		}
	}
	return nil
}

// exchange makes one exchange, keeps it and tells of it.
func (r *runner) exchange(ctx context.Context, p *pending) {
	e := &p.exchange
	if p.old != nil {
		r.remember(p)
	} else if r.make(ctx, p); e.Answer == nil {
		return // stopped before it was sent
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cfg.Observe != nil {
		r.cfg.Observe(*e, p.prompt.messages)
	}
	if r.cfg.Progress == nil {
		return
	}
	prompt, completion := cost(e)
	r.progress.Sent++
	r.progress.PromptTokens += prompt
	r.progress.SpentTokens += prompt + completion
	_, r.progress.Requests = r.budget.used()
	r.cfg.Progress(r.progress)
}

// remember takes over what an earlier sitting has made of an exchange.
func (r *runner) remember(p *pending) {
	p.exchange.Answer, p.exchange.Left = p.old.Answer, p.old.Left
	p.requests, p.lost = p.old.Requests, p.old.Lost
	for n := range p.requests - 1 {
		tokens := 0
		if n == 0 {
			tokens = p.lost
		}
		if r.budget.again(tokens) {
			p.reserved += tokens
		}
	}
}

// make sends an exchange and keeps what came back.
func (r *runner) make(ctx context.Context, p *pending) {
	e := &p.exchange
	if e.Answer = r.attempts(ctx, p); e.Answer == nil {
		return
	}
	f := e.Answer.Failure
	e.Left = p.send.Hangup.Any() && f != nil && f.Kind == wire.FailedCanceled && ctx.Err() == nil
	if err := r.redact.answer(e.Answer); err != nil && r.dir != nil {
		r.dir.fail(err)
	}
	if r.dir != nil {
		k := &kept{Exchange: *e, Requests: p.requests, Lost: p.lost, Counts: p.counts.said}
		r.dir.keep(k)
	}
}

// account settles an exchange with the budget and learns from what it has
// shown about token counts.
func (r *runner) account(p *pending) {
	for _, o := range p.prompt.counts {
		r.fit.learn(o)
	}
	e := &p.exchange
	if e.Answer == nil {
		r.budget.settle(p.reserved, 0, false)
		return
	}
	if p.old != nil {
		r.result.Resumed++
	}
	prompt, completion := cost(e)
	r.budget.settle(p.reserved, prompt+completion+p.lost, true)
	r.result.Spent.PromptTokens += p.lost
	if p.prompt.planted {
		r.result.Controls.Planted++
	}
	used, ok := e.Used()
	switch {
	case !ok || !e.Answer.Served():
	case p.base == nil:
		r.made[e.Seq] = p.prompt.made
		r.fit.learn(observation{e.SentBytes, len(p.prompt.messages), used})
	default:
		r.fit.padded(p.base, e, used)
	}
}

// cost is what an exchange counts for, tokens, on the high side: the larger of
// what was sent and what the target says it read, and for an answer of unknown
// length the longest that was asked for. What never reached the model is free.
func cost(e *wire.Exchange) (prompt, completion int) {
	a := e.Answer
	if a == nil {
		return 0, 0
	}
	if f := a.Failure; f != nil && (f.Kind == wire.FailedConnect || f.Kind == wire.FailedTLS) {
		return 0, 0
	}
	if f := a.Refusal; f != nil && (f.Kind == wire.RefusedAuth || f.Kind == wire.RefusedModel || f.Kind == wire.RefusedRate || f.Kind == wire.RefusedQuota) {
		return 0, 0
	}
	prompt = e.SentTokens
	if a.Usage != nil {
		return max(prompt, min(a.Usage.Prompt, mostTokens)), max(0, min(a.Usage.Completion, mostTokens))
	}
	if a.Refusal == nil {
		completion = e.MaxTokens
	}
	return prompt, completion
}

// mostTokens is the most that one side of an exchange counts for, whatever the
// target says that it has counted: sums of it stay numbers.
const mostTokens = 1 << 40

// sideBySide calls f(0) to f(n-1), in that order, up to Concurrency of them at
// the same time.
func (r *runner) sideBySide(n int, f func(i int)) {
	slots := make(chan struct{}, r.cfg.Concurrency)
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	wg.Wait()
}
