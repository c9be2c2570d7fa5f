package campaign

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// judge shows the exchanges of a protocol, r.all[from:], to every oracle and
// comes to its verdict. missing says what of its coverage was not reached.
func (r *runner) judge(ctx context.Context, name string, from int, missing string) ProtocolResult {
	mine := r.all[from:]
	out := ProtocolResult{Name: name, Exchanges: len(mine)}
	for i := range mine {
		prompt, completion := cost(&mine[i])
		out.PromptTokens += prompt
		out.CompletionTokens += completion
		switch a := mine[i].Answer; {
		case a.Served():
			out.Served++
		case a.Refusal.TooLong():
			out.Refused++
		}
	}
	r.result.Spent.Exchanges += len(mine)
	r.result.Spent.PromptTokens += out.PromptTokens
	r.result.Spent.CompletionTokens += out.CompletionTokens

	heard := r.ask(ctx, oracle.Case{
		Coder: r.coder, Run: r.id, Exchanges: mine, All: r.all,
		Limit: r.limit(), PageSize: r.cfg.Facts.PageSize, Controls: r.controls, RawBytes: r.rawBytes,
	})
	findings, hits := heard.Findings, heard.ControlHits
	r.result.Findings = append(r.result.Findings, findings...)
	r.result.Controls.NeverSentHits += hits
	for _, t := range heard.Tests {
		r.tests = append(r.tests, test{t, len(r.result.Protocols), heard.Unsure})
	}
	if missing == "" {
		missing = r.unkept() // also what the oracles could not read back
	} else {
		missing = because(missing, mine)
	}
	out.Verdict = verdictOf(findings)
	switch {
	case hits > 0:
		out.Verdict, out.Reason = Inconclusive, controlsReason(hits)
	case out.Verdict == Clean && missing != "":
		out.Verdict, out.Reason = Inconclusive, missing
	case out.Verdict == Clean && out.Served == 0:
		out.Verdict, out.Reason = Inconclusive, "no exchange was served: there was nothing to judge"
	case out.Verdict == Clean && !spoke(mine):
		out.Verdict, out.Reason = Inconclusive, "no answer had any text: there was nothing to look through"
	case out.Verdict == Clean && unread(name, mine, heard.Unsure) != "":
		out.Verdict, out.Reason = Inconclusive, unread(name, mine, heard.Unsure)
	case out.Verdict == Clean && r.unenforced(mine) != "":
		out.Verdict, out.Reason = Inconclusive, r.unenforced(mine)
	case out.Verdict == Clean:
		out.Bound = bound(name, mine)
		if out.Bound.N == 0 {
			out.Verdict, out.Bound = Inconclusive, nil
			out.Reason = "no prompt over a limit was refused or answered with its own nonce: nothing was tested"
		}
	default:
		out.Reason = missing
	}
	return out
}

// grace is how long answers that have come are still looked through after a
// campaign was ended.
const grace = 3 * time.Second

// judging is a context for judging: it outlives ctx by grace.
func judging(ctx context.Context) (context.Context, context.CancelFunc) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		select {
		case <-time.After(grace):
			cancel()
		case <-own.Done():
		}
	})
	return own, cancel
}

// ask collects what the oracles find, each thing once.
func (r *runner) ask(ctx context.Context, c oracle.Case) (all oracle.Judgement) {
	type key struct {
		kind           oracle.Kind
		exchange, from int
		channel        wire.Channel
		tenant         string
	}
	seen := map[key]bool{}
	ctx, done := judging(ctx)
	defer done()
	for _, o := range r.cfg.Oracles {
		j := o.Judge(ctx, c)
		all.ControlHits += j.ControlHits
		all.Tests = append(all.Tests, j.Tests...)
		if all.Unsure == "" {
			all.Unsure = j.Unsure
		}
		for _, f := range j.Findings {
			k := key{kind: f.Kind, exchange: f.Exchange, from: -1, channel: f.Channel, tenant: f.FromTenant}
			if f.FromExchange != nil {
				k.from = *f.FromExchange
			}
			if !seen[k] {
				seen[k] = true
				all.Findings = append(all.Findings, f)
			}
		}
	}
	slices.SortStableFunc(all.Findings, func(a, b oracle.Finding) int { return a.Exchange - b.Exchange })
	return all
}

// unenforced says that prompts over a limit were served and none was refused
// for its length in all of the run, "" if that is not so. A server error says so
// of a prompt that is long, and nothing of one with a picture. No target serves
// prompts over its context window: the one that was given is not this target's,
// and nothing was tested. A pool may be larger than it was said to be, but only
// a count of the target's own says that more was read.
func (r *runner) unenforced(mine []wire.Exchange) string {
	over := 0
	for i := range mine {
		e := &mine[i]
		if e.Purpose != wire.Over || !e.Answer.Served() {
			continue
		}
		if used, ok := e.Used(); e.Limit == r.cfg.Facts.Context || !ok || 10*used < 9*e.SentTokens {
			over = max(over, e.Limit)
		}
	}
	refused := func(e wire.Exchange) bool {
		return e.Answer != nil && (e.Answer.Refusal.TooLong() || e.Purpose != wire.Unrelated && dirty(e.Answer))
	}
	if over == 0 || slices.ContainsFunc(r.all, refused) {
		return ""
	}
	return fmt.Sprintf("prompts over the limit of %d tokens were served, and none was refused for its length: nothing shows that it is a limit of this target; run boundary, or say the right one", over)
}

