package probe

import (
	"cmp"
	"fmt"
	"time"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// IDs has several requests bear one client id, of one tenant and of several, at
// the same time and right after one of them was given up. Whoever finds an
// answer by such a name finds the wrong one.
func IDs() Protocol {
	return Protocol{
		Name:  "ids",
		Does:  "uses one request id or trace id for several requests, at once and right after one was given up",
		Start: func(e Env) Plan { return newIDs(e) },
	}
}

const (
	idRounds = 2
	// plainEach requests with names of their own follow each round: the control.
	plainEach = 4
	// sameID requests bear one id at once.
	sameID = 3
	// quickTries bear the name of a request that has just been given up, as many
	// at a time as the campaign lets: one comes when the name is free at the front
	// of an engine and not yet for the rest.
	quickTries = 3
	// quickTokens is their length: short, for there are many, and some are refused.
	quickTokens = 200
)

// givenUps are the moments at which clients leave: in the transfer behind
// prefill, where much is still on its way, and most of them in the answer, where
// what has not come yet can be told by its words.
var givenUps = []leaving{{part: 0.7}, {text: 1}, {text: 8}, {part: 0.9}, {text: 24}, {text: 16}, {part: 0.5}}

type ids struct {
	env Env
	steps
	sent  int
	first time.Duration // that a request waits for its first token while nothing else runs
	plain tally         // requests with names of their own
	named tally         // those that share one
}

func newIDs(e Env) *ids {
	d := &ids{env: e}
	d.add(d.plainOne)
	for round := range idRounds {
		for _, batch := range d.batches(round) {
			d.add(batch)
		}
	}
	return d
}

func (d *ids) batches(round int) []func() []Send {
	out := []func() []Send{
		func() []Send { return d.duplicates(round, "same tenant", false) },
		func() []Send { return d.traces(round) },
	}
	if d.env.Tenants > 1 {
		out = append(out, func() []Send { return d.duplicates(round, "two tenants", true) })
	}
	for i, l := range givenUps {
		n := round*len(givenUps) + i
		out = append(out, func() []Send { return append(d.givenUp(n, l), d.reuse(n)...) })
	}
	for range plainEach {
		out = append(out, d.plainOne)
	}
	return out
}

// plainOne is a request with a name of its own and nothing beside it.
func (d *ids) plainOne() []Send {
	return []Send{d.request("plain", d.sent%d.env.Tenants).arm(wire.ArmNull, 1)}
}

// request asks for a nonce that the answer begins with, so that a first token
// of another request shows.
func (d *ids) request(label string, tenant int) Send {
	q := questionNo(d.sent)
	d.sent++
	s := send(wire.Unrelated, label, tenant, capped(d.env, 300+37*(d.sent%8)), nonceAnswer, q)
	s.Stream = d.sent%2 == 0
	return s
}

// id is a name that no other run with another seed uses.
func (d *ids) id(kind string, round int) string {
	return fmt.Sprintf("kvc-%s-%x-%d", kind, d.env.Seed, round)
}

// duplicates bear one id while all of them are under way.
func (d *ids) duplicates(round int, label string, mixed bool) []Send {
	var batch []Send
	for i := range sameID {
		tenant := round % d.env.Tenants
		if mixed {
			tenant = i % d.env.Tenants
		}
		s := d.request("one id, "+label, tenant).arm(wire.ArmLoad, 1)
		s.RequestID = d.id(label[:4], round)
		batch = append(batch, s)
	}
	return batch
}

// traces share a trace id, as requests of one service do: no engine may take
// it for a name.
func (d *ids) traces(round int) []Send {
	var batch []Send
	for i := range sameID {
		s := d.request("one trace", i%d.env.Tenants).arm(wire.ArmLoad, 1)
		s.TraceID = d.id("trace", round)
		batch = append(batch, s)
	}
	return batch
}

// givenUp is a request whose client goes away. It asks for a long answer, so
// that much is still to come for it.
func (d *ids) givenUp(n int, l leaving) []Send {
	s := markedLine("given up, "+l.String(), n%d.env.Tenants, capped(d.env, 1024), d.env.MaxAnswer)
	s.RequestID, s.TraceID = d.id("reuse", n), d.id("retrace", n)
	s.Hangup = l.hangup(cmp.Or(d.first, unknownFirst))
	return []Send{s}
}

// reuse takes its name right behind it.
func (d *ids) reuse(n int) []Send {
	var batch []Send
	for i := range quickTries {
		s := d.request("its id again", (n+1+i)%d.env.Tenants).arm(wire.ArmLoad, 1)
		q := questionNo(d.sent)
		s.Turns, s.Tokens, s.Tail, s.Asked = compact(q), capped(d.env, quickTokens), q.name, q.place
		s.RequestID, s.TraceID = d.id("reuse", n), d.id("retrace", n)
		s.Behind = i == 0
		batch = append(batch, s)
	}
	return batch
}

func (d *ids) Next(done []wire.Exchange) []Send {
	for i := range done {
		e := &done[i]
		switch {
		case e.Arm == wire.ArmNull:
			d.plain.count(e)
			if e.Answer.FirstToken.After(e.Answer.Start) {
				d.first = e.Answer.FirstToken.Sub(e.Answer.Start)
			}
		case e.Arm == wire.ArmLoad:
			d.named.count(e)
		}
	}
	return d.next()
}

// Missing does not ask that all were answered: a target that refuses a name
// that is in use does well.
func (d *ids) Missing() string {
	switch {
	case d.plain.served < idRounds*plainEach+1:
		return fmt.Sprintf("%d of %d requests with names of their own were answered%s", d.plain.served, idRounds*plainEach+1, d.plain.why())
	case d.named.served == 0:
		return "no request that shared its name was answered" + d.named.why()
	case d.env.Tenants < 2:
		return "only one tenant was given: whether two tenants may use one id was not tested"
	}
	return ""
}
