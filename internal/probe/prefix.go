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
	// knownRounds are enough where the target says what came from its cache. Where
	// it does not, there are fewPairs of times at least, and up to mostPairs as
	// long as they promise something.
	knownRounds = 3
	fewPairs    = 10
	somePairs   = 24
	mostPairs   = 64
)

// P-values of the times so far: at surely the test needs no more pairs, however
// many tests a run has; above perhaps after fewPairs, or likely after
// somePairs, more are not worth their tokens. The test is valid whenever it is
// stopped ([stats.Paired]).
const (
	surely  = 1e-5
	perhaps = 0.3
	likely  = 0.05
)

// prefixes makes its parts one after the other. Every group of exchanges is a
// comparison of its own.
type prefixes struct {
	env  Env
	rand *rand.Rand
	steps
	last     []wire.Exchange // of the batch before
	group    int
	turned   int            // group of conversations that go on
	forgot   map[string]int // of them, how many lack their value, by arm
	repeated int            // group of short prompts that are sent twice
	echoes   echoes         // of their answers
	twice    tally          // of those to the second
	sent     int
	tokens   int // sent

	own, reported int // prefixes that their own tenant had answered again, and counted as cached
	usual         int // most that was counted as cached of a new prompt, tokens
	waits         map[string]float64
	waiting       int // group that waits are of
	times         stats.Paired
	pairs         int // that were timed
	timed         tally

	retried  int     // prompts that were to be given up, and were answered when they were sent again
	left     int     // prompts that were given up
	gone     bool    // the last of them was
	perToken float64 // least time to a first token, nanoseconds a token of a prompt
	soon     float64 // part of it after which the next is given up
	again    tally
}

func newPrefixes(e Env) *prefixes {
	p := &prefixes{env: e, forgot: map[string]int{}, soon: abortAt, rand: rand.New(rand.NewPCG(e.Seed, 0x707265666978))}
	for i := range mostPairs {
		owner := who{tenant: i % e.Tenants}
		p.compare(fmt.Sprintf("round %d", i+1), prefixTokens, owner, who{tenant: (i + 1) % e.Tenants}, i < knownRounds, p.enough)
	}
	p.turns()
	p.repeats()
	p.aborts()
	p.pictures()
	p.adapters()
	p.twins()
	return p
}

