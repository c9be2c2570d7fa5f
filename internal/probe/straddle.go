package probe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// Straddle sends pairs of prompts just under and just over each limit, with
// other tenants' traffic between them. It is made for the incident: a prompt
// that one node refuses and another has made room for.
func Straddle() Protocol {
	return Protocol{
		Name:  "straddle",
		Does:  "sends pairs just under and just over each limit known or found, with other tenants' traffic between them",
		Start: func(e Env) Plan { return newStraddle(e) },
	}
}

const (
	// sglangMargin is how far below min(context, pool) SGLang starts to refuse:
	// it keeps one token for the length and five for its own use, and refuses
	// lengths equal to what is left.
	sglangMargin = 6
	// underMargin puts the control arm safely below every margin, tokens.
	underMargin = 16
	// apart is how much longer the prompt over the limit is than the one under it
	// at least, tokens: prompt and usual answer of the one end before the other
	// does. Positions are baked into cached keys, so a model that goes on from a
	// position which a stale page also holds goes on where that page's owner
	// stopped, and says nothing more.
	apart = 48
	// defaultPairs is enough for each usual limit once, or for one limit at each
	// of its edges.
	defaultPairs = 3
	churnPrompts = 3
	churnTokens  = 512
	pairSteps    = 4
)

// pair is one prompt under a limit and one over it.
type pair struct {
	limit       Limit
	under, over int
}

// straddle makes one pair after the other. The prompt under the limit comes
// first: it is the control arm, and being canary throughout it is also what
// fills the pages that the prompt over the limit may read.
type straddle struct {
	env     Env
	pairs   []pair
	skipped []string // limits that could not be tried, and why
	at      int      // pair under way
	step    int      // of the pair: 0 plants, 1 under, 2 churn, 3 over
	asked   int
	lowered bool // this pair's limit was lowered to what a refusal named
	retried bool // this arm was sent a second time
	silent  bool // because its answer said nothing of what was read
	reports bool // the target has reported usage
	// estimated says that prompts come out a little longer or shorter than wanted.
	estimated bool
	flawed    bool // prompts that are refused for another reason were sent

	controls, tests int      // arms that came to an answer or a clean refusal
	failures        []string // arms that did not
}

func newStraddle(e Env) *straddle {
	s := &straddle{env: e}
	limits := s.limits()
	want := e.Pairs
	if want == 0 {
		want = defaultPairs
	}
	cost := 2 * churnPrompts * (churnTokens + 128)
	for i := 0; len(limits) > 0 && i < want; i++ {
		l := limits[i%len(limits)]
		p := e.pairAt(l, limits[0], i/len(limits))
		cost += p.under + p.over + 2*e.MaxAnswer
		if i > 0 && e.Pairs == 0 && e.MaxPrompt > 0 && cost > e.MaxPrompt {
			// Fewer pairs than usual are better than a protocol cut short.
			if i < len(limits) {
				s.skipped = append(s.skipped, fmt.Sprintf("the budget does not reach the limit %s of %d tokens", l.Name, l.Tokens))
			}
			break
		}
		s.pairs = append(s.pairs, p)
	}
	return s
}

// limits are those known or found that differ and can be paid for, the
// smallest first: it is the one that a longer prompt trips over.
func (s *straddle) limits() []Limit {
	all := []Limit{{"pool", s.env.Pool}, {"accepted", s.env.Found.AcceptedMax}, {"context", s.env.Context}}
	all = slices.DeleteFunc(all, func(l Limit) bool { return l.Tokens <= 0 })
	slices.SortStableFunc(all, func(a, b Limit) int { return cmp.Compare(a.Tokens, b.Tokens) })
	var keep []Limit
	for _, l := range all {
		switch {
		case s.env.Context > 0 && l.Tokens > s.env.Context:
			continue // a pool larger than the window is none
		case len(keep) > 0 && l.Name == "accepted" && l.Tokens >= keep[len(keep)-1].Tokens:
			keep = append(keep, l) // more is served than what is known says: both may be limits
		case len(keep) > 0 && l.Tokens-keep[len(keep)-1].Tokens <= underMargin+s.env.MaxAnswer:
			// The same limit under two names; the known one is the exact one.
			if keep[len(keep)-1].Name == "accepted" {
				keep[len(keep)-1] = l
			}
		case s.env.MaxPrompt > 0 && l.Tokens+1 > s.env.MaxPrompt:
			s.skipped = append(s.skipped, fmt.Sprintf("the budget allows prompts of %d tokens, the limit %s is %d", s.env.MaxPrompt, l.Name, l.Tokens))
		case l.Tokens < smallest+underMargin:
			s.skipped = append(s.skipped, fmt.Sprintf("the limit %s of %d tokens is too small to straddle", l.Name, l.Tokens))
		default:
			keep = append(keep, l)
		}
	}
	return keep
}

