package probe

import (
	"fmt"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// Churn has clients go away in the middle of prefill and of answers, beside
// others that stay. What was on its way for those that left must not reach
// those that stayed, nor whoever gets their pages next.
func Churn() Protocol {
	return Protocol{
		Name:  "churn",
		Does:  "aborts requests in prefill and in their answers, beside others that stay and must get their own text",
		More:  fmt.Sprintf("up to %d exchanges more, where prompts beside others are counted otherwise than in quiet", doubtfulChases*(1+fewFollowers)),
		Start: func(e Env) Plan { return newChurn(e) },
	}
}

const (
	churnRounds = 3
	quietAsks   = 48 // asked one at a time before anybody leaves, every other one for a line
	stayers     = 3  // in each round, beside as many that leave
	// longPages is by how much more each of those that stay in a round is longer.
	longPages = 16
	// leaverTokens is the length of prompts that are given up: long enough that
	// much of it is under way when they are.
	leaverTokens = 3072
	// sweepTokens is the length of the prompts at the end, which get the pages
	// that were freed.
	sweepTokens = 4096
	sweeps      = 2
	// moreChases make up at most for those that stayed and were refused for the
	// traffic beside them, and doubtfulChases follow where prompts were counted
	// otherwise than in quiet: whoever gets the length of one that left gets its
	// text in few cases.
	moreChases, doubtfulChases = 16, 48
	// leastLeft is how many have to go away before their end for anything to be tested.
	leastLeft = 4
)

type churn struct {
	env Env
	steps
	sent   int
	quiet  tally
	stay   tally
	left   int
	late   int // that were to leave and had their answer before
	waits  waits
	counts counts
}

func newChurn(e Env) *churn {
	c := &churn{env: e}
	for i := range quietAsks {
		c.add(func() []Send {
			tenant, q := i/2%e.Tenants, questionNo(i/2)
			if i%2 == 1 {
				return []Send{c.line("quiet line", tenant, q.tail).arm(wire.ArmNull, 1)}
			}
			return []Send{c.stayer("quiet", tenant, quietPages(i/2), q).arm(wire.ArmNull, 1)}
		})
	}
	for n := range answerChases {
		c.add(func() []Send { return c.chaseAnswers(n) })
	}
	for n := range firstChases {
		c.add(func() []Send { return c.chase(n) })
	}
	for round := range churnRounds {
		c.add(func() []Send { return c.round(round) })
		c.add(func() []Send { return c.after(round) })
	}
	for i := range sweeps {
		c.add(func() []Send { return c.sweep(i) })
	}
	for i := range doubtfulChases {
		c.add(func() []Send {
			switch {
			case c.stay.crowded > 0 && c.stay.served < c.want() && i < moreChases:
				return c.chase(firstChases + i)
			case c.counts.others() > 0:
				return spare(c.chase(firstChases + i))
			}
			return nil
		})
	}
	return c
}

// want is how many that stayed have to be answered.
func (c *churn) want() int {
	return firstChases*fewFollowers + answerChases*followers + churnRounds*(stayers+c.env.Tenants) + sweeps*c.env.Tenants
}

// page is the page size, or a usual one, tokens.
func (e Env) page() int {
	if e.PageSize > 0 {
		return e.PageSize
	}
	return usualPage
}

// stayer is a request that is waited for. Lengths lie around multiples of a
// page, some of them long.
func (c *churn) stayer(label string, tenant, pages int, q question) Send {
	tokens := c.env.page()*(max(288/c.env.page(), 1)+1+pages+c.sent%3) + c.sent%5 - 2
	s := send(wire.Unrelated, label, tenant, capped(c.env, max(tokens, compactBelow)), nonceAnswer, q)
	s.Stream = c.sent%2 == 0
	c.sent++
	return s
}

// quietPages is how much longer than usual one of the quiet requests is, pages:
// each length of those that stay has its control.
func quietPages(i int) int { return longPages * max(0, i%5-2) }

// leaver is a request whose client goes away.
func (c *churn) leaver(round, i int) Send {
	l := moments[(round+i*2)%len(moments)]
	tokens := capped(c.env, leaverTokens-c.env.page()*(i+round)-i)
	s := manyNonces("leaves "+l.String(), (round+i)%c.env.Tenants, tokens, c.env.MaxAnswer, questionNo(round))
	s.Hangup = l.hangup(c.waits.part(tokens, 1, 1))
	return s
}

// round has some leave beside others that stay.
func (c *churn) round(round int) []Send {
	var batch []Send
	for i := range stayers {
		batch = append(batch, c.leaver(round, i))
		batch = append(batch, c.stayer(fmt.Sprintf("round %d", round+1), (round+i+1)%c.env.Tenants, longPages*i, questionNo(round)).arm(wire.ArmLoad, 1))
	}
	return batch
}

// after asks all tenants at once, right behind those that left: they get the
// connections and the pages.
func (c *churn) after(round int) []Send {
	var batch []Send
	for t := range c.env.Tenants {
		batch = append(batch, c.stayer(fmt.Sprintf("after %d", round+1), t, 0, questionNo(round)).arm(wire.ArmLoad, 1))
	}
	return batch
}

// sweep reads what was freed.
func (c *churn) sweep(i int) []Send {
	var batch []Send
	for t := range c.env.Tenants {
		s := send(wire.Unrelated, "sweep", t, capped(c.env, sweepTokens+i*c.env.page()), c.env.MaxAnswer, questionNo(c.sent)).arm(wire.ArmLoad, 1)
		c.sent++
		batch = append(batch, s)
	}
	return batch
}

func (c *churn) Next(done []wire.Exchange) []Send {
	for i := range done {
		switch e := &done[i]; {
		case e.Left:
			c.left++
		case e.Arm == wire.ArmNull:
			c.quiet.count(e)
			c.waits.learn(e)
			c.counts.learn(e)
		case e.Arm == wire.ArmLoad:
			c.stay.count(e)
			c.counts.hold(e)
		case e.Answer.Served():
			c.late++
		}
	}
	return c.next()
}

func (c *churn) Missing() string {
	switch want := c.want(); {
	case c.quiet.served < quietAsks:
		return fmt.Sprintf("%d of %d requests were answered while nothing else ran%s", c.quiet.served, quietAsks, c.quiet.why())
	case c.stay.served < want:
		return fmt.Sprintf("%d of %d requests that stayed were answered%s", c.stay.served, want, c.stay.why())
	case c.counts.others() > 0:
		return fmt.Sprintf("of the prompts beside others %d were counted otherwise than in quiet (%s), and nothing else shows that they were read as others': look at how the target counts", c.counts.others(), c.counts.first)
	case c.left < leastLeft:
		return fmt.Sprintf("%d requests were given up before their end, %d had their answer before: longer prompts are needed", c.left, c.late)
	}
	return ""
}
