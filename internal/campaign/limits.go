package campaign

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// limits is what the run has measured of the longest prompt. Without a
// protocol that looks for it, what happened to be served and refused is taken,
// leaving out answers that something was found in.
func (r *runner) limits() Limits {
	out := Limits{AcceptedMax: r.found.AcceptedMax, RejectedMin: r.found.RejectedMin, Estimated: r.found.Estimated}
	looked := r.found != (probe.Found{})
	if !looked {
		out.AcceptedMax = r.longestServed()
	}
	shortest := r.shortestRefused(out)
	if !looked && shortest != nil {
		var counted bool
		out.RejectedMin, counted = length(shortest)
		out.Estimated = !counted
	}
	out.Rejection = rejection(shortest, out.RejectedMin, r.shortestUnread(out.RejectedMin))
	if how := r.streamed(shortest); how != "" {
		out.Rejection += "; streamed: " + how
	}
	return out
}

// suspects are the exchanges that something was found in, by seq.
func (r *runner) suspects() map[int]bool {
	out := map[int]bool{}
	for _, f := range r.result.Findings {
		out[f.Exchange] = true
	}
	return out
}

// longestServed is the longest prompt that was served, as counted; where none
// was counted, as estimated.
func (r *runner) longestServed() int {
	counted, estimated, suspect := 0, 0, r.suspects()
	for i := range r.all {
		e := &r.all[i]
		if !e.Answer.Served() || suspect[e.Seq] {
			continue
		}
		if n, ok := length(e); ok {
			counted = max(counted, n)
		} else {
			estimated = max(estimated, n)
		}
	}
	return cmp.Or(counted, estimated)
}

// shortestRefused is the shortest prompt over the limit that was refused, nil
// if there is none. One that is shorter than what was served was refused for
// the traffic beside it, not for its length.
func (r *runner) shortestRefused(l Limits) *wire.Exchange {
	var out *wire.Exchange
	for i := range r.all {
		e := &r.all[i]
		refusal := e.Answer.Refusal
		if refusal == nil {
			continue
		}
		n, counted := length(e)
		atLimit := n == l.RejectedMin && (refusal.Kind == wire.RefusedServer || refusal.Kind == wire.RefusedBodySize)
		if !refusal.TooLong() && !atLimit || n <= l.AcceptedMax && counted {
			continue
		}
		if out != nil {
			if least, _ := length(out); n >= least {
				continue
			}
		}
		out = e
	}
	return out
}

// shortestUnread is the shortest prompt of at least limit tokens that was
// answered, and something found in the answer; nil if there is none.
func (r *runner) shortestUnread(limit int) *wire.Exchange {
	var out *wire.Exchange
	suspect := r.suspects()
	for i := range r.all {
		e := &r.all[i]
		if e.Answer.Served() && suspect[e.Seq] && e.SentTokens >= limit && (out == nil || e.SentTokens < out.SentTokens) {
			out = e
		}
	}
	return out
}

// length is how long a prompt was, tokens, as well as it is known after the
// answer, and whether that is a count.
func length(e *wire.Exchange) (tokens int, counted bool) {
	if e.SentExact || e.Again != nil {
		return e.SentTokens, true
	}
	if used, ok := e.Used(); ok && e.Answer.Served() && !e.Collapsed() {
		return used, true
	}
	if f := e.Answer.Refusal; f != nil && f.Sent > 0 && !f.AtLeast {
		return f.Sent, true
	}
	return e.SentTokens, false
}

// rejection says in words how prompts over the limit are refused, or that some
// are not although they are over it.
func rejection(shortest *wire.Exchange, limit int, unread *wire.Exchange) string {
	var says []string
	from := 0
	if shortest != nil {
		from, _ = length(shortest)
	}
	if unread != nil && limit > 0 && unread.SentTokens >= limit && (shortest == nil || unread.SentTokens < from) {
		says = append(says, fmt.Sprintf("answered with HTTP %d in place of a refusal", unread.Answer.Status))
	}
	if shortest != nil {
		s := refusalInWords(shortest)
		if len(says) > 0 {
			s = fmt.Sprintf("from %d tokens on %s", from, s)
		}
		says = append(says, s)
	}
	return strings.Join(says, "; ")
}

// streamed says how prompts over the limit are refused that were asked for as a
// stream, "" if as others are or if none was.
func (r *runner) streamed(shortest *wire.Exchange) string {
	if shortest == nil || shortest.Stream {
		return ""
	}
	for i := range r.all {
		e := &r.all[i]
		if e.Stream && e.Answer.Refusal.TooLong() && outwardly(e) != outwardly(shortest) {
			return outwardly(e)
		}
	}
	return ""
}

// outwardly is what a client sees of a refusal before it reads any words.
func outwardly(e *wire.Exchange) string {
	s := fmt.Sprintf("HTTP %d", e.Answer.Status)
	if e.Answer.Refusal.InAnswer {
		s += " with an error inside"
	}
	return s
}

func refusalInWords(e *wire.Exchange) string {
	f := e.Answer.Refusal
	s := fmt.Sprintf("%s, %s", outwardly(e), f.Kind)
	if f.Limit > 0 {
		s += fmt.Sprintf(", names a limit of %d tokens", f.Limit)
	}
	if f.Kind == wire.RefusedOutput {
		s += fmt.Sprintf(", prompt and answer together (%d asked for)", e.MaxTokens)
	}
	return s
}
