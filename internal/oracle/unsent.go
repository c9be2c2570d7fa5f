package oracle

import (
	"fmt"

	"github.com/kvcanary/kvcanary/internal/wire"
)

const (
	// unsentLeast is the length from which a prompt that nobody has sent is
	// looked at, tokens, and noneCached how many of such a one may be reported as
	// cached and still be none: a page of what all prompts begin with.
	unsentLeast = 512
	noneCached  = 64
	// partly is how many of them have to be cached in part.
	partly = 2
)

// unsent finds prompts that nobody has sent before and a quarter or more of which
// is reported as cached: the cache takes something else for them. Where a target
// reports such a thing of every prompt, or of most, its report means nothing; where
// some are cached as good as whole, or the very first in part, an earlier run with the
// same key and seed has sent them. It returns whether the report of cached tokens means anything: not if
// parts of most prompts are cached that nobody has sent.
func (j *Judgement) unsent(c Case) (steady bool) {
	var worst *wire.Exchange
	none := map[string]int{} // by tenant: each may have a target of its own
	nones, parts, whole := 0, 0, 0
	heads := headsOf(c.Exchanges)
	for i := range c.Exchanges {
		e := &c.Exchanges[i]
		if !fresh(e) || !e.SentExact || e.SentTokens < unsentLeast {
			continue
		}
		switch n := ownCached(e); {
		case n <= noneCached:
			nones++
			none[e.Tenant]++
		case n <= heads.of(e.Tenant)+noneCached: // as of any other
		case 10*n >= 9*e.SentTokens:
			whole++
		case 4*n >= e.SentTokens:
			parts++
			if worst == nil || n > ownCached(worst) {
				worst = e
			}
		}
	}
	if parts < partly || nones < parts || none[worst.Tenant] == 0 || whole > 0 || sentBefore(c.run()) {
		return parts < partly || nones >= parts
	}
	j.Findings = append(j.Findings, Finding{
		Kind: Sharing, Protocol: worst.Protocol, Exchange: worst.Seq, Tenant: worst.Tenant,
		Explain: fmt.Sprintf("the target reports %d tokens of a prompt of %d as cached that nobody has sent before, as it does of %d in all, and none of %d others like it: its cache takes prompts for each other that are not the same",
			cachedOf(worst), worst.SentTokens, parts, none[worst.Tenant]),
	})
	return true
}

// sentBefore reports whether the first prompt of a run, before which it had sent
// nothing, is reported as cached in part: an earlier run with the same key and
// seed has sent what other protocols put around the same words.
func sentBefore(exchanges []wire.Exchange) bool {
	var first *wire.Exchange
	for i := range exchanges {
		if e := &exchanges[i]; first == nil || e.Seq < first.Seq {
			first = e
		}
	}
	return first != nil && fresh(first) && first.SentExact && ownCached(first) > noneCached
}

// fresh reports whether a prompt was served that repeats nothing.
func fresh(e *wire.Exchange) bool {
	return e.Answer.Served() && e.Answer.Usage != nil && len(e.Holds) == 0 && e.Again == nil && e.Answer.Resent == 0
}

// heads are what is most often reported as cached of new prompts, of all and of
// each tenant: what a target puts before prompts may be another for each.
type heads struct {
	all int
	own map[string]int
}

func headsOf(exchanges []wire.Exchange) heads {
	h := heads{commonHead(exchanges), map[string]int{}}
	byTenant := map[string][]wire.Exchange{}
	for _, e := range exchanges {
		byTenant[e.Tenant] = append(byTenant[e.Tenant], e)
	}
	for tenant, own := range byTenant {
		head, same, other := commonHead(own), 0, 0
		for i := range own {
			if !fresh(&own[i]) || !own[i].SentExact {
				continue
			}
			switch n := ownCached(&own[i]); {
			case n == head && n > 0:
				same++
			case n > noneCached:
				other++
			}
		}
		// A cache that takes prompts for each other does so at other lengths each time.
		if same > other {
			h.own[tenant] = head
		}
	}
	return h
}

func (h heads) of(tenant string) int { return max(h.all, h.own[tenant]) }

// commonHead is what is most often reported as cached of new prompts of which
// something is, tokens: a target may put the same words before every prompt and
// have them counted as the prompt's own. What its cache holds of them is no more
// of one prompt than of another, though it may hold less of them at first.
func commonHead(exchanges []wire.Exchange) int {
	times := map[int]int{}
	head := 0
	for i := range exchanges {
		n := 0
		if e := &exchanges[i]; fresh(e) && e.SentExact {
			n = ownCached(e)
		}
		if n <= 0 {
			continue
		}
		// Once is no habit.
		if times[n]++; times[n] > max(1, times[head]) || times[n] == times[head] && n > head {
			head = n
		}
	}
	return head
}

// ownCached is how many tokens of the prompt itself are reported as cached:
// what a target puts before every prompt, and counts, may well be.
func ownCached(e *wire.Exchange) int {
	return cachedOf(e) - max(0, e.Answer.Usage.Prompt-e.SentTokens)
}
