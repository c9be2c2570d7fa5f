package probe

import (
	"fmt"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// Replay sends a prompt at temperature 0, others' prompts, and the same prompt
// again: what differs between the two answers came from the others, unless it
// differs as well where nothing was in between.
func Replay() Protocol {
	return Protocol{
		Name:  "replay",
		Does:  "sends the same prompt at temperature 0 before and after unrelated ones, and twice in a row as the control",
		Start: func(e Env) Plan { return newReplay(e) },
	}
}

const (
	replayRounds = 4
	// mostReplays are made where answers have changed after others' prompts and
	// never without: too few to be sure of it yet.
	mostReplays = 14
	// replayTokens is the length of the prompts that are compared. Their
	// lengths differ by less than a page from round to round, so that their ends
	// lie at every place of one.
	replayTokens = 640
	between      = 4 // unrelated prompts
)

type replay struct {
	env Env
	steps
	last   []wire.Exchange // of the batch before
	others int
	pairs  [2]int // that were served on both sides: with nothing and with others between
	differ [2]int // of them, answered otherwise
	said   map[int]string
	tally
}

func newReplay(e Env) *replay {
	r := &replay{env: e, said: map[int]string{}}
	for i := range mostReplays {
		group := i + 1
		r.twice(i, group, wire.ArmNull, wire.ArmNull, nil)
		r.twice(i, group, wire.ArmFirst, wire.ArmAgain, r.unrelated)
	}
	return r
}

// twice sends one prompt on two arms, with the exchanges of meanwhile between.
func (r *replay) twice(round, group int, before, after string, meanwhile func() []Send) {
	var first Send
	seq, made := -1, false
	r.add(func() []Send {
		if made = round < replayRounds || r.promising(); !made {
			return nil
		}
		first = session(wire.Unrelated, fmt.Sprintf("round %d, %s", group, before), round%r.env.Tenants, r.length(round), round).arm(before, group)
		first.MaxTokens = r.env.MaxAnswer
		return []Send{first}
	})
	r.add(func() []Send {
		if made && len(r.last) == 1 && r.last[0].Answer.Served() {
			seq = r.last[0].Seq
		}
		if seq < 0 || meanwhile == nil {
			return nil
		}
		return meanwhile()
	})
	r.add(func() []Send {
		if seq < 0 {
			return nil
		}
		again := repeated(first, seq).arm(after, group)
		again.Label = fmt.Sprintf("round %d, %s", group, after)
		return []Send{again}
	})
}

// promising reports whether more rounds may make sure of something.
func (r *replay) promising() bool { return r.differ[0] == 0 && r.differ[1] > 0 }

func (r *replay) length(round int) int { return capped(r.env, replayTokens+5*round) }

// unrelated are others' prompts of lengths around that of the prompt, shorter
// ones first: what they leave behind is longer than what comes after them.
func (r *replay) unrelated() []Send {
	var batch []Send
	for i := range between {
		tokens := capped(r.env, replayTokens*(i+2)/3)
		r.others++
		batch = append(batch, session(wire.Churn, "in between", r.others%r.env.Tenants, tokens, r.others))
	}
	return batch
}

func (r *replay) Next(done []wire.Exchange) []Send {
	for i := range done {
		e := &done[i]
		if e.Arm == "" {
			continue
		}
		r.count(e)
		if !e.Answer.Served() {
			continue
		}
		r.said[e.Seq] = e.Answer.Text(wire.Content)
		if len(e.Holds) == 0 {
			continue
		}
		arm := 1
		if e.Arm == wire.ArmNull {
			arm = 0
		}
		r.pairs[arm]++
		if r.said[e.Seq] != r.said[e.Holds[0]] {
			r.differ[arm]++
		}
	}
	r.last = done
	return r.next()
}

func (r *replay) Missing() string {
	if r.pairs[0] < replayRounds || r.pairs[1] < replayRounds {
		return fmt.Sprintf("%d of %d prompts were answered twice in a row, %d of %d before and after others%s",
			r.pairs[0], replayRounds, r.pairs[1], replayRounds, r.why())
	}
	return ""
}
