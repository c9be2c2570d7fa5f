package campaign

import (
	"context"
	"math"
	"strings"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

const (
	// wordCounts and padCounts bound how often the target's tokenizer is asked
	// about one prompt: every question carries the whole prompt.
	wordCounts = 4
	padCounts  = 4
	// maxPad is the widest gap that padding fills, tokens.
	maxPad = 512
)

// prompt is a send made ready for the wire.
type prompt struct {
	messages []wire.Message
	bytes    int64
	tokens   int  // as counted, else as estimated
	exact    bool // counted by the target's own tokenizer
	planted  bool // carries canary text
	nonces   [3]string
	token    string
	counts   []observation // what the tokenizer said on the way
	made     made
}

// made is what it takes to make a prompt again.
type made struct {
	words int
	pad   string
}

// observation teaches the estimator how many tokens a text makes.
type observation struct {
	bytes    int64
	messages int
	tokens   int
}

// fitter gives prompts the length that their protocol asked for.
type fitter struct {
	client Client
	coder  *canary.Coder
	model  string
	// est and longest, the bytes of the longest prompt that est was taught
	// about, do not change while fits are under way.
	est     *wire.Estimator
	longest int64
	// padCounted says whether a target has counted every character of padding as
	// a token. It changes as est does.
	padCounted bool
}

func newFitter(client Client, coder *canary.Coder, model string) *fitter {
	return &fitter{client: client, coder: coder, model: model, est: &wire.Estimator{}}
}

// fit resolves a send. The prompt has exactly s.Tokens tokens where the
// target's tokenizer can be asked, fewer where no filler makes it exact, and
// an estimate of that where there is no tokenizer. It is longer only if what
// the protocol wrote out is.
func (f *fitter) fit(ctx context.Context, key string, s probe.Send, id canary.ID, head prefix) prompt {
	t := newTemplate(f.coder, id, s, head)
	c := &counter{fitter: f, ctx: ctx, key: key, template: t}
	if s.Tokens == 0 || t.weight == 0 {
		return c.settle(c.try(t.weight, ""))
	}
	guess := f.wordsFor(t, s.Tokens)
	best, ok := c.words(s.Tokens, guess)
	if !ok {
		return c.settle(c.padEstimate(guess, s.Tokens))
	}
	if gap := s.Tokens - best.tokens; gap > 0 && gap <= maxPad {
		best = c.pad(best, s.Tokens)
	}
	return c.settle(best)
}

// again makes the prompt of an earlier exchange once more, longer by the
// padding that the send asks for. Its length is what the target counted then
// and a token for each character of padding.
func (f *fitter) again(ctx context.Context, key string, s probe.Send, base *wire.Exchange, m made) prompt {
	t := newTemplate(f.coder, canary.ID(base.ID), s, prefix{})
	c := &counter{fitter: f, ctx: ctx, key: key, template: t}
	used, _ := base.Used()
	v := c.estimate(m.words, m.pad+strings.Repeat(padUnits(used, base.SentBytes)[0], s.Pad))
	v.tokens, v.exact = used+s.Pad, f.padCounted
	return c.settle(v)
}

// padded learns from a prompt that was sent again whether padding counts as it
// is meant to.
func (f *fitter) padded(base, e *wire.Exchange, used int) {
	if was, ok := base.Used(); ok && e.Pad >= surePad {
		f.padCounted = f.padCounted || used == was+e.Pad
	}
}

// surePad is as much padding as no other rate than a token each makes by
// rounding, characters.
const surePad = 32

// learn teaches the estimator. Not to be called while fits are under way.
func (f *fitter) learn(o observation) {
	if o.tokens > 0 {
		f.est.Observe(o.bytes, o.messages, o.tokens)
		f.longest = max(f.longest, o.bytes)
	}
}

// An estimate that rests on prompts of about the same length is off by no more
// than estimateSlack of it and slackTokens.
const (
	estimateSlack = 0.02
	slackTokens   = 16
)

// worst is the most tokens that a prompt can have, for the budget. Before
// anything was seen a token may be as short as a byte; what only much shorter
// prompts have taught may be off by half.
func (f *fitter) worst(p prompt) int {
	grow := func(by float64) int { return int(math.Ceil(float64(p.tokens)*(1+by))) + slackTokens }
	switch {
	case p.exact:
		return p.tokens
	case f.est.Observations() > 1 && p.bytes <= 4*f.longest:
		return grow(estimateSlack)
	case f.est.Observations() > 0:
		return grow(0.5)
	}
	return int(p.bytes) + 64*len(p.messages)
}

// wordsFor is the most words of filler with which the prompt is estimated to
// have at most target tokens.
func (f *fitter) wordsFor(t *template, target int) int {
	fits := func(words int) bool {
		m := t.build(words, "")
		return f.est.Estimate(totalSize(m), len(m)) <= float64(target)
	}
	// Sizes grow almost linearly, so a bracket around the interpolated place
	// saves most of a bisection, whose every step walks the whole canary.
	const probeWords = 64
	empty, some := t.build(0, ""), t.build(probeWords, "")
	low := f.est.Estimate(totalSize(empty), len(empty))
	slope := (f.est.Estimate(totalSize(some), len(some)) - low) / probeWords
	if slope <= 0 || low >= float64(target) {
		return 0
	}
	guess := int(min((float64(target)-low)/slope, maxWords))
	lo, hi := 0, maxWords+1 // lo fits, hi does not
	for step := 16 + guess/1000; hi-lo > 1; step *= 4 {
		at := min(max(guess, lo+1), hi-1)
		if fits(at) {
			lo, guess = at, at+step
		} else {
			hi, guess = at, at-step
		}
		if lo > 0 && hi <= maxWords {
			guess = lo + (hi-lo)/2
		}
	}
	return lo
}

// counter measures variants of one prompt.
type counter struct {
	*fitter
	ctx      context.Context
	key      string
	template *template
	counts   []observation
}

// variant is the prompt with some words of filler and some padding.
type variant struct {
	words    int
	pad      string
	messages []wire.Message
	tokens   int
	exact    bool
}

// try counts a variant, or estimates it if it cannot be counted.
func (c *counter) try(words int, pad string) variant {
	v := c.estimate(words, pad)
	n, ok, err := c.client.CountTokens(c.ctx, c.key, c.model, v.messages)
	if err != nil || !ok || n <= 0 {
		// What is wrong with the target shows in the exchange itself.
		return v
	}
	v.tokens, v.exact = n, true
	c.counts = append(c.counts, observation{totalSize(v.messages), len(v.messages), n})
	return v
}

func (c *counter) estimate(words int, pad string) variant {
	m := c.template.build(words, pad)
	n := c.est.Estimate(totalSize(m), len(m))
	return variant{words: words, pad: pad, messages: m, tokens: int(math.Round(n))}
}

func (c *counter) settle(v variant) prompt {
	return prompt{
		messages: v.messages,
		bytes:    totalSize(v.messages),
		tokens:   v.tokens,
		exact:    v.exact,
		planted:  c.template.token != "" || c.template.weight > 0 && v.words > 0,
		nonces:   c.template.nonces,
		token:    c.template.token,
		counts:   c.counts,
		made:     made{v.words, v.pad},
	}
}

// words finds a filler that keeps the prompt within target and leaves a gap
// that padding can fill, by counting, correcting and counting again. ok is
// false if nothing was counted.
func (c *counter) words(target, guess int) (best variant, ok bool) {
	under, over := variant{words: -1}, variant{words: maxWords + 1}
	at := guess
	// A prompt that has only been too long so far is tried on with ever less.
	for i := 0; i < wordCounts || under.words < 0 && i < 2*wordCounts; i++ {
		v := c.try(at, "")
		if !v.exact {
			break
		}
		if v.tokens == target {
			return v, true
		}
		rate := c.slope(v, under, over)
		if v.tokens < target {
			under = v
		} else {
			over = v
		}
		next := at + correction(float64(target-v.tokens)/rate)
		if i >= wordCounts {
			next -= at / 8
		}
		next = max(under.words+1, 0, min(next, over.words-1))
		if next >= over.words || v.tokens < target && float64(target-v.tokens) < rate+2 {
			break // a word more would be too many
		}
		at = next
	}
	if under.words >= 0 {
		return under, true
	}
	return over, over.words <= maxWords
}

// correction is how many words to add, or to take away if negative, where
// want would be right on average. It stays short of that by what the lengths
// of so many words may vary: padding fills a gap, nothing shortens a word.
func correction(want float64) int {
	return int(math.Floor(want - math.Sqrt(math.Abs(want))/2))
}

// slope is how many tokens a word makes: between v and a variant counted
// before it, if there is one, else by the share that words have in v's bytes.
func (c *counter) slope(v variant, before ...variant) float64 {
	bare := totalSize(c.template.build(0, ""))
	all := totalSize(v.messages)
	r := float64(v.tokens) / float64(all) * float64(all-bare) / float64(max(1, v.words))
	for _, o := range before {
		if o.exact && o.words != v.words {
			if s := float64(v.tokens-o.tokens) / float64(v.words-o.words); s > 0 {
				r = s
			}
		}
	}
	return max(r, 0.1)
}

// pad fills the gap to target with single characters: full stops are a token
// each where a token is a byte, a lone letter behind a space is one for most
// learned vocabularies.
func (c *counter) pad(best variant, target int) variant {
	words, gap := best.words, target-best.tokens
	units := padUnits(best.tokens, totalSize(best.messages))
	for _, unit := range units {
		k := gap
		for i := 0; i < padCounts/len(units); i++ {
			v := c.try(words, strings.Repeat(unit, k))
			if !v.exact {
				return best
			}
			if v.tokens <= target && v.tokens > best.tokens {
				best = v
			}
			if v.tokens == target {
				return best
			}
			if k += target - v.tokens; k <= 0 || k > maxPad {
				break
			}
		}
	}
	return best
}

// padUnits are what to pad with, the better one first, in a prompt of so many
// tokens and bytes.
func padUnits(tokens int, bytes int64) []string {
	if float64(tokens) > 0.9*float64(bytes) {
		return []string{".", " a"}
	}
	return []string{" a", "."}
}

// padEstimate fills the gap that a whole word leaves where tokens seem to be
// bytes: there a full stop is a token for sure.
func (c *counter) padEstimate(words, target int) variant {
	v := c.estimate(words, "")
	perByte := (c.est.Estimate(2000, 1) - c.est.Estimate(1000, 1)) / 1000
	if gap := target - v.tokens; perByte > 0.9 && gap > 0 && gap <= maxPad {
		return c.estimate(words, strings.Repeat(".", gap))
	}
	return v
}
