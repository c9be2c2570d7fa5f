package probe

import (
	"fmt"
	"time"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// leaving is when a client goes away: after a part of the time to a first token
// that a prompt of that length has taken, or when so much of the answer is there.
// What is on its way between parts of an engine comes late in that time.
type leaving struct {
	part float64
	text int // bytes
}

// moments are with the prompt hardly read, in the middle of prefill, in the
// transfer after it, and in the answer.
var moments = []leaving{{part: 0.6}, {text: 1}, {part: 0.5}, {part: 0.2}, {part: 0.8}, {text: 40}}

// unknownFirst stands for the time to a first token where a target does not tell it.
const unknownFirst = 100 * time.Millisecond

// hangup is the moment for a client that waits so long for a first token.
func (l leaving) hangup(first time.Duration) wire.Hangup {
	if l.text > 0 {
		return wire.Hangup{Text: l.text}
	}
	return wire.Hangup{Sent: true, After: time.Duration(l.part * float64(first))}
}

// String says in a word or two when a client goes away.
func (l leaving) String() string {
	if l.text > 0 {
		return "in its answer"
	}
	return fmt.Sprintf("%.0f %% before it", 100*l.part)
}

// wholeLine asks for all of the line that begins with a key. The key stands in
// it once, as its last words: a model that continues text must not find it here.
func wholeLine(key string) string {
	return "Repeat the whole of the line above to its end, nothing else. " + key
}

// lineKey begins a line that is asked for whole.
const lineKey = "line of the day:"

// longLine is a request whose answer is a long line of canary.
func longLine(label string, tenant, tokens, answer int) Send {
	turns := append(stem(tokens), Turn{"user", []Part{
		text(lineKey + " "), {Kind: Filler, N: 4}, text("\n" + wholeLine(lineKey)),
	}})
	return Send{
		Purpose: wire.Churn, Label: label, Tenant: tenant, Turns: turns, Tokens: tokens,
		Tail: "line", Asked: -1, MaxTokens: answer, Stream: true,
	}
}

// manyNonces is a prompt that states a nonce again and again, on all its pages,
// behind the key of a question that others ask at the same time: whichever page
// of it is read in place of one of theirs answers them, and with more voices
// than their own. Between these lines, and in the line that it asks for, is
// canary.
func manyNonces(label string, tenant, tokens, answer int, q question) Send {
	key := q.key(q.place)
	key = key[max(0, len(key)-shortKey):] // the less there is on a line, the more lines are on a page
	blocks := max(1, (tokens-answer-lineRest)/blockTokens)
	parts := []Part{text(lead), {Kind: Token}, text("\n")}
	for range blocks {
		for range blockLines {
			parts = append(parts, text(key+" "), Part{Kind: Nonce, N: 2}, text(", "))
		}
		parts = append(parts, Part{Kind: Filler, N: 1}, text(", "))
	}
	parts = append(parts, text("\n"+lineKey+" "), Part{Kind: Filler, N: answer / fillTokens}, text("\n"+wholeLine(lineKey)))
	return Send{
		Purpose: wire.Churn, Label: label, Tenant: tenant, Turns: []Turn{{"user", parts}}, Tokens: tokens,
		Tail: "line", Asked: -1, MaxTokens: answer, Stream: true,
	}
}

// ownLine is a short request for a whole line of canary that begins with its
// nonce: an answer that rests on all of its prompt but the end, and in which
// whatever is not of the line is somebody's.
func ownLine(label string, tenant, tokens, answer int, t tail) Send {
	q := question{tail: t}
	return Send{
		Purpose: wire.Unrelated, Label: label, Tenant: tenant, Tokens: tokens, Tail: q.name + wire.WholeLine, Asked: 0, MaxTokens: answer,
		Turns: []Turn{{"user", []Part{
			text(q.keyOf(0) + " "), {Kind: Nonce, N: 0}, text(" "), {Kind: Filler, N: 1},
			text("\n" + wholeLine(q.key(0))),
		}}},
	}
}

// markedLine is a request whose answer is a line of canary with nonces and the
// short canary all along it: a small piece of it says whose it is.
func markedLine(label string, tenant, tokens, answer int) Send {
	parts := []Part{text(lead), {Kind: Filler, N: 1 + max(0, tokens-answer-lineRest)/markGap}, text("\n" + lineKey)}
	for _, mark := range []Part{{Kind: Nonce, N: 0}, {Kind: Token}, {Kind: Nonce, N: 1}, {Kind: Nonce, N: 2}} {
		parts = append(parts, text(" "), mark, text(" "), Part{Kind: Filler, N: 1})
	}
	return Send{
		Purpose: wire.Churn, Label: label, Tenant: tenant, Tokens: tokens, Tail: "line", Asked: -1, MaxTokens: answer, Stream: true,
		Turns: []Turn{{"user", append(parts, text("\n"+wholeLine(lineKey)))}},
	}
}

// lineOnly is a short request whose answer is a line of canary.
func lineOnly(label string, tenant, tokens, answer int) Send {
	s := longLine(label, tenant, tokens, answer)
	s.Turns = s.Turns[len(s.Turns)-1:]
	return s
}

const (
	shortKey = 12 // bytes of a key that a model needs to know it by
	// blockLines lines of a nonce take about blockTokens with the canary behind
	// them, which is about fillTokens.
	blockLines  = 2
	blockTokens = 64
	fillTokens  = 12
	markGap     = 25  // between the marks of a line, tokens
	lineRest    = 128 // what the line that is asked for takes besides what is answered, tokens
)
