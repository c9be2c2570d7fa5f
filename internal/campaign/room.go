package campaign

import (
	"context"
	"slices"

	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

const (
	// firstRoom is the longest answer that is asked for once a model has spent a
	// shorter one on reasoning, tokens; it is quadrupled until text appears.
	firstRoom = 1024
	// mostRoom bounds that: what reasons for longer is not waited for.
	mostRoom = 16384
)

// room is how long the answers of a model have to be for it to say anything
// after its reasoning.
type room struct {
	tokens int  // 0 while no answer was too short
	full   bool // no more is given: not allowed, not paid for, or of no use
}

// more is the next longest answer to try after one of so many tokens.
func more(tokens int) int { return max(firstRoom, 4*tokens) }

// roomFor is how long an answer a send asks for, given what was learned. Prompts
// beside a limit keep theirs, for prompt and answer together may be held
// against it.
func (r *runner) roomFor(s probe.Send) int {
	if s.Asked < 0 || s.MaxTokens == 0 || s.Limit > 0 || s.Hangup.Any() || r.room.tokens <= s.MaxTokens {
		return s.MaxTokens
	}
	n := r.room.tokens
	if c := r.cfg.Facts.Context; c > 0 && s.Tokens > 0 {
		n = min(n, c-s.Tokens-slackTokens)
	}
	return max(n, s.MaxTokens)
}

// batch makes exchanges as round does. Where a model has spent all of an answer
// on reasoning the prompt is sent again with room for more, and the plan is
// handed the answer that says something; the other one stays on record and is
// looked through as well. One exchange finds out how much room it takes before
// the others follow.
func (r *runner) batch(ctx context.Context, protocol string, sends []probe.Send) (done []wire.Exchange, why string) {
	sends = slices.Clone(sends)
	for i := range sends {
		sends[i].MaxTokens = r.roomFor(sends[i])
	}
	done, why = r.round(ctx, protocol, sends)
	r.all = append(r.all, done...)
	if why != "" || len(done) != len(sends) {
		return done, why
	}
	short := r.short(sends, done)
	for len(short) > 0 && !r.room.full {
		want := max(r.room.tokens, more(sends[short[0]].MaxTokens))
		one := short[:1]
		if r.room.tokens >= want { // known already
			one = short
		}
		if want > mostRoom || !r.affords(done, one, want) {
			r.room.full = true
			break
		}
		if why = r.again(ctx, protocol, sends, done, one, want); why != "" {
			break
		}
		short = r.short(sends, done)
	}
	return done, why
}

// short are the exchanges of a batch that were too short to say anything and
// can be made again. One that cannot teaches for those to come.
func (r *runner) short(sends []probe.Send, done []wire.Exchange) (at []int) {
	for i := range done {
		e, s := &done[i], sends[i]
		if s.Asked < 0 || s.MaxTokens >= mostRoom || !e.ReasonedAway() {
			continue
		}
		_, counted := e.Used()
		_, made := r.made[origin(e)]
		switch {
		case counted && made && s.Prefix == nil && s.Again == nil && s.Arm == "" && !s.Hangup.Any() && !s.Extra():
			at = append(at, i)
		case !r.room.full:
			r.room.tokens = max(r.room.tokens, min(more(s.MaxTokens), mostRoom))
		}
	}
	return at
}

// origin is the exchange whose prompt an exchange repeats, itself if none.
func origin(e *wire.Exchange) int {
	if e.Again != nil {
		return *e.Again
	}
	return e.Seq
}

// affords reports whether the budget has what it takes to make exchanges again.
func (r *runner) affords(done []wire.Exchange, at []int, want int) bool {
	need := 0
	for _, i := range at {
		need += atMost(done[i].SentTokens) + want
	}
	_, requests := r.budget.used()
	left, most := r.budget.left(), r.cfg.Budget.Requests
	return (left == 0 || left >= need) && (most == 0 || requests+len(at) <= most)
}

// again makes some exchanges of a batch once more with longer answers, and puts
// those that were served in the place of the first ones.
func (r *runner) again(ctx context.Context, protocol string, sends []probe.Send, done []wire.Exchange, at []int, want int) string {
	var once []probe.Send
	for _, i := range at {
		s, seq := sends[i], origin(&done[i])
		s.Again, s.MaxTokens, s.Label = &seq, want, s.Label+", longer answer"
		once = append(once, s)
	}
	got, why := r.round(ctx, protocol, once)
	r.all = append(r.all, got...)
	for k := range got {
		e := &got[k]
		if !e.Answer.Served() {
			r.room.full = true // a longer answer may be more than the target makes
			continue
		}
		done[at[k]], sends[at[k]].MaxTokens = *e, want
		switch {
		case !e.ReasonedAway():
			r.room.tokens = max(r.room.tokens, want)
		case more(want) > mostRoom:
			r.room.full = true // it reasons for ever
		}
	}
	return why
}
