package probe

import (
	"math"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// Chases.
//
// In a chase some leave while nothing else is under way, and others come right
// behind them: they get the pages that were left, at the one moment at which
// something may still write them or free them again. What that moment is a
// client cannot see. But it knows how long prefill takes, and that what comes
// between prefill and the first token is on its way then; so that is when most
// leave, sooner rather than later, for what follows has to be written first.
// The others leave in their answers.

const (
	// firstChases leave before their answer, one at a time, each with followers
	// behind it: few, for they wait for each other.
	firstChases, fewFollowers = 32, 2
	// answerChases leave in their answers, as many at a time as come behind them.
	answerChases, followers = 8, 4
	// chasedTokens is the length of one that leaves before its answer: it has more
	// pages than those behind it. answersTokens is that of one that leaves in it:
	// it has about as many as one of them.
	chasedTokens, answersTokens = 1024, 320
)

// golden is the part of the circle by which moments that follow each other
// differ: however many there are, they lie about evenly.
const golden = math.Phi - 1

// moment is when chase n leaves before its answer, as a part of what lies between
// prefill and the first token: every eighth one comes in prefill, and is negative.
func moment(n int) float64 {
	_, part := math.Modf(golden * float64(n+1))
	if n%8 == 7 {
		return -part
	}
	return part * part
}

// chase has one leave before its answer. Its pages say one nonce again and
// again, behind the key that those behind it ask for.
func (c *churn) chase(n int) []Send {
	tokens := capped(c.env, chasedTokens)
	s := manyNonces("leaves before it", n%c.env.Tenants, tokens, c.env.MaxAnswer, questionNo(n))
	s.Hangup = wire.Hangup{Sent: true}
	if m := moment(n); m < 0 {
		s.Hangup.After = c.waits.part(tokens, -m, 0)
	} else {
		s.Hangup.After = c.waits.part(tokens, 1, m)
	}
	return append([]Send{s}, c.follow(n, fewFollowers)...)
}

// chaseAnswers has several leave in their answers.
func (c *churn) chaseAnswers(n int) []Send {
	var batch []Send
	for i := range followers {
		s := lineOnly("leaves in its answer", (n+i)%c.env.Tenants, capped(c.env, answersTokens), c.env.MaxAnswer)
		s.Hangup = wire.Hangup{Text: 1 + 5*(n%4)}
		batch = append(batch, s)
	}
	return append(batch, c.follow(n, followers)...)
}

// follow are those right behind the ones that leave, of all tenants.
func (c *churn) follow(n, followers int) []Send {
	var batch []Send
	for i := range followers {
		batch = append(batch, c.line("behind", (n+1+i)%c.env.Tenants, questionNo(n).tail).arm(wire.ArmLoad, 1))
	}
	batch[0].Behind = true
	return batch
}

// line is a request for a line of its own, all of which comes back.
func (c *churn) line(label string, tenant int, t tail) Send {
	s := ownLine(label, tenant, capped(c.env, c.env.MaxAnswer+lineRest+c.env.page()*(c.sent%3)), c.env.MaxAnswer, t)
	s.Stream = c.sent%2 == 0
	c.sent++
	return s
}
