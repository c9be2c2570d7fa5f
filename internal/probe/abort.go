package probe

import (
	"time"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// moments at which a client goes away: with its prompt hardly read, in the
// middle of prefill or of the transfer after it, and in the middle of an answer.
var moments = []wire.Hangup{
	{Sent: true},
	{Text: 1},
	{Sent: true, After: 5 * time.Millisecond},
	{Sent: true, After: 10 * time.Millisecond},
	{Text: 40},
	{Sent: true, After: 20 * time.Millisecond},
	{Sent: true, After: 50 * time.Millisecond},
	{Sent: true, After: time.Second},
}

// moment says in a word or two when a client goes away.
func moment(h wire.Hangup) string {
	switch {
	case h.Text > 0:
		return "in its answer"
	case h.After > 0:
		return "after " + h.After.String()
	}
	return "once sent"
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
