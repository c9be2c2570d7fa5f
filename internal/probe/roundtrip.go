package probe

import (
	"fmt"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// Roundtrip opens sessions, sends enough else to push them out of the fast
// tier, and returns to them: what was kept elsewhere has to come back as it was.
func Roundtrip() Protocol {
	return Protocol{
		Name:  "roundtrip",
		Does:  "opens sessions, pushes them out by load, and returns to them for what their first turn said",
		Start: func(e Env) Plan { return newRoundtrip(e) },
	}
}

const (
	// tripSessions of each tenant are opened, in all at least tripLeast.
	tripSessions = 2
	tripLeast    = 4
	tripTokens   = 1024
	// tripLent sessions are returned to by another tenant first.
	tripLent = 3
	// trips is how often each session is returned to.
	trips = 2
	// pushTokens is the length of what pushes sessions out, pushMost how much of
	// it there is in a trip where no pool is known, tokens.
	pushTokens = 2048
	pushMost   = 16384
	// pushLimit bounds it where the pool is known to be larger, tokens.
	pushLimit = 262144
)

type roundtrip struct {
	env Env
	steps
	open     []visit
	kept     []visit
	pushed   tally
	returned tally
	under    []Send // the batch under way
	crowded  []Send // returns that were refused for the traffic beside them
	short    string // why the load is less than the pool
}

// visit is a session as it was last seen.
type visit struct {
	send Send
	seq  int
}

func newRoundtrip(e Env) *roundtrip {
	r := &roundtrip{env: e}
	r.add(r.opening)
	for trip := range trips {
		load := r.load()
		for _, tokens := range load[trip*len(load)/trips:] { // less each time: nobody knows how much a tier holds
			r.add(func() []Send { return r.push(trip, tokens) })
		}
		r.add(func() []Send { return r.back(trip) })
		for range r.sessions() {
			r.add(r.backAlone)
		}
	}
	for i := range tripLent {
		r.lent(i)
	}
	return r
}

// lent opens a session and pushes it out, by more each time. Then another tenant
// comes back to it, and sends one that is new, before the owner returns: a slower
// tier must keep tenants as far apart as the fast one does.
func (r *roundtrip) lent(i int) {
	if r.env.Tenants < 2 {
		return
	}
	one := func(arm, label string, stranger bool) func() []Send {
		return func() []Send {
			if i >= len(r.kept) {
				return nil
			}
			v := r.kept[i]
			tenant := v.send.Tenant
			if stranger {
				tenant = (tenant + 1) % r.env.Tenants
			}
			s := repeated(v.send, v.seq)
			if arm == wire.ArmMiss {
				s = r.keep(i)
			}
			return []Send{who{tenant: tenant}.says(s, wire.Unrelated, label).arm(arm, 2+i)}
		}
	}
	r.add(func() []Send { return []Send{r.keep(i)} })
	for range i + 1 {
		r.add(func() []Send { return r.push(trips+i, capped(r.env, pushTokens)) })
	}
	r.add(one(wire.ArmHit, "kept, other tenant", true))
	r.add(one(wire.ArmMiss, "never sent", true))
	r.add(one(wire.ArmOwn, "kept, same tenant", false))
}

// keep is a session that nobody returns to before its time.
func (r *roundtrip) keep(i int) Send {
	s := session(wire.Plant, "kept", i%r.env.Tenants, capped(r.env, tripTokens), i)
	s.Stream = true
	return s
}

func (r *roundtrip) sessions() int { return max(tripSessions*r.env.Tenants, tripLeast) }

func (r *roundtrip) opening() []Send {
	var batch []Send
	for i := range r.sessions() {
		s := session(wire.Plant, fmt.Sprintf("session %d", i+1), i%r.env.Tenants, capped(r.env, tripTokens+64*i), i).arm(wire.ArmNull, 1)
		batch = append(batch, s)
	}
	return batch
}

// load is how many tokens are pushed in a trip, in batches of few prompts.
func (r *roundtrip) load() []int {
	total := pushMost
	if r.env.Pool > 0 {
		total = r.env.Pool + r.env.Pool/4
		if total > pushLimit {
			total, r.short = pushLimit, fmt.Sprintf("sessions were pushed by %d tokens, less than the pool of %d", pushLimit, r.env.Pool)
		}
	}
	if m := r.env.MaxPrompt; m > 0 && trips*total > m/2 {
		total = max(m/(2*trips), pushTokens)
		r.short = fmt.Sprintf("the budget lets sessions be pushed by %d tokens only", total)
	}
	length := max(pushTokens, total/32)
	var batches []int
	for ; total > 0; total -= r.env.Tenants * length {
		batches = append(batches, capped(r.env, length))
	}
	return batches
}

// push are prompts of all tenants that nobody has sent before.
func (r *roundtrip) push(trip, tokens int) []Send {
	var batch []Send
	for t := range r.env.Tenants {
		batch = append(batch, session(wire.Churn, fmt.Sprintf("push %d", trip+1), t, tokens, trip))
	}
	return batch
}

// back returns to every session that was answered, with the answer that it gave.
func (r *roundtrip) back(trip int) []Send {
	var batch []Send
	for i, v := range r.open {
		s := v.send
		s.Purpose, s.Label, s.Tokens = wire.Unrelated, fmt.Sprintf("return %d to %d", trip+1, i+1), 0
		// Another nonce than the one that its answer has said.
		s.Asked = (i + 1 + trip) % thirds
		s.Prefix, s.Turns = &Prefix{Seq: v.seq, Answer: true}, []Turn{asks(s.Asked)}
		s = s.arm(wire.ArmLoad, 1)
		s.MaxTokens = r.env.MaxAnswer
		batch = append(batch, s)
	}
	return batch
}

// backAlone returns once more to a session that was refused among others.
func (r *roundtrip) backAlone() []Send {
	if len(r.crowded) == 0 {
		return nil
	}
	one := r.crowded[0]
	r.crowded = r.crowded[1:]
	return []Send{one}
}

func (r *roundtrip) Next(done []wire.Exchange) []Send {
	for i := range done {
		e := &done[i]
		switch e.Purpose {
		case wire.Churn:
			r.pushed.count(e)
		case wire.Plant:
			switch {
			case !e.Answer.Served():
			case e.Arm == wire.ArmNull:
				r.open = append(r.open, visit{r.opening()[i], e.Seq})
			default:
				r.kept = append(r.kept, visit{r.keep(len(r.kept)), e.Seq})
			}
		default:
			if e.Arm == wire.ArmLoad {
				r.returned.count(e)
			}
		}
	}
	r.noteCrowded(done)
	r.under = r.next()
	return r.under
}

// noteCrowded notes which returns of the batch under way are to be made again.
func (r *roundtrip) noteCrowded(done []wire.Exchange) {
	for i := range done {
		if e := &done[i]; len(r.under) > 1 && e.Purpose == wire.Unrelated && e.Arm == wire.ArmLoad && r.returned.isCrowded(e) {
			r.crowded = append(r.crowded, r.under[i])
		}
	}
}

func (r *roundtrip) Missing() string {
	want := trips * r.sessions()
	switch {
	case len(r.open) < r.sessions():
		return fmt.Sprintf("%d of %d sessions were opened", len(r.open), r.sessions())
	case r.returned.served < want:
		return fmt.Sprintf("%d of %d returns to a session were answered%s", r.returned.served, want, r.returned.why())
	}
	return r.short
}
