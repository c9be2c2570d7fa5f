package oracle

import (
	"context"
	"fmt"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// judgeFailOpen finds prompts that were answered although they cannot have
// been read. It needs nobody else's text: a prompt of which the target itself
// counted next to nothing is proof from a single request; a prompt over the
// limit is held against the control arm just under it.
func judgeFailOpen(_ context.Context, c Case) Judgement {
	var j Judgement
	b := booksOf(own(c.run()))
	proven := provenLimit(c.run())
	controls := controlArm(c.Exchanges)
	exchanges := own(c.Exchanges)
	for i := range exchanges {
		e := &exchanges[i]
		if !e.Answer.Served() {
			continue
		}
		why := ""
		if !b.mayBeHeld(e) {
			why = collapsed(e, b.line)
		}
		if why != "" && e.Echoes(e.Asked) {
			j.Unsure = fmt.Sprintf("the target counted next to nothing of a prompt of %d tokens and answered it with the value that it asks for: its counts do not tell what it reads", e.SentTokens)
			continue
		}
		// A shortened prompt loses its nonce, too, but was read as far as it goes.
		if limit := overLimit(e, proven); why == "" && limit > 0 && b.truncated(e) == "" {
			why = unread(e, limit, controls)
			if why != "" && !silent(e) {
				if doubt := mayForget(e, own(c.run()), exchanges, proven); doubt != "" {
					j.Unsure = why + ", but " + doubt
					continue
				}
			}
		}
		if why == "" {
			continue
		}
		j.Findings = append(j.Findings, Finding{
			Kind:     FailOpen,
			Protocol: e.Protocol,
			Exchange: e.Seq,
			Tenant:   e.Tenant,
			Explain:  why,
		})
	}
	return j
}

// collapsed says that the target counted next to nothing of a long prompt and
// answered it all the same.
func collapsed(e *wire.Exchange, line wire.Baseline) string {
	if !line.Collapsed(e) {
		return ""
	}
	used, _ := e.Used()
	return fmt.Sprintf("a prompt of %d tokens%s was answered with status %d although the target counted only %d of them: it was not read, and what was read in its place is not known",
		e.SentTokens, beyond(e), e.Answer.Status, used)
}

// beyond names the limit that a prompt is over, if it is over one.
func beyond(e *wire.Exchange) string {
	if e.Limit > 0 && e.SentTokens > e.Limit {
		return fmt.Sprintf(", over the limit of %d,", e.Limit)
	}
	return ""
}

// unread says that a prompt over the limit was answered with nothing of its own.
func unread(e *wire.Exchange, limit int, controls arm) string {
	if silent(e) {
		return fmt.Sprintf("a prompt of %d tokens, over the limit of %d, ended with status %d, finish %q and no text: it was neither refused nor served",
			e.SentTokens, limit, e.Answer.Status, e.Answer.Finish)
	}
	if controls.echoed > 0 && controls.lost == 0 && e.EchoLost() {
		return fmt.Sprintf("a prompt of %d tokens, over the limit of %d, was answered without the nonce that it asks for; %d of %d prompts just under the limit were answered with theirs",
			e.SentTokens, limit, controls.echoed, controls.echoed+controls.lost)
	}
	return ""
}

// mayForget says why a value that is missing from an answer may be the model's
// fault, "" if it is not: it is missing from answers to much shorter ones, too, or
// other prompts over a limit, about as long, were answered with theirs, so that
// such prompts are read.
func mayForget(e *wire.Exchange, all, exchanges []wire.Exchange, proven int) string {
	if a := within(all, e.SentTokens/muchShorter); a.lost > 0 {
		return fmt.Sprintf("so were %d of %d much shorter ones", a.lost, a.echoed+a.lost)
	}
	for i := range exchanges {
		o := &exchanges[i]
		if overLimit(o, proven) > 0 && o.Answer.Served() && o.Echoes(o.Asked) && longer(o, e, aboutAsLong) {
			return fmt.Sprintf("one of %d was answered with its own: it may not be a limit, and the model forgets", o.SentTokens)
		}
	}
	return ""
}

// aboutAsLong is from what part of its length on a prompt is as much over a limit
// as another one.
const aboutAsLong = 0.9

// muchShorter is the part of its length up to which prompts are under the limit
// that one may be over, whatever the limit is.
const muchShorter = 2

// within counts how prompts of so many tokens at most were answered, but for
// those that were sent beside others.
func within(exchanges []wire.Exchange, tokens int) (a arm) {
	for i := range exchanges {
		e := &exchanges[i]
		switch {
		case !e.Answer.Served() || e.Asked < 0 || e.Arm == wire.ArmLoad || e.SentTokens > tokens:
		case e.Echoes(e.Asked):
			a.echoed++
		case e.EchoLost():
			a.lost++
		}
	}
	return a
}

// silent reports whether an answer ended for its length without a word.
func silent(e *wire.Exchange) bool {
	if !e.Answer.CutShort() || e.ReasonedAway() {
		return false
	}
	for _, p := range e.Answer.Pieces {
		if p.Channel != wire.Header && p.Text != "" {
			return false
		}
	}
	return true
}

// arm counts how the prompts just under a limit were answered.
type arm struct{ echoed, lost int }

func controlArm(exchanges []wire.Exchange) arm {
	var a arm
	for i := range exchanges {
		e := &exchanges[i]
		switch {
		case e.Purpose != wire.Under || !e.Answer.Served():
		case e.Asked >= 0 && e.Echoes(e.Asked):
			a.echoed++
		case e.EchoLost():
			a.lost++
		}
	}
	return a
}

// overLimit returns the limit that a prompt is over, 0 for none. A prompt that
// a protocol sends as over a limit may be a few tokens below its nominal
// value: engines keep a margin.
func overLimit(e *wire.Exchange, proven int) int {
	switch {
	case e.Limit > 0 && (e.SentTokens >= e.Limit || e.Purpose == wire.Over):
		return e.Limit
	case proven > 0 && e.SentTokens > proven:
		return proven
	}
	return 0
}

// provenLimit is the smallest limit that the target itself has named when it
// refused a prompt for its length, tokens; 0 for none.
func provenLimit(exchanges []wire.Exchange) int {
	limit := 0
	for i := range exchanges {
		if exchanges[i].Answer == nil {
			continue
		}
		r := exchanges[i].Answer.Refusal
		if r.TooLong() && r.Kind != wire.RefusedOutput && r.Limit > 0 && (limit == 0 || r.Limit < limit) {
			limit = r.Limit
		}
	}
	return limit
}
