package oracle

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/kvcanary/kvcanary/internal/stats"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// judgeSharing finds tenants whose prompts are answered from what another has
// sent. Cached tokens reported of a beginning that this tenant has never sent,
// where none are of new prompts, are proof, and so is a header by which the target
// says that it has kept the answer. Where none are reported, or such that
// mean nothing, the time
// to the first token is compared, pair by pair, by a test that holds at every
// look ([stats.Paired]): the two of a group go out in an order that the
// protocol draws.
func judgeSharing(_ context.Context, c Case) Judgement {
	var j Judgement
	steady := j.unsent(c)
	arms := sharingArms(c)
	bySeq := promptsOf(c.run()).bySeq
	j.kept(arms, bySeq)
	usual, reports := usualCached(c.Exchanges)
	reports = reports && steady
	for _, e := range arms.hit {
		cached := cachedOf(e)
		if !reports || max(cached, leftOut(e, bySeq)) < usual+e.LeastCached() {
			continue
		}
		f := sharingFinding(e, bySeq)
		f.Explain = fmt.Sprintf("the target reports %d tokens of a prompt of %d as cached whose beginning only %s has sent; of new prompts it reports %d at most: what one sends speeds up another, who can tell by it",
			cached, e.SentTokens, f.sender(), usual)
		if cached == 0 {
			f.Explain = fmt.Sprintf("the target leaves %d tokens uncounted of a prompt that only %s has sent before, as one does that counts what it has computed: what one sends speeds up another, who can tell by it",
				leftOut(e, bySeq), f.sender())
		}
		j.Findings = append(j.Findings, f)
	}
	j.lone(arms)
	if len(j.Findings) > 0 || len(arms.hit) == 0 {
		return j
	}
	if !reports || !arms.cacheShown(usual, bySeq) {
		j.timing(arms, bySeq)
	}
	return j
}

// mostlyCached is the part of a prompt, in tenths, that is cached of one which a
// gateway has sent twice.
const mostlyCached = 9

// lone takes back what rests on one prompt of several that was reported as cached,
// as good as whole, and was answered no sooner than a new one: a gateway that has
// sent it upstream twice, the first time in vain, is reported the same, and takes
// longer over it.
func (j *Judgement) lone(a arms) {
	if len(j.Findings) != 1 || len(a.hit) < 3 {
		return
	}
	f := j.Findings[0]
	i := slices.IndexFunc(a.hit, func(e *wire.Exchange) bool { return e.Seq == f.Exchange })
	if i < 0 || 10*cachedOf(a.hit[i]) < mostlyCached*a.hit[i].SentTokens {
		return
	}
	if miss := pairOf(a.hit[i], a.miss); miss == nil || waited(a.hit[i]) < waited(miss) {
		return
	}
	j.Findings, j.Unsure = nil, f.Explain+"; but it was the only one of "+fmt.Sprint(len(a.hit))+", and no sooner answered than a new one: a gateway may have sent it twice"
}

// arms are the served exchanges of a comparison.
type arms struct{ hit, own, miss []*wire.Exchange }

func sharingArms(c Case) (a arms) {
	for i := range c.Exchanges {
		e := &c.Exchanges[i]
		// What was sent more than once may be in the cache from the time before.
		if !e.Answer.Served() || e.Answer.Resent > 0 {
			continue
		}
		switch e.Arm {
		case wire.ArmHit:
			a.hit = append(a.hit, e)
		case wire.ArmOwn:
			a.own = append(a.own, e)
		case wire.ArmMiss:
			a.miss = append(a.miss, e)
		}
	}
	return a
}

// usualCached is the most that is reported as cached of prompts that nobody has
// sent before, tokens: what every prompt begins with, such as a template. It is
// not known without usage of one.
func usualCached(exchanges []wire.Exchange) (tokens int, ok bool) {
	for i := range exchanges {
		if e := &exchanges[i]; fresh(e) {
			tokens, ok = max(tokens, e.Answer.Usage.Cached), true
		}
	}
	return tokens, ok
}