// usualPage is taken where the page size is not known, tokens.
const usualPage = 64

// pairAt places a pair around a limit. Rounds move the prompt over it: just
// over, within the engine's own margin below, a page over, then further pages.
// The prompt under it stays under the smallest of all limits, too, or it would
// control nothing.
func (e Env) pairAt(l, smallestLimit Limit, round int) pair {
	page := e.PageSize
	if page == 0 {
		page = usualPage
	}
	over := l.Tokens + 1
	switch round {
	case 0:
	case 1:
		over = l.Tokens - sglangMargin
		if l.Name == "accepted" {
			over = l.Tokens + 2 // what is below was served
		}
	default:
		over = l.Tokens + (round-1)*page
	}
	if e.MaxPrompt > 0 {
		over = min(over, e.MaxPrompt)
	}
	under := smallestLimit.Tokens - underMargin
	if smallestLimit.Name == "accepted" {
		// Found with a shorter answer, which may count against the same limit.
		under -= e.MaxAnswer
	}
	if e.Context > 0 {
		under = min(under, e.Context-e.MaxAnswer-underMargin)
	}
	return pair{l, max(min(under, over-apart), smallest), over}
}

func (s *straddle) Next(done []wire.Exchange) []Send {
	for i := range done {
		s.observe(&done[i])
	}
	for s.at < len(s.pairs) {
		p := s.pairs[s.at]
		step := s.step
		s.step++
		switch step {
		case 0:
			// Only before the first pair: later ones find what earlier ones left.
			if s.at == 0 {
				return s.short(wire.Plant, 0)
			}
		case 1:
			return []Send{s.arm(wire.Under, p)}
		case 2:
			return s.short(wire.Churn, 1)
		case 3:
			return []Send{s.arm(wire.Over, p)}
		default:
			s.at, s.step, s.lowered, s.retried = s.at+1, 0, false, false
		}
	}
	if len(s.pairs) == 0 || s.flawed {
		return nil
	}
	s.flawed = true
	return flawedOnes(s.env)
}

// arm is one of the two long prompts. Both ask the same, so that a missing
// echo means the length and nothing else.
func (s *straddle) arm(purpose wire.Purpose, p pair) Send {
	tokens, tenant := p.under, 0
	if purpose == wire.Over {
		tokens, tenant = p.over, 1
	}
	if s.estimated {
		tokens = s.surely(purpose, tokens)
	}
	label := fmt.Sprintf("%s%+d", p.limit.Name, tokens-p.limit.Tokens)
	q := questionNo(s.at + int(s.env.Seed%9))
	if q.place == 2 { // what a target keeps that drops the rest
		q.place = s.at % 2
	}
	out := send(purpose, label, (s.at+tenant)%s.env.Tenants, tokens, s.env.MaxAnswer, q)
	out.Limit = p.limit.Tokens
	out.Stream = s.at%2 == 1 && !s.retried // a stream says less of how it ended
	if s.retried && s.silent {
		out.MaxTokens = fewWords
	}
	return out
}

// surely moves an estimated length away from the limit: one is off by a percent
// or so, and by several as long as only short prompts were seen.
func (s *straddle) surely(purpose wire.Purpose, tokens int) int {
	if purpose == wire.Under {
		return max(smallest, tokens-tokens/16)
	}
	tokens = surelyOver(tokens)
	if s.env.MaxPrompt > 0 {
		tokens = min(tokens, s.env.MaxPrompt)
	}
	return tokens
}

