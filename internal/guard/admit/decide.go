// Package admit decides whether a prompt may reach an engine.
//
// An engine that is sent a prompt it cannot hold should refuse it, and some
// answer it from memory that was never written. The guard therefore lets a
// prompt pass only if it is known to fit: by its bytes, which bound its tokens,
// or by the engine's own count. [Decide] is the rule, a pure function of the
// [Limit], the [Size] and the [Policy]; [Limiter] finds out the limit and
// [Counter] the size.
package admit

import (
	"fmt"
	"net/http"
	"time"

	"github.com/kvcanary/kvcanary/internal/guard/shape"
	"github.com/kvcanary/kvcanary/internal/prose"
)

// Policy is what the operator has decided. [Default] has what holds where
// nothing is said.
type Policy struct {
	Off bool // everything passes
	// Open lets pass what cannot be judged, marked; otherwise it is refused.
	// What is known to be too long is refused either way.
	Open bool
	// CountOutput also holds a prompt and the answer that the client asks for
	// against the total. Engines that keep room for a whole answer beforehand
	// need it; most take pages as the answer grows.
	CountOutput bool
	// MaxAge is how old a measured limit may be; 0 for any age.
	MaxAge time.Duration
	// TokensPerByte bounds the tokens of a byte of text; 0 stands for 1, which
	// holds for every vocabulary that falls back to bytes.
	TokensPerByte float64
	// WideFactor bounds how many bytes a tokenizer's normalisation makes of one
	// that is not ASCII: 1 for none; 3 for NFC, which Qwen's do (U+1D1C0 becomes
	// three characters of its length); 11 for NFKC (U+FDFA becomes 33 bytes). 0
	// stands for 3. ASCII is left alone by all of them.
	WideFactor float64
	// TemplateTokens is what a chat template may say on its own, tokens.
	TemplateTokens int
	// OpaqueTokens bounds the tokens of one picture, sound or file; 0 for no bound.
	OpaqueTokens int
	// StructuredFactor bounds how many bytes a template makes of one of a tool
	// definition; 0 derives it from how deep the definition is nested.
	StructuredFactor float64
}

// Default is the policy that refuses what it cannot judge. The allowance for
// the template is twice the longest default system prompt that is known here,
// Mistral Small's, of some 500 tokens.
func Default() Policy {
	return Policy{MaxAge: 10 * time.Minute, TokensPerByte: 1, WideFactor: 3, TemplateTokens: 1024}
}

// Verdict is what is to be done with a prompt.
type Verdict string

// The verdicts.
const (
	Pass   Verdict = "pass"
	Count  Verdict = "count" // find out more of the size, then decide again
	Refuse Verdict = "refuse"
)

// Reason is why, a word of a closed list.
type Reason string

// The reasons.
const (
	ByBound    Reason = "bound"         // pass: the bytes prove that it fits
	ByCount    Reason = "counted"       // pass: the engine counted it
	NotAsked   Reason = "off"           // pass: admission is off
	TooLong    Reason = "too_long"      // refuse: over the limit
	TooMuch    Reason = "output"        // refuse: with its answer over the total
	NoLimit    Reason = "limit_unknown" // refuse, or pass where the policy is open
	OldLimit   Reason = "limit_old"     // as above
	NotCounted Reason = "not_counted"   // as above: the size stayed open
	Undecided  Reason = "undecided"     // count
)

// Reasons are all of them, for metrics.
func Reasons() []Reason {
	return []Reason{ByBound, ByCount, NotAsked, TooLong, TooMuch, NoLimit, OldLimit, NotCounted, Undecided}
}

// Decision is a verdict and why.
type Decision struct {
	Verdict Verdict
	Reason  Reason
	Error   shape.Error // of a refusal
}

// Marked reports whether a prompt passes that nobody could judge.
func (d Decision) Marked() bool {
	return d.Verdict == Pass && (d.Reason == NoLimit || d.Reason == OldLimit || d.Reason == NotCounted)
}