func cachedOf(e *wire.Exchange) int {
	if e.Answer.Usage == nil {
		return 0
	}
	return e.Answer.Usage.Cached
}

// cacheShown reports whether a tenant's own repeats are reported as cached: the
// target would then report others', too, and time adds nothing.
func (a arms) cacheShown(usual int, bySeq map[int]*wire.Exchange) bool {
	return slices.ContainsFunc(a.own, func(e *wire.Exchange) bool {
		return max(cachedOf(e), leftOut(e, bySeq)) >= usual+e.LeastCached()
	})
}

// leftOut is how many tokens less the target counted of a prompt than when the
// same words were sent for the first time, where it counted next to none: some
// count only what they have computed, and say nothing of a cache.
func leftOut(e *wire.Exchange, bySeq map[int]*wire.Exchange) int {
	used, ok := e.Used()
	if !ok || len(e.Holds) == 0 || cachedOf(e) > 0 || e.SentSHA256 == "" {
		return 0
	}
	first := bySeq[e.Holds[0]]
	if first == nil || first.SentSHA256 != e.SentSHA256 {
		return 0
	}
	then, counted := first.Used()
	// Hardly a token for so many bytes: no hidden prompt that was there the first
	// time only makes that.
	if !counted || 4*used >= then || bytesComputed*used >= int(e.SentBytes) {
		return 0
	}
	return then - used
}

// bytesComputed is how many bytes of text a token cannot stand for.
const bytesComputed = 32

// timing tests whether prompts that another has begun are answered sooner than
// new ones. It takes the pairs in the order in which they were made.
func (j *Judgement) timing(a arms, bySeq map[int]*wire.Exchange) {
	var test stats.Paired
	var last *wire.Exchange
	for _, hit := range a.hit {
		miss := pairOf(hit, a.miss)
		if miss == nil {
			continue
		}
		test.Add(waited(hit), waited(miss))
		last = hit
	}
	if last == nil {
		return
	}
	f := sharingFinding(last, bySeq)
	told := fmt.Sprintf("prompts whose beginning only %s has sent were answered sooner than new ones in %d of %d pairs", f.sender(), test.Wins(), test.N())
	f.Explain = told + ", by the time to the first token: one tenant's prompts are answered from what another has sent"
	j.Tests = append(j.Tests, Test{P: test.P(), Finding: f})
	if test.P() <= suspicious {
		j.Unsure = told + ": too few to be sure"
	}
}

// pairOf is the new prompt of the same group.
func pairOf(hit *wire.Exchange, miss []*wire.Exchange) *wire.Exchange {
	i := slices.IndexFunc(miss, func(e *wire.Exchange) bool { return e.Group == hit.Group && e.Stream == hit.Stream })
	if i < 0 {
		return nil
	}
	return miss[i]
}

// waited is the time to the first token, seconds; that to the end of an answer
// that is no stream, and no number where there is none.
func waited(e *wire.Exchange) float64 {
	a := e.Answer
	switch {
	case !e.Stream && !a.End.IsZero():
		return a.End.Sub(a.Start).Seconds()
	case !a.FirstToken.IsZero():
		return a.FirstToken.Sub(a.Start).Seconds()
	}
	return math.NaN()
}

// sharingFinding names whose beginning it was.
func sharingFinding(e *wire.Exchange, bySeq map[int]*wire.Exchange) Finding {
	f := Finding{Kind: Sharing, Protocol: e.Protocol, Exchange: e.Seq, Tenant: e.Tenant}
	for _, seq := range e.Holds {
		if from := bySeq[seq]; from != nil {
			f.FromExchange, f.FromTenant = &seq, from.Tenant
			break
		}
	}
	return f
}

// sender names whose beginning it was, in words.
func (f *Finding) sender() string {
	switch {
	case f.FromTenant == "":
		return "another"
	case f.FromTenant == f.Tenant:
		return f.FromTenant + " for another adapter"
	}
	return f.FromTenant
}