func (p *prefixes) Next(done []wire.Exchange) []Send {
	for i := range done {
		e := &done[i]
		p.tokens += e.SentTokens
		p.learn(e)
		switch {
		case e.Adapter != "":
		case p.turned > 0 && e.Group == p.turned:
			if e.EchoLost() {
				p.forgot[e.Arm]++
			}
		case p.repeated > 0 && e.Group == p.repeated:
			p.echoes.count(e)
			if e.Arm == wire.ArmLoad {
				p.twice.count(e)
			}
		case e.Arm == wire.ArmOwn, e.Arm == wire.ArmHit, e.Arm == wire.ArmMiss:
			p.timed.count(e)
			p.compared(e)
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

// compared takes what a target says of its cache, and the times of a pair.
func (p *prefixes) compared(e *wire.Exchange) {
	if !e.Answer.Served() {
		return
	}
	if e.Arm == wire.ArmOwn {
		p.own++
		if u := e.Answer.Usage; u != nil && u.Cached >= p.usual+e.LeastCached() {
			p.reported++
		}
		return
	}
	if u := e.Answer.Usage; u != nil && e.Arm == wire.ArmMiss {
		p.usual = max(p.usual, u.Cached)
	}
	if p.waiting != e.Group {
		p.waiting, p.waits = e.Group, map[string]float64{}
	}
	p.waits[e.Arm] = e.Answer.FirstToken.Sub(e.Answer.Start).Seconds()
	hit, one := p.waits[wire.ArmHit]
	miss, other := p.waits[wire.ArmMiss]
	if one && other {
		p.pairs++
		p.times.Add(hit, miss)
	}
}

// known reports whether the target says what it takes from its cache: more of
// prompts that were sent before than of new ones. Some report the same of all.
func (p *prefixes) known() bool { return p.own >= knownRounds && p.reported == p.own }

// enough reports whether there have been rounds enough.
func (p *prefixes) enough() bool {
	n := p.pairs
	switch {
	case p.known(), p.env.Tenants < 2 && p.own >= knownRounds:
		return true
	case p.own < knownRounds:
		return false
	case p.env.MaxPrompt > 0 && p.tokens > p.env.MaxPrompt/3:
		return true // other parts want their share
	}
	return p.times.P() <= surely || n >= fewPairs && p.times.P() > perhaps || n >= somePairs && p.times.P() > likely
}

// served is the seq of the one exchange of the batch before, or false if it was
// not served.
func (p *prefixes) served() (int, bool) {
	if len(p.last) != 1 || !p.last[0].Answer.Served() {
		return 0, false
	}
	return p.last[0].Seq, true
}

// who sends, and to which adapter.
type who struct {
	tenant  int
	adapter string
}

func (w who) says(s Send, purpose wire.Purpose, label string) Send {
	s.Tenant, s.Adapter, s.Purpose, s.Label = w.tenant, w.adapter, purpose, label
	return s
}

// compare has an owner send a prefix. Then another sends it, and one that was
// never sent, in an order left to chance, or the time of day would look like
// a hit. At the end, if that is wanted, the owner sends it again, which shows
// what a hit looks like. Nothing is done once stop says so.
func (p *prefixes) compare(label string, tokens int, owner, other who, own bool, stop func() bool) {
	var planted Send
	seq, ok, over := 0, false, false
	p.add(func() []Send {
		if over = stop(); over {
			return nil
		}
		p.group++
		planted = owner.says(p.session(tokens), wire.Plant, label+", plant")
		return []Send{planted}
	})
	hit := func() []Send {
		if !ok || other == owner {
			return nil
		}
		return []Send{other.says(repeated(planted, seq), wire.Unrelated, label+", by another").arm(wire.ArmHit, p.group)}
	}
	miss := func() []Send {
		if !ok {
			return nil
		}
		return []Send{other.says(p.session(tokens), wire.Unrelated, label+", never sent").arm(wire.ArmMiss, p.group)}
	}
	first, second := hit, miss
	if p.rand.IntN(2) == 0 {
		first, second = miss, hit
	}
	p.add(func() []Send {
		if over {
			return nil
		}
		seq, ok = p.served()
		return first()
	})
	p.add(second)
	p.add(func() []Send {
		if !ok || !own {
			return nil
		}
		return []Send{owner.says(repeated(planted, seq), wire.Unrelated, label+", by the same").arm(wire.ArmOwn, p.group)}
	})
}

// session is a streamed one: only a stream tells when its first token comes.
func (p *prefixes) session(tokens int) Send {
	s := session(wire.Plant, "", 0, capped(p.env, tokens), p.sent)
	p.sent++
	s.Stream = true
	return s
}

func (p *prefixes) Missing() string {
	switch n := p.pairs; {
	case p.own < knownRounds:
		return fmt.Sprintf("%d of %d prefixes were answered a second time%s", p.own, knownRounds, p.timed.why())
	case p.env.Tenants < 2:
		return "only one tenant was given: whether prefixes are kept apart was not tested"
	case n < fewPairs && !p.known():
		return fmt.Sprintf("%d of %d pairs of prefixes were timed%s", n, fewPairs, p.timed.why())
	case p.twice.served < leastRepeats:
		return fmt.Sprintf("%d of %d short prompts were answered twice in a row%s", p.twice.served, repeatTries, p.twice.why())
	case p.retried < abortTries:
		return fmt.Sprintf("%d of %d prompts were answered after they had been given up once%s", p.retried, abortTries, p.again.why())
	case p.left == 0:
		return "no prompt could be given up before it was answered"
	}
	return ""
}