// surelyOver is an estimated length that is over so many tokens.
func surelyOver(tokens int) int { return tokens + 32 + tokens/100 }

// short are prompts of all tenants that move pages about: cheap, and full of
// canary and turns as the long ones are.
func (s *straddle) short(purpose wire.Purpose, from int) []Send {
	var batch []Send
	for i := range churnPrompts {
		tokens := capped(s.env, churnTokens+64*((s.at+i)%3))
		tenant := (s.at + from + i) % s.env.Tenants
		batch = append(batch, send(purpose, string(purpose), tenant, tokens, 24, questionNo(s.asked)))
		s.asked++
	}
	return batch
}

func (s *straddle) observe(e *wire.Exchange) {
	s.estimated = s.estimated || !e.SentExact
	_, counted := e.Used()
	s.reports = s.reports || counted && e.Answer.Served()
	if e.Purpose != wire.Under && e.Purpose != wire.Over {
		return
	}
	a := e.Answer
	s.silent = a.Served() && s.reports && !counted && !(e.Asked >= 0 && e.Echoes(e.Asked))
	switch {
	case s.silent && !s.retried:
		s.again()
		return
	case e.Purpose == wire.Under && a.Served():
		s.controls++
	case e.Purpose == wire.Under && a.Refusal.TooLong():
		s.lower(e)
		return
	case e.Purpose == wire.Over && (a.Served() || a.Refusal.TooLong() || s.dirty(a)):
		s.tests++
		if e.Limit == s.env.Context && e.SentExact && e.SentTokens > e.Limit && a.Served() && e.Echoes(e.Asked) {
			s.fail(fmt.Sprintf("%d tokens were served whole although the context window is said to be %d: say the right one", e.SentTokens, e.Limit))
		}
	case !s.retried:
		s.again()
		return
	default:
		s.fail(fmt.Sprintf("no answer that can be judged for %s (%s)", e.Label, outcome(e)))
	}
	s.retried = false
}

// again has the arm under way sent once more.
func (s *straddle) again() {
	s.retried = true
	s.step--
}

// dirty reports whether a server error is how the target refuses prompts over
// its limit, as boundary has seen.
func (s *straddle) dirty(a *wire.Answer) bool {
	return a.Refusal != nil && a.Refusal.Kind == wire.RefusedServer && s.pairs[s.at].limit.Name == "accepted"
}

// fail notes what went wrong, once.
func (s *straddle) fail(why string) {
	if !slices.Contains(s.failures, why) {
		s.failures = append(s.failures, why)
	}
}

// lower moves the pair to the limit that a refusal named, once: the one it was
// made for is not where the target refuses.
func (s *straddle) lower(e *wire.Exchange) {
	p := &s.pairs[s.at]
	named := e.Answer.Refusal.Limit
	if e.Answer.Refusal.Kind == wire.RefusedOutput {
		named -= e.MaxTokens
	}
	if s.lowered || named < smallest+underMargin || named >= p.limit.Tokens {
		s.fail(fmt.Sprintf("%d tokens, meant to be under the limit, were refused (%s): the target serves less than it says; run boundary first", e.SentTokens, outcome(e)))
		s.step = pairSteps
		return
	}
	l := Limit{"named", named}
	*p = s.env.pairAt(l, l, 0)
	s.lowered, s.step = true, 1
}

func (s *straddle) Missing() string {
	switch {
	case len(s.pairs) == 0 && len(s.skipped) > 0:
		return strings.Join(s.skipped, "; ")
	case len(s.pairs) == 0:
		return "no limit is known to straddle: say the context window or the pool, or run boundary first"
	case len(s.failures) > 0:
		return strings.Join(s.failures, "; ")
	case s.controls < len(s.pairs) || s.tests < len(s.pairs):
		return fmt.Sprintf("%d of %d pairs were made", min(s.controls, s.tests), len(s.pairs))
	}
	return strings.Join(s.skipped, "; ")
}
