package probe

import (
	"fmt"
	"math/rand/v2"

	"github.com/kvcanary/kvcanary/internal/stats"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// PrefixSharing asks whether what one tenant has sent is there for another, or
// for the wrong request: a prefix that only tenant A has sent, one whose
// request was aborted, one with another picture in it, one that was sent to
// another adapter, a prompt that is nearly the same.
func PrefixSharing() Protocol {
	return Protocol{
		Name:  "prefix",
		Does:  "repeats prefixes that another tenant has sent, that were aborted, or that had another picture or adapter, and times and reads the answers",
		Start: func(e Env) Plan { return newPrefixes(e) },
	}
}

const (
	// prefixTokens is the length of prefixes whose answers are timed: its prefill
	// has to take longer than the noise of a network.
	prefixTokens = 1536
	// reportedRounds are enough where the target says what came from its cache.
	// Where only time tells, timedRounds are made, and up to mostRounds as long as
	// they look like something: the test of times holds however often it is looked at.
	reportedRounds = 3
	timedRounds    = 12
	mostRounds     = 32
	surelyFaster   = 1e-5 // p-value that is small enough, whatever else a run tests
	likelyNot      = 0.2  // p-value after timedRounds that promises nothing
)

// prefixes makes its parts one after the other. Every group of exchanges is a
// comparison of its own.
type prefixes struct {
	env  Env
	rand *rand.Rand
	steps
	last  []wire.Exchange // of the batch before
	group int
	sent  int

	rounds   int             // of timing that were made whole
	reported int             // in which the same tenant's prefix was counted as cached
	retried  int             // prompts that were to be given up, and were answered when they were sent again
	hits     map[int]float64 // times to the first token of the group under way, seconds
	misses   map[int]float64
	faster   stats.Paired // that others' prefixes are answered sooner than new ones
	left     int          // prompts that were given up
	gone     bool         // the last of them was
	perToken float64      // least time to a first token, nanoseconds a token of a prompt
	soon     float64      // part of it after which the next is given up
	timed    tally
	again    tally
}

func newPrefixes(e Env) *prefixes {
	p := &prefixes{env: e, soon: abortAt, rand: rand.New(rand.NewPCG(e.Seed, 0x707265666978))}
	p.hits, p.misses = map[int]float64{}, map[int]float64{}
	for i := range mostRounds {
		p.round(i)
	}
	p.aborts()
	p.pictures()
	p.adapters()
	p.twins()
	return p
}

func (p *prefixes) Next(done []wire.Exchange) []Send {
	for i := range done {
		e := &done[i]
		p.time(e)
		switch {
		case e.Adapter != "":
		case e.Arm == wire.ArmOwn:
			if e.Answer.Served() {
				p.rounds++
				if u := e.Answer.Usage; u != nil && u.Cached > 0 {
					p.reported++
				}
			}
			p.timed.count(e)
		case e.Arm == wire.ArmHit, e.Arm == wire.ArmMiss:
			p.timed.count(e)
			p.compare(e)
		case e.Arm == wire.ArmLoad:
			p.again.count(e)
			if e.Answer.Served() {
				p.retried++
			}
		}
	}
	p.last = done
	return p.next()
}

// compare takes the time of one arm into the test, once there are both.
func (p *prefixes) compare(e *wire.Exchange) {
	if a := e.Answer; a.Served() && !a.FirstToken.IsZero() {
		arm := p.hits
		if e.Arm == wire.ArmMiss {
			arm = p.misses
		}
		arm[e.Group] = a.FirstToken.Sub(a.Start).Seconds()
	}
	hit, ok := p.hits[e.Group]
	if miss, both := p.misses[e.Group]; ok && both {
		p.faster.Add(hit, miss)
	}
}

// enough reports whether there have been rounds enough: a few where the target
// reports what it takes from its cache, else as many as the times call for.
func (p *prefixes) enough() bool {
	if p.reported >= reportedRounds && p.reported == p.rounds {
		return true
	}
	return p.rounds >= timedRounds && (p.faster.P() > likelyNot || p.faster.P() < surelyFaster)
}

// served is the seq of the one exchange of the batch before, or false if it was
// not served.
func (p *prefixes) served() (int, bool) {
	if len(p.last) != 1 || !p.last[0].Answer.Served() {
		return 0, false
	}
	return p.last[0].Seq, true
}

// round has one tenant send a prefix. Then another sends it, and one that was
// never sent, in an order left to chance; then the first sends it again, which
// shows what a hit looks like.
func (p *prefixes) round(i int) {
	owner, other := i%p.env.Tenants, (i+1)%p.env.Tenants
	label := fmt.Sprintf("round %d", i+1)
	var planted Send
	seq, ok := 0, false
	p.add(func() []Send {
		if p.enough() {
			return nil
		}
		p.group++
		planted = p.session(wire.Plant, label+", plant", owner, prefixTokens)
		return []Send{planted}
	})
	hit := func() []Send {
		if !ok || other == owner {
			return nil
		}
		s := repeated(planted, seq, other).arm(wire.ArmHit, p.group)
		s.Purpose, s.Label = wire.Unrelated, label+", other tenant"
		return []Send{s}
	}
	miss := func() []Send {
		if !ok {
			return nil
		}
		return []Send{p.session(wire.Unrelated, label+", never sent", other, prefixTokens).arm(wire.ArmMiss, p.group)}
	}
	first := p.rand.IntN(2) == 0
	p.add(func() []Send {
		if p.enough() {
			return nil
		}
		seq, ok = p.served()
		if first {
			return hit()
		}
		return miss()
	})
	p.add(func() []Send {
		switch {
		case p.enough():
			return nil
		case first:
			return miss()
		}
		return hit()
	})
	p.add(func() []Send {
		if !ok || p.enough() {
			return nil
		}
		s := repeated(planted, seq, owner).arm(wire.ArmOwn, p.group)
		s.Purpose, s.Label = wire.Unrelated, label+", same tenant"
		return []Send{s}
	})
}

// session is a streamed one: only a stream tells when its first token comes.
func (p *prefixes) session(purpose wire.Purpose, label string, tenant, tokens int) Send {
	s := session(purpose, label, tenant, capped(p.env, tokens), p.sent)
	p.sent++
	s.Stream = true
	return s
}

func (p *prefixes) Missing() string {
	switch {
	case p.rounds == 0:
		return "no prefix was answered a second time" + p.timed.why()
	case p.rounds < timedRounds && !p.enough():
		return fmt.Sprintf("%d of %d prefixes were answered a second time%s", p.rounds, timedRounds, p.timed.why())
	case p.env.Tenants < 2:
		return "only one tenant was given: whether prefixes are kept apart was not tested"
	case p.retried < abortTries:
		return fmt.Sprintf("%d of %d prompts were answered after they had been given up once%s", p.retried, abortTries, p.again.why())
	case p.left == 0:
		return "no prompt could be given up before it was answered"
	}
	return ""
}
