package campaign

import (
	"io"
	"strings"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// maxWords is the longest filler a prompt can have, words of canary.
const maxWords = canary.MaxWords - 1

// template is a send with everything resolved but the length of its filler.
// Filler is the only elastic part; what the protocol wrote out stands.
type template struct {
	head   []wire.Message // turns of another exchange that stand before its own, word for word
	start  canary.Place   // where the filler begins
	turns  []probe.Turn
	images [][]byte // of the last turn
	weight int      // sum of the weights of all fillers; 0 if there are none
	nonces [3]string
	token  string
}

// newTemplate resolves a send whose canary is id; head stands before its turns.
func newTemplate(coder *canary.Coder, id canary.ID, s probe.Send, head prefix) *template {
	t := &template{start: coder.Place(id, 0), turns: s.Turns, head: head.messages}
	if s.Image != 0 {
		t.nonces[pictured] = coder.Nonce(id, pictured)
		file := picture(s.Image, t.nonces[pictured])
		if s.Broken {
			file = file[:len(file)-brokenOff]
		}
		t.images = [][]byte{file}
	}
	for _, turn := range s.Turns {
		for _, p := range turn.Parts {
			switch p.Kind {
			case probe.Filler:
				t.weight += max(1, p.N)
			case probe.Nonce:
				if p.N < 0 || p.N >= len(t.nonces) {
					panic("kvcanary: internal error: a prompt has no such nonce")
				}
				t.nonces[p.N] = coder.Nonce(id, p.N)
			case probe.Token:
				t.token = coder.Token(id)
			}
		}
	}
	for i, n := range head.nonces {
		if t.nonces[i] == "" {
			t.nonces[i] = n
		}
	}
	return t
}

// build makes the messages with words of filler in all, shared out by weight,
// and pad behind the last of them. Every filler continues the canary where
// the one before it stopped.
func (t *template) build(words int, pad string) []wire.Message {
	out := append(make([]wire.Message, 0, len(t.head)+len(t.turns)), t.head...)
	seen, from, place := 0, 0, t.start
	for _, turn := range t.turns {
		var x text
		for i, p := range turn.Parts {
			switch p.Kind {
			case probe.Literal:
				x.literal(p.Text)
			case probe.Nonce:
				x.literal(t.nonces[p.N])
			case probe.Token:
				x.literal(t.token)
			case probe.Filler:
				if i > 0 && turn.Parts[i-1].Kind == probe.Filler {
					x.literal(" ")
				}
				seen += max(1, p.N)
				to := int(int64(words) * int64(seen) / int64(t.weight))
				place = x.filler(place, to-from)
				from = to
				if seen == t.weight {
					x.literal(pad)
				}
			}
		}
		out = append(out, wire.Message{Role: turn.Role, Text: &x})
	}
	if len(out) > 0 && len(t.turns) > 0 {
		out[len(out)-1].Images = t.images
	}
	return out
}

// text is a prompt text made of literals and canary words that are produced
// while they are read.
type text struct {
	segments []segment
	size     int64
	json     int64 // of all of it within a JSON string
}

// segment is a literal, or n words of a canary if n is not 0.
type segment struct {
	literal string
	place   canary.Place
	n       int
}

func (x *text) literal(s string) {
	if s == "" {
		return
	}
	x.segments = append(x.segments, segment{literal: s})
	x.size += int64(len(s))
	x.json += wire.JSONSize(s)
}

// filler adds n words of a canary and returns the place behind them.
func (x *text) filler(from canary.Place, n int) canary.Place {
	if n == 0 {
		return from
	}
	next, size := from.Skip(n)
	x.segments = append(x.segments, segment{place: from, n: n})
	x.size += size
	x.json += size // words are letters
	return next
}

// Open implements wire.Text.
func (x *text) Open() io.Reader {
	readers := make([]io.Reader, len(x.segments))
	for i, s := range x.segments {
		if s.n > 0 {
			readers[i] = s.place.Words(s.n)
		} else {
			readers[i] = strings.NewReader(s.literal)
		}
	}
	return io.MultiReader(readers...)
}

// Size implements wire.Text.
func (x *text) Size() int64 { return x.size }

// JSONSize implements wire.Sized.
func (x *text) JSONSize() int64 { return x.json }

func totalSize(messages []wire.Message) int64 {
	var n int64
	for _, m := range messages {
		n += m.Text.Size()
	}
	return n
}
