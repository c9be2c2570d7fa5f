package probe

import (
	"fmt"
	"slices"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// Boundary finds the longest prompt that a target serves and how it refuses
// longer ones. Its first three prompts double as the calibration of tokens per
// byte.
func Boundary() Protocol {
	return Protocol{
		Name:  "boundary",
		Does:  "finds the longest prompt that is served, to the token where tokens can be counted, and how longer ones are refused",
		Start: func(e Env) Plan { return newBoundary(e) },
	}
}

const (
	// growth is the factor between prompts while nothing refuses.
	growth = 4
	// boundaryAnswer is long enough for a nonce and, if one leaks, a short canary, tokens.
	boundaryAnswer = 48
	// maxSizes ends a search that does not converge: no sound one needs half of it.
	maxSizes = 96
	// tries is how often a length is sent before an answer that says nothing
	// about length, or a lost echo, counts.
	tries = 2
	// fewWords is the length of an answer that is only asked for to be counted, tokens.
	fewWords = 8
)

// calibration lengths, tokens: the first prompts of a target whose tokens can
// be counted, and of one where they are estimated. The latter needs as many as
// make a law of tokens that others can be held to.
var (
	calibration          = []int{192, 640, 2048}
	estimatedCalibration = []int{192, 320, 448, 640, 1024, 1536, 2048}
)

// boundary keeps lo, the longest prompt that was served whole, and hi, the
// shortest that was not, and narrows the gap between them.
type boundary struct {
	env    Env
	search bracket
	sent   int
	wanted int // length of the prompt under way, tokens
	failed int // times in a row that it came to nothing
	lost   int // times in a row that its echo was missing
	silent int // times in a row that it was answered without a word on its length
	retry  bool

	small       []wire.Exchange // served prompts so far, for what usage and echo can be expected
	under       Send            // the prompt under way
	refinement                  // once it has begun
	depth       depth           // whether all of the longest prompt is read
	question    question        // of the prompt under way
	refusal     *wire.Refusal   // the latest for length
	gross       bool            // a prompt was answered that lost a tenth or more, or its echo
	proofTried  bool
	streamTried bool
	broken      string // why the search was given up
}

func newBoundary(e Env) *boundary {
	b := &boundary{env: e, search: bracket{exact: true, tried: map[int]bool{}}}
	// The window first, so that a smaller pool, when it is known, is tried before it.
	if e.Context > 0 {
		b.search.suggest(e.Context)
	}
	if e.Pool > 0 && (e.Context == 0 || e.Pool < e.Context) {
		b.search.suggest(e.Pool)
		b.search.suggest(e.Pool - sglangMargin)
	}
	return b
}

func (b *boundary) Next(done []wire.Exchange) []Send {
	for i := range done {
		b.observe(&done[i])
	}
	if b.broken != "" || b.sent >= maxSizes {
		return nil
	}
	n := b.choose()
	stream := false
	if n == 0 && b.refinable() {
		if !b.checked {
			return []Send{b.check()}
		}
		b.refine()
		n = b.choose()
	}
	if n == 0 && b.refining && b.search.hi == 0 {
		b.unrefine()
		n = b.choose()
	}
	if n == 0 {
		n = b.proof()
	}
	if n == 0 {
		if s, ok := b.deep(); ok {
			return []Send{s}
		}
	}
	if n == 0 {
		// One refusal is asked for as a stream: engines that refuse cleanly
		// otherwise have let a stream start.
		if b.refusal == nil || b.streamTried {
			return nil
		}
		b.streamTried, stream, n = true, true, b.search.hi
	}
	return []Send{b.send(n, stream)}
}

// proof is the length of one prompt well over a limit that nothing refuses and
// that cuts only a few tokens, 0 for none: what is lost there may be an error
// of counting, what is lost here is not.
func (b *boundary) proof() int {
	if b.refusal != nil || b.gross || b.proofTried || b.search.hi == 0 {
		return 0
	}
	b.proofTried = true
	n := min(b.search.hi+max(512, b.search.hi/4), b.ceiling())
	if n <= b.search.hi || b.search.tried[n] {
		return 0
	}
	return n
}

func (b *boundary) send(n int, stream bool) Send {
	if n != b.wanted {
		b.failed, b.lost, b.silent = 0, 0, 0
	}
	if n != b.wanted || b.lost == 0 { // what was lost is asked for once more
		b.question = b.ask(n)
	}
	b.wanted = n
	b.search.tried[n] = true
	s := send(wire.Size, fmt.Sprintf("size %d", n), b.sent%b.env.Tenants, n, boundaryAnswer, b.question)
	if b.refining {
		s = b.base.longer(n - b.base.used)
	}
	if stream {
		s.Label, s.Stream = fmt.Sprintf("size %d, streamed", n), true
	}
	if b.silent > 0 {
		// Some servers break off an answer that goes round in circles, and then
		// report nothing. A few words are too short for that, and for an echo.
		s.MaxTokens, s.Asked = fewWords, -1
	}
	if l := b.known(); l > 0 && n > l {
		s.Limit = l
	}
	b.under = s
	b.sent++
	return s
}

// ask is the question of the next prompt. A long one is asked for its start or
// its middle: its end is what a target keeps that drops the rest.
func (b *boundary) ask(n int) question {
	q := questionNo(b.sent)
	if n > calibration[len(calibration)-1] && q.place == 2 {
		q.place = b.sent / 3 % 2
	}
	return q
}

// known is the smallest limit known beforehand, tokens.
func (b *boundary) known() int {
	if b.env.Pool > 0 && (b.env.Context == 0 || b.env.Pool < b.env.Context) {
		return b.env.Pool
	}
	return b.env.Context
}

// observe takes an answer into the bracket.
func (b *boundary) observe(e *wire.Exchange) {
	if b.checking {
		b.learn(e)
		return
	}
	if b.depth.under {
		b.depth.observe(e)
		return
	}
	n := e.SentTokens
	if n == 0 {
		n = b.wanted
	}
	b.search.exact = b.search.exact && (e.SentExact || b.refining)
	b.retry = false
	if b.refining && !b.counts(e) {
		b.unrefine()
		return
	}
	switch b.judge(e) {
	case whole:
		b.accept(e, n)
	case short:
		used, ok := e.Used()
		if ok && used < n && !e.Collapsed() {
			b.search.suggest(used)
		}
		expect, known := wire.NewBaseline(b.small).Expect(e)
		if !known {
			expect = float64(n)
		}
		b.gross = b.gross || !ok || 10*float64(used) < 9*expect || float64(used) >= expect
		if known && !b.search.exact {
			n = int(expect)
		}
		b.reject(n)
	case refused:
		b.refuse(e, n)
	case nothing:
		b.failed++
		b.retry = true
		if b.failed >= tries {
			b.broken = whatFailed(e, n)
		}
	case again:
		b.retry = true
	}
}

// reading is what one answer says about the length of its prompt.
type reading int

const (
	whole   reading = iota // served, and nothing says that it was not read whole
	short                  // served, but not read whole
	refused                // refused for its length
	nothing                // no answer that says anything about length
	again                  // worth a second look
)

func (b *boundary) judge(e *wire.Exchange) reading {
	if r := e.Answer.Refusal; r != nil {
		switch {
		case r.TooLong() || r.Kind == wire.RefusedBodySize:
			return refused
		case r.Kind == wire.RefusedServer && b.failed+1 >= tries && b.search.lo > 0:
			// The same length failed twice where shorter ones were served.
			return refused
		}
		return nothing
	}
	if !e.Answer.Served() {
		return nothing
	}
	if b.unproven(e) {
		b.silent++
		if b.silent > tries {
			b.broken = fmt.Sprintf("answers to %d tokens come without usage: whether the prompt was read whole cannot be told", e.SentTokens)
		}
		return again
	}
	if wire.NewBaseline(b.small).Collapsed(e) || b.shortened(e) {
		return short
	}
	if b.echoes() && e.EchoLost() {
		b.missed(e)
		b.lost++
		if b.lost >= tries {
			return short
		}
		return again
	}
	return whole
}

// unproven reports whether nothing says how much of a prompt was read: the
// target has reported usage before and does not now. An echo is enough where
// the length is known.
func (b *boundary) unproven(e *wire.Exchange) bool {
	if _, ok := e.Used(); ok || b.search.exact && e.Asked >= 0 && e.Echoes(e.Asked) {
		return false
	}
	return slices.ContainsFunc(b.small, func(s wire.Exchange) bool { _, ok := s.Used(); return ok })
}

// shortened reports whether the target counted less of this prompt than the
// shorter ones lead to expect: by a single token where it has counted all of
// them to the token, else by a tenth.
func (b *boundary) shortened(e *wire.Exchange) bool {
	if used, ok := e.Used(); ok && b.refining {
		return used < b.base.used+e.Pad
	}
	line := wire.NewBaseline(b.small)
	if lost, ok := line.Lost(e); ok {
		return lost > 0
	}
	used, ok := e.Used()
	expect, known := line.Expect(e)
	return ok && known && len(b.small) >= 2 && 10*float64(used) < 9*min(expect, float64(e.SentTokens))
}

// echoes reports whether the target has shown, on at least two prompts and
// without fail, that it answers with the nonce it is asked for.
func (b *boundary) echoes() bool {
	asked := 0
	for i := range b.small {
		if b.small[i].EchoLost() {
			return false
		}
		if b.small[i].Asked >= 0 {
			asked++
		}
	}
	return asked >= 2
}

func (b *boundary) accept(e *wire.Exchange, n int) {
	b.small = append(b.small, *e)
	if used, ok := e.Used(); ok && !b.search.exact {
		if _, grows := wire.NewBaseline(b.small).Expect(e); grows {
			n = used // an estimate gives way to a count
			b.keep(e, b.under)
		}
	}
	switch hi := b.search.hi; {
	case hi == 0 || n < hi:
		b.search.accept(n)
	case b.search.exact || n >= hi+b.search.blur():
		b.broken = fmt.Sprintf("the limit is not steady: %d tokens were refused, %d served later", hi, n)
	default: // what was refused had a few more than estimated
		b.search.lo, b.search.hi = n, n+1
	}
}

func (b *boundary) refuse(e *wire.Exchange, n int) {
	r := e.Answer.Refusal
	b.refusal = r
	if !e.SentExact && !b.refining && r.Sent > 0 && !r.AtLeast {
		n = r.Sent
	}
	if limit := r.Limit; limit > 0 {
		if r.Kind == wire.RefusedOutput {
			limit -= e.MaxTokens
		}
		b.search.suggest(limit)
	}
	b.reject(n)
}

// reject takes a length that was not served. One that is estimated cannot be
// lower than what was served, whatever the estimate says.
func (b *boundary) reject(n int) {
	if !b.search.exact {
		n = max(n, b.search.lo+1)
	}
	b.search.reject(n)
}

// choose is the next length to send, tokens; 0 when the search is over.
func (b *boundary) choose() int {
	if b.retry {
		return b.wanted
	}
	if n := b.calibrate(); n > 0 {
		return n
	}
	if n := b.search.suggested(b.ceiling()); n > 0 {
		return n
	}
	switch {
	case b.search.hi == 0:
		return b.grow()
	case !b.refining && b.close() && b.refinable():
		return 0 // what is left is quicker to the token
	}
	return b.search.middle()
}

// calibrate is the length of the next of the first prompts, tokens; 0 when
// there have been enough, or the limit is known to be lower.
func (b *boundary) calibrate() int {
	lengths := calibration
	if !b.search.exact {
		lengths = estimatedCalibration
	}
	if i := len(b.small); !b.refining && i < len(lengths) && b.search.hi == 0 && lengths[i] <= b.ceiling() {
		return lengths[i]
	}
	return 0
}

// grow goes straight to a known window and in steps to an unknown one.
func (b *boundary) grow() int {
	top := b.ceiling()
	switch {
	case b.refining:
		return b.stretch()
	case b.search.lo >= top || top < smallest || b.search.tried[top]:
		return 0
	case b.env.Context > 0:
		return top
	}
	return min(max(growth*b.search.lo, calibration[0]), top)
}

// ceiling is the longest prompt worth sending, tokens: one over a known
// window, and never more than the budget allows.
func (b *boundary) ceiling() int {
	top := b.env.MaxPrompt
	if c := b.env.Context; c > 0 {
		over := c + 1
		if !b.search.exact {
			over = surelyOver(c)
		}
		if top == 0 || over < top {
			top = over
		}
	}
	if top == 0 {
		top = unknownCeiling
	}
	return top
}

// unknownCeiling bounds the search where neither window nor budget does,
// tokens: twice the largest window in common use.
const unknownCeiling = 1 << 21

// Found gives the longest prompt served whole and the shortest that was not:
// refused, or answered as if it had been shorter.
func (b *boundary) Found() Found {
	return Found{AcceptedMax: b.search.lo, RejectedMin: b.search.hi, Estimated: b.search.hi > 0 && !b.search.exact}
}

func (b *boundary) Missing() string {
	lo, hi := b.search.lo, b.search.hi
	switch {
	case b.broken != "":
		return b.broken
	case lo == 0 && hi == 0 && b.ceiling() < smallest:
		return fmt.Sprintf("the budget allows prompts of %d tokens: too few for any of this protocol", b.ceiling())
	case lo == 0 && hi == 0:
		return "no prompt was served or refused for its length"
	case lo == 0:
		return fmt.Sprintf("no prompt was served: even %d tokens were refused", hi)
	case b.env.Context > 0 && lo > b.env.Context:
		return fmt.Sprintf("%d tokens were served whole although the context window is said to be %d: say the right one", lo, b.env.Context)
	case hi == 0 && b.env.Context == 0:
		return fmt.Sprintf("nothing was refused up to %d tokens and the context window is not known: say it, or allow longer prompts", lo)
	case hi == 0 && lo < b.env.Context-b.env.Context/64:
		return fmt.Sprintf("the budget allows prompts of %d tokens, the context window is %d", b.ceiling(), b.env.Context)
	case hi > 0 && !b.search.narrow():
		return fmt.Sprintf("the limit lies between %d and %d tokens: not narrowed further", lo, hi)
	}
	return ""
}

// whatFailed says in one line why a length could not be tried.
func whatFailed(e *wire.Exchange, n int) string {
	return fmt.Sprintf("a prompt of %d tokens came to nothing twice (%s)", n, outcome(e))
}
