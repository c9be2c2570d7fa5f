package probe

import (
	"fmt"

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
	idRounds = 3
	// sameID requests bear one id at once.
	sameID = 3
	// quickTries follow a request that was given up, each as soon as the one
	// before has ended: the first may still be told that its name is taken.
	quickTries = 3
)

type ids struct {
	env Env
	steps
	sent  int
	plain tally // requests with names of their own
	named tally // those that share one
}

func newIDs(e Env) *ids {
	d := &ids{env: e}
	d.add(func() []Send { return []Send{d.request("plain", 0).arm(wire.ArmNull, 1)} })
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
	for _, h := range []wire.Hangup{{Text: 1}, {Sent: true}} {
		out = append(out, func() []Send { return d.givenUp(round, h) })
		for i := range quickTries {
			out = append(out, func() []Send { return d.reuse(round, i) })
		}
	}
	return append(out, func() []Send { return []Send{d.request("plain", d.sent%d.env.Tenants).arm(wire.ArmNull, 1)} })
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
func (d *ids) givenUp(round int, h wire.Hangup) []Send {
	s := longLine(fmt.Sprintf("given up, %s", moment(h)), round%d.env.Tenants, capped(d.env, 2048), d.env.MaxAnswer)
	s.RequestID, s.TraceID, s.Hangup = d.id("reuse", round), d.id("retrace", round), h
	return []Send{s}
}

// reuse takes the name of a request that was given up.
func (d *ids) reuse(round, i int) []Send {
	s := d.request("its id again", (round+1+i)%d.env.Tenants).arm(wire.ArmLoad, 1)
	s.RequestID, s.TraceID = d.id("reuse", round), d.id("retrace", round)
	return []Send{s}
}

func (d *ids) Next(done []wire.Exchange) []Send {
	for i := range done {
		e := &done[i]
		switch {
		case e.Arm == wire.ArmNull:
			d.plain.count(e)
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
	case d.plain.served < idRounds+1:
		return fmt.Sprintf("%d of %d requests with names of their own were answered%s", d.plain.served, idRounds+1, d.plain.why())
	case d.named.served == 0:
		return "no request that shared its name was answered" + d.named.why()
	case d.env.Tenants < 2:
		return "only one tenant was given: whether two tenants may use one id was not tested"
	}
	return ""
}
