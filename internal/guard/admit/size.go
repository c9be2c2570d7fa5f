package admit

import (
	"math"

	"github.com/kvcanary/kvcanary/internal/guard/request"
)

// Unbounded is the AtMost of a size that nothing bounds.
const Unbounded = math.MaxInt

// Body is what was seen of a request while it was read.
type Body struct {
	Bytes  int64 // of the body
	Wide   int64 // those of them that are not ASCII
	Output int   // tokens that the client lets the answer have; 0 where it does not say
	Opaque int   // parts that are no text: pictures, sound, files
	// Structured is how many of the bytes a chat template writes out anew rather
	// than as they stand: tool definitions, tool calls, documents, schemas. Depth
	// is how deep objects and lists are nested in them.
	Structured int64
	Depth      int
	// Results are the answers of tools, and Called is the longest name of a tool
	// that was called, bytes: a template may write it with each of them.
	Results, Called int
	// References are parts that have a template write out the definition of a tool.
	References int
}

// BodyOf is what a reader of requests has seen. One that was not read to its
// end may be of any length.
func BodyOf(f request.Facts) Body {
	b := Body{Bytes: f.Bytes, Wide: f.Wide, Output: f.MaxTokens, Opaque: f.Opaque, Structured: f.Structured, Depth: f.Depth,
		Results: f.Results, Called: f.Called, References: f.References}
	if !f.Known {
		b.Bytes = math.MaxInt64
	}
	return b
}

// Size is what is known of the length of a prompt, in tokens.
type Size struct {
	AtLeast int // it is no shorter
	AtMost  int // it is no longer; Unbounded where nothing says so
	Output  int // tokens that the answer may have; 0 where the client does not say
	// Tried says that it was counted as well as it can be: what is open now
	// stays open.
	Tried bool
	// Why says for people what keeps it open; "" where only counting is left to do.
	Why string
	// Final says that the same prompt will stay open whenever it is sent again.
	Final bool
}

// Bound is the size of a prompt by its bytes alone.
//
// A vocabulary that falls back to bytes never has more tokens than bytes, and
// JSON never has fewer bytes than the text it carries: an escape is longer than
// what it stands for, and the names, quotes and braces of a message are longer
// than the few special tokens that a chat template puts in their place. Five
// things do not stand in the bytes, and are added: what a tokenizer's
// normalisation adds to letters beyond ASCII ([Policy].WideFactor), what a
// template says on its own ([Policy].TemplateTokens), parts other than text
// ([Policy].OpaqueTokens each), how a template spreads out what it writes anew
// ([Policy].StructuredFactor), and what it says again: the name of a tool with
// each answer of that, a tool's definition with each reference to it.
func Bound(b Body, p Policy) Size {
	text := float64(max(0, b.Bytes)) + float64(max(0, b.Wide))*(p.wide()-1) // bytes, once normalised
	s := Size{AtMost: whole(text * p.perByte()), Output: max(0, b.Output)}
	s.AtMost = add(add(s.AtMost, max(0, p.TemplateTokens)), add(p.structured(b), p.again(b)))
	switch opaque := p.opaque(b); {
	case opaque == Unbounded:
		s.AtMost, s.Why, s.Final = Unbounded, whyOpaque, true
	default:
		s.AtMost = add(s.AtMost, opaque)
	}
	return s
}

const whyOpaque = "it has parts other than text, or tools that the engine runs by itself, and nothing says how many tokens one of them has at most: set opaque_tokens"

// BytesFor is the longest body whose prompt, if it is plain text, is sure to be
// under a limit, in whatever script: so much may go upstream before its end is
// seen. 0 is none.
func BytesFor(l Limit, p Policy) int64 {
	left := l.Tokens - max(0, p.TemplateTokens)
	if left <= 0 {
		return 0
	}
	n := int64(min(float64(left)/p.perByte()/p.wide(), 1<<50)) // no body is longer
	for range 4 {                                              // for what rounding adds
		if n <= 0 || Bound(Body{Bytes: n, Wide: n}, p).AtMost <= l.Tokens {
			break
		}
		n--
	}
	if n <= 0 || Bound(Body{Bytes: n, Wide: n}, p).AtMost > l.Tokens {
		return 0
	}
	return n
}

// perByte is the bound on tokens a byte. A factor of 0 would say that every
// prompt is empty.
func (p Policy) perByte() float64 {
	if p.TokensPerByte > 0 {
		return p.TokensPerByte
	}
	return 1
}

// wide is how many bytes normalisation makes of one that is not ASCII, at most.
func (p Policy) wide() float64 {
	if p.WideFactor > 0 {
		return max(1, p.WideFactor)
	}
	return 3
}

// structured bounds the tokens that what is written anew has beyond its bytes.
// Written with an indent of four, every line has at least one byte of the
// original, a line end and four blanks a level; and a byte may be written as an
// escape of six.
func (p Policy) structured(b Body) int {
	factor := p.StructuredFactor
	if factor <= 0 {
		factor = 7 + 4*float64(max(0, b.Depth))
	}
	return whole(float64(max(0, b.Structured)) * max(0, factor-1) * p.perByte())
}

// again bounds the tokens of what stands once in a body and may be said again
// and again in the prompt. Templates of gpt-oss head each answer of a tool with
// the name that it was called by, those of GLM write out a tool for each
// reference to it.
func (p Policy) again(b Body) int {
	names := whole(float64(max(0, b.Results)) * float64(max(0, b.Called)) * p.perByte())
	if b.References <= 0 {
		return names
	}
	tools := float64(add(p.structured(b), whole(float64(max(0, b.Structured))*p.perByte())))
	return add(names, whole(float64(b.References)*tools))
}

// opaque bounds the tokens of parts other than text.
func (p Policy) opaque(b Body) int {
	switch {
	case b.Opaque <= 0:
		return 0
	case p.OpaqueTokens <= 0:
		return Unbounded
	}
	return whole(float64(b.Opaque) * float64(p.OpaqueTokens))
}

// whole rounds up; what is more than any count is Unbounded.
func whole(f float64) int {
	if f = math.Ceil(f); f >= 1<<62 {
		return Unbounded
	}
	return int(f)
}

// add stays at Unbounded once it is there. Neither is negative.
func add(a, b int) int {
	if a > Unbounded-b {
		return Unbounded
	}
	return a + b
}