// dirty reports a server error, which is how some targets refuse long prompts.
func dirty(a *wire.Answer) bool {
	return a.Refusal != nil && (a.Refusal.Kind == wire.RefusedServer || a.Refusal.Kind == wire.RefusedBodySize)
}

// unread says why answers in which nothing was found say nothing, "" if they
// do: an oracle is unsure, more text came than was looked through, or no answer
// carries the value that its prompt asked for, so that nothing shows that the
// answers have to do with the prompts.
func unread(protocol string, exchanges []wire.Exchange, unsure string) string {
	asked, echoed := 0, 0
	for i := range exchanges {
		e := &exchanges[i]
		if e.Answer != nil && e.Answer.Overran {
			return fmt.Sprintf("the answer to exchange %d has more text than is looked through", e.Seq)
		}
		if e.Answer.Served() && e.Asked >= 0 && e.Nonces[e.Asked] != "" {
			asked++
			if e.Echoes(e.Asked) {
				echoed++
			}
		}
	}
	if unsure == "" && asked > 0 && echoed == 0 && !refusalsCount(protocol) {
		return fmt.Sprintf("none of %d answers has the value that its prompt asks for: nothing shows that they have to do with the prompts; name a model that does as it is told", asked)
	}
	return unsure
}

func verdictOf(findings []oracle.Finding) Verdict {
	v := Clean
	for _, f := range findings {
		switch f.Kind {
		case oracle.Leak, oracle.Misroute:
			v = v.worse(Leak)
		default:
			v = v.worse(Violation)
		}
	}
	return v
}

func controlsReason(hits int) string {
	return fmt.Sprintf("%d canaries that were never sent came back: the scanner or this run is broken, or another run uses the same key and seed; no verdict can rest on it", hits)
}

// limit is the smallest limit known or found, tokens; 0 if there is none.
func (r *runner) limit() int {
	out := 0
	for _, l := range []int{r.cfg.Facts.Context, r.cfg.Facts.Pool, r.found.RejectedMin} {
		if l > 0 && (out == 0 || l < out) {
			out = l
		}
	}
	return out
}

// rawBytes reads an answer's raw bytes for the oracles, nil if they are gone.
func (r *runner) rawBytes(e *wire.Exchange) []byte {
	dir := ""
	if r.dir != nil {
		dir = r.dir.path
	}
	b, err := readRaw(dir, e)
	if err != nil && r.dir != nil {
		r.dir.fail(err)
	}
	return b
}

// spoke reports whether any served answer carried text of its own. Headers are
// there always.
func spoke(exchanges []wire.Exchange) bool {
	for i := range exchanges {
		if a := exchanges[i].Answer; a.Served() {
			for _, p := range a.Pieces {
				if p.Channel != wire.Header && strings.TrimSpace(p.Text) != "" {
					return true
				}
			}
		}
	}
	return false
}

// because adds to what is missing the first trouble that exchanges ended in,
// in the target's words, unless it is said already.
func because(missing string, exchanges []wire.Exchange) string {
	if stuck := waited(exchanges); stuck != "" {
		return missing + "; " + stuck
	}
	for i := range exchanges {
		words, status := "", ""
		switch a := exchanges[i].Answer; {
		case a.Failure != nil && a.Failure.Kind != wire.FailedCanceled:
			words = a.Failure.Message
		case a.Refusal != nil && !a.Refusal.TooLong():
			words, status = a.Refusal.Message, fmt.Sprintf("HTTP %d: ", a.Refusal.Status)
		}
		if words+status == "" || words != "" && strings.Contains(missing, words) {
			continue
		}
		return fmt.Sprintf("%s; exchange %d ended with %s%s", missing, exchanges[i].Seq, status, shorten(words, 160))
	}
	return missing
}

// waited says that requests had no answer yet when they were stopped, though
// they had waited much longer than any that was answered: it may be that the target
// answers nobody any more, which no answer tells. "" if none had.
func waited(exchanges []wire.Exchange) string {
	var usual, longest time.Duration
	for i := range exchanges {
		if a := exchanges[i].Answer; a.Served() {
			usual = max(usual, a.End.Sub(a.Start))
		}
	}
	n := 0
	for i := range exchanges {
		e := &exchanges[i]
		if e.Left || e.Answer.Failure == nil || e.Answer.Failure.Kind != wire.FailedCanceled || e.Answer.Raw.Size > 0 {
			continue
		}
		if d := e.Answer.End.Sub(e.Answer.Start); d > tooLong*usual && d >= time.Second {
			n, longest = n+1, max(longest, d)
		}
	}
	if n == 0 || usual == 0 {
		return ""
	}
	return fmt.Sprintf("%d of its requests had no answer after %v, others had theirs after %v at most: see whether the target still answers anybody", n, longest.Round(time.Second), usual.Round(time.Millisecond))
}

// tooLong is how many times as long as the slowest answer a request has to have
// waited to be called out.
const tooLong = 3

// shorten cuts a text to about n bytes, at a rune.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}
