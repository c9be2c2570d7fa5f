package wire

import (
	"math"
	"sync"
)

// Estimator learns how many tokens a prompt has from its bytes and messages,
// out of what a target has reported for earlier prompts. It serves where no
// endpoint counts. Its zero value is ready; it is safe for concurrent use.
//
// The model is tokens = perByte*bytes + perMessage*messages. Text whose words
// cost a varying number of tokens has an error that grows with the square root
// of its length, so observations are weighted by one over their bytes, and a
// weak prior keeps the fit sane until there are several.
type Estimator struct {
	mu       sync.Mutex
	good     sums
	biggest  int64 // bytes of the longest observation taken
	suspects []observation
}

type observation struct {
	bytes    int64
	messages int
	tokens   int
}

// sums are those of the normal equations of a weighted least squares fit.
type sums struct{ n, xx, xm, mm, xt, mt float64 }

// What is assumed before anything was seen: four bytes a token and six tokens
// a message, give or take the spreads. English text in the tokenizers of
// 2026 has 4 to 5 bytes a token; chat templates cost 3 to 10 tokens a turn.
const (
	priorPerByte    = 0.25
	priorPerMessage = 6.0
	byteSpread      = 0.1
	messageSpread   = 10.0
	// byteVariance is the variance of a text's tokens for every byte of it.
	byteVariance = 0.05
)

func (s *sums) add(o observation) {
	x, m, t := float64(o.bytes), float64(o.messages), float64(o.tokens)
	w := 1 / (byteVariance * math.Max(x, 1))
	s.n++
	s.xx += w * x * x
	s.xm += w * x * m
	s.mm += w * m * m
	s.xt += w * x * t
	s.mt += w * m * t
}

// No tokenizer makes more than one and a quarter tokens a byte, or has more
// than 16 bytes a token.
const (
	leastPerByte = 1.0 / 16
	mostPerByte  = 1.25
)

// fit solves the normal equations under the prior, within what is possible.
func (s *sums) fit() (perByte, perMessage float64) {
	const byteWeight, messageWeight = 1 / (byteSpread * byteSpread), 1 / (messageSpread * messageSpread)
	xx, mm := s.xx+byteWeight, s.mm+messageWeight
	xt, mt := s.xt+byteWeight*priorPerByte, s.mt+messageWeight*priorPerMessage
	perByte = (xt*mm - mt*s.xm) / (xx*mm - s.xm*s.xm)
	if bounded := min(max(perByte, leastPerByte), mostPerByte); bounded != perByte {
		return bounded, max(0, (mt-bounded*s.xm)/mm)
	}
	perMessage = (mt - perByte*s.xm) / mm
	if perMessage < 0 {
		return min(max(xt/xx, leastPerByte), mostPerByte), 0
	}
	return perByte, perMessage
}

func (s *sums) estimate(bytes int64, messages int) float64 {
	b, m := s.fit()
	return b*float64(bytes) + m*float64(messages)
}

// Estimate is how many tokens a prompt of so many bytes of text, in so many
// messages, will have.
func (e *Estimator) Estimate(bytes int64, messages int) float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.good.estimate(bytes, messages)
}

// Observations is how many reports the estimate rests on.
func (e *Estimator) Observations() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return int(e.good.n)
}

// Observe takes a report: a prompt of so many bytes and messages had so many
// tokens. A report that does not fit is put aside, for a target that has cut
// or replaced the prompt reports what was left of it; the estimate starts
// anew only when three such reports agree with one another.
func (e *Estimator) Observe(bytes int64, messages, tokens int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	o := observation{bytes, messages, tokens}
	if !o.possible() {
		return
	}
	if !e.fits(o) {
		e.suspect(o)
		return
	}
	e.suspects = nil
	e.take(o)
}

func (e *Estimator) take(o observation) {
	e.good.add(o)
	e.biggest = max(e.biggest, o.bytes)
}

// possible tells a report from one that no tokenizer makes, with room for a
// template of 256 tokens and as much for every message.
func (o observation) possible() bool {
	return o.bytes > 0 && o.messages >= 0 && o.tokens > 0 &&
		float64(o.tokens) >= leastPerByte*float64(o.bytes) &&
		float64(o.tokens) <= mostPerByte*float64(o.bytes)+256*float64(o.messages)+256
}

// fits compares a report with the estimate. A report far beyond what was seen
// may differ more, since the text may be of another kind.
func (e *Estimator) fits(o observation) bool {
	if e.good.n == 0 {
		return true
	}
	want := e.good.estimate(o.bytes, o.messages)
	slack := 32 + 16*float64(o.messages)
	low, high := 0.92, 1.08
	if o.bytes > 4*e.biggest {
		low, high = 0.6, 2.5
	}
	return float64(o.tokens) >= low*want-slack && float64(o.tokens) <= high*want+slack
}

// suspect puts a report aside, and starts anew when the last three agree. A
// target that cuts at a limit reports the same for all that is over it, so
// reports below the estimate must come from prompts of different lengths.
func (e *Estimator) suspect(o observation) {
	e.suspects = append(e.suspects, o)
	if len(e.suspects) < 3 {
		return
	}
	if len(e.suspects) > 3 {
		e.suspects = e.suspects[1:]
	}
	var fresh Estimator
	least, most := int64(math.MaxInt64), int64(0)
	for _, s := range e.suspects {
		if !fresh.fits(s) {
			return
		}
		fresh.take(s)
		least, most = min(least, s.bytes), max(most, s.bytes)
	}
	below := float64(o.tokens) < e.good.estimate(o.bytes, o.messages)
	if below && float64(most) < 1.2*float64(least) {
		return
	}
	e.good, e.biggest, e.suspects = fresh.good, fresh.biggest, nil
}
