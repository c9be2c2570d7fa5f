package oracle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/internal/stats"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// judgeReplay compares, byte by byte, the two answers to each prompt that was
// sent twice: on the null arm one right after the other, else with others'
// prompts in between. Where answers differ with nothing between them, the
// target is not so deterministic that a difference could mean anything.
func judgeReplay(_ context.Context, c Case) Judgement {
	var j Judgement
	var null, others pairs
	bySeq, usual := promptsOf(c.Exchanges).bySeq, wordingsOf(c.Exchanges)
	restyled := 0
	for i := range c.Exchanges {
		again := &c.Exchanges[i]
		if again.Arm != wire.ArmNull && again.Arm != wire.ArmAgain || len(again.Holds) == 0 {
			continue
		}
		first := bySeq[again.Holds[0]]
		switch {
		case first == nil || first.Group != again.Group || !first.Answer.Served() || !again.Answer.Served():
		case again.Arm == wire.ArmNull && first.Arm == wire.ArmNull:
			null.add(first, again)
		case again.Arm == wire.ArmAgain && first.Arm == wire.ArmFirst:
			if usual.restyled(first, again) {
				restyled++
				continue
			}
			others.add(first, again)
		}
	}
	if restyled > 0 {
		j.Unsure = fmt.Sprintf("%d prompts were answered in other words after others' prompts, with the same value and in words in which other prompts were answered with nothing between: replicas that word answers otherwise do that", restyled)
	}
	if others.n == 0 || null.n == 0 {
		return j
	}
	if null.differ > 0 {
		j.Unsure = fmt.Sprintf("%d of %d prompts were answered otherwise when they were sent again at once: answers that change say nothing here", null.differ, null.n)
		return j
	}
	p, e := stats.Fisher(others.differ, others.n, null.differ, null.n), others.last
	told := fmt.Sprintf("%d of %d prompts were answered otherwise after others' prompts, none of %d when they were sent again at once", others.differ, others.n, null.n)
	j.Tests = []Test{{P: p, Finding: Finding{
		Kind: Contamination, Protocol: e.Protocol, Exchange: e.Seq, Tenant: e.Tenant,
		Explain: told + ": what others send changes answers",
	}}}
	if others.differ > 0 {
		j.Unsure = told + ": too few to be sure"
	}
	return j
}

// pairs counts prompts that were sent twice and how many were answered otherwise.
type pairs struct {
	n, differ int
	last      *wire.Exchange // the last that was, or the last of all if none was
}

func (p *pairs) add(first, again *wire.Exchange) {
	p.n++
	same := first.Answer.Text(wire.Content) == again.Answer.Text(wire.Content) &&
		first.Answer.Text(wire.Reasoning) == again.Answer.Text(wire.Reasoning) &&
		first.Answer.Text(wire.ToolCalls) == again.Answer.Text(wire.ToolCalls)
	if !same {
		p.differ++
	}
	if !same || p.differ == 0 {
		p.last = again
	}
}

// wordings are the words around the values of answers before which nothing had
// come since their prompt's first sending, and the groups that have them.
type wordings map[string][]int

func wordingsOf(exchanges []wire.Exchange) wordings {
	w := wordings{}
	for i := range exchanges {
		e := &exchanges[i]
		if e.Arm != wire.ArmNull && e.Arm != wire.ArmFirst {
			continue
		}
		if words, ok := wording(e); ok {
			w[words] = append(w[words], e.Group)
		}
	}
	return w
}

// restyled reports whether two answers say the same value, and the second says it
// in words that are usual: others of other groups were answered so.
func (w wordings) restyled(first, again *wire.Exchange) bool {
	was, ok := wording(first)
	is, still := wording(again)
	return ok && still && was != is && slices.ContainsFunc(w[is], func(group int) bool { return group != again.Group })
}

// wording is an answer without the value that it was asked for; ok is false if it
// does not have it.
func wording(e *wire.Exchange) (words string, ok bool) {
	if !e.Answer.Served() || e.Asked < 0 || !e.Echoes(e.Asked) {
		return "", false
	}
	said := strings.ToLower(e.Answer.Text(wire.Content) + "\x00" + e.Answer.Text(wire.Reasoning) + "\x00" + e.Answer.Text(wire.ToolCalls))
	return strings.ReplaceAll(said, e.Nonces[e.Asked], "\x01"), true
}