// Decide holds a prompt against a limit. It passes nothing that may be over the
// limit, but where an open policy says so, and refuses nothing that is known to
// fit.
func Decide(l Limit, now time.Time, p Policy, s Size) Decision {
	if p.Off {
		return Decision{Verdict: Pass, Reason: NotAsked}
	}
	if l.Tokens <= 0 {
		return p.unjudged(NoLimit, http.StatusServiceUnavailable, "limit_unknown",
			"how long a prompt this upstream can hold is not known, so none is sent: "+either(l.Source, "nothing was measured yet"))
	}
	if s.AtLeast > l.Tokens {
		return Decision{Refuse, TooLong, l.tooLong(s)}
	}
	if p.CountOutput && l.Total > 0 && add(s.AtLeast, max(1, s.Output)) > l.Total {
		return Decision{Refuse, TooMuch, l.tooMuch(s)}
	}
	if age := now.Sub(l.At); p.MaxAge > 0 && !l.At.IsZero() && max(age, -age) > p.MaxAge {
		// What is known to be over the old limit was refused above; what is not
		// passes as marked at best.
		return p.unjudged(OldLimit, http.StatusServiceUnavailable, "limit_unknown",
			fmt.Sprintf("the limit of this upstream was last measured %s ago and may be %s old at most: see whether the guard can still ask it", age.Round(time.Second), p.MaxAge))
	}
	fits := s.AtMost <= l.Tokens && (!p.CountOutput || l.Total <= 0 || add(s.AtMost, max(1, s.Output)) <= l.Total)
	switch {
	case fits && s.Tried:
		return Decision{Verdict: Pass, Reason: ByCount}
	case fits:
		return Decision{Verdict: Pass, Reason: ByBound}
	case !s.Tried:
		return Decision{Verdict: Count, Reason: Undecided}
	}
	status := http.StatusServiceUnavailable
	if s.Final { // to try again is of no use
		status = http.StatusBadRequest
	}
	return p.unjudged(NotCounted, status, "not_counted", l.open(s))
}

// unjudged is what the policy says of a prompt that cannot be judged.
func (p Policy) unjudged(r Reason, status int, code, message string) Decision {
	if p.Open {
		return Decision{Verdict: Pass, Reason: r}
	}
	return Decision{Refuse, r, shape.Error{Status: status, Code: code, Message: message}}
}

// tooLong is the refusal of a prompt over the limit.
func (l Limit) tooLong(s Size) shape.Error {
	e := shape.TooLong(s.AtLeast, l.Tokens)
	how := "at least"
	if s.AtLeast == s.AtMost {
		how = "exactly"
	}
	e.Message += fmt.Sprintf(" (%s %s, limit %s: %s)", how, prose.Thousands(s.AtLeast), prose.Thousands(l.Tokens), l.Source)
	return e
}

// tooMuch is the refusal of a prompt whose answer has no room.
func (l Limit) tooMuch(s Size) shape.Error {
	e := shape.TooLong(add(s.AtLeast, max(1, s.Output)), l.Total)
	e.Param = "max_tokens"
	e.Message += fmt.Sprintf(" (a prompt of at least %s and an answer of up to %s, together at most %s: %s)",
		prose.Thousands(s.AtLeast), prose.Thousands(max(1, s.Output)), prose.Thousands(l.Total), l.TotalSource)
	return e
}

// open says what is known of a prompt that may or may not fit.
func (l Limit) open(s Size) string {
	upTo := "of any length"
	if s.AtMost < Unbounded {
		upTo = "of at most " + prose.Thousands(s.AtMost) + " tokens"
	}
	return fmt.Sprintf("the prompt is %s, the limit %s (%s), and it could not be counted exactly: %s",
		upTo, prose.Thousands(l.Tokens), l.Source, either(s.Why, "send less"))
}

func either(s, or string) string {
	if s != "" {
		return s
	}
	return or
}
