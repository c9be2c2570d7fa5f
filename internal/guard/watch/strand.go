package watch

import (
	"bytes"
	"unicode/utf8"

	"github.com/kvcanary/kvcanary/canary"
)

const (
	// maxStrands bounds the strands of a stream, each of which has a scanner: forty
	// choices with twenty alternatives for every token have fewer. maxTexts bounds
	// those of a document, most of which are too short to need one.
	maxStrands, maxTexts = 2048, 1 << 14
	// idleEvents is for how many events a strand says nothing before it may make
	// room for another, and maxLost for how many places there is no strand any more.
	idleEvents, maxLost = 64, maxEventParts
	// leastField is the length from which a value that stands at a place in
	// event after event is taken for a field that they all have, and read once,
	// bytes: no two words in a row of a canary are that long and the same.
	leastField = 16
	maxField   = 256
	// alone is up to where a strand is also read together with others, bytes: eight
	// words with what may stand between them.
	alone = 512
	// maxTurns is how many strands may come by turns, as the choices of an answer
	// do: OpenAI's API has 128 of these at most.
	maxTurns = 128
)

// strand is one text of an answer, put together from the pieces that stand at
// one place of event after event, and scanned as it grows.
type strand struct {
	channel  Channel
	scanners []*canary.Scanner // one a key; none yet while a document's text is too short for a canary
	idle     []*canary.Scanner // those that it is to get
	short    []byte            // what came before there were any
	also     func([]byte)      // reads it too; may be nil
	length   int64             // bytes so far
	field    []byte            // what all pieces so far are, if it may be a field
	varies   bool              // it is none
	alone    bool              // it is no longer read together with those at other indexes
	joined   bool              // it was read together with those
	begun    int               // strands that have begun in it, if it is of several indexes
	aside    bool              // its pieces make no rounds

	// What is waited for. Rounds count how often the strand that grows most has
	// grown, so that strands which come by turns wait for each other.
	pieces  []piece // those with bytes that may yet be canary; from first on
	first   int
	words   int   // words in a row that may be canary
	to      int64 // where they end as yet
	grew    int64 // round in which a piece came last
	event   int64 // event in which a piece came last
	moved   int64 // round in which to moved last
	bare    int   // pieces since then, which had no letter
	waiting bool  // it is in the list of those that wait
	seen    int64 // event in which it was asked for last
	once    bool  // it has one piece, of a place in a list
	hasty   bool  // it is waited for no longer than for one word
}

// piece is a piece of a strand.
type piece struct {
	unit int64 // where in the stream the unit begins that it came in, bytes
	end  int64 // where it ends in the strand, bytes
}

// repeats reports whether all pieces of the strand, text among them, are the
// same: it is a field that every event repeats.
func (s *strand) repeats(text []byte) bool {
	if s.varies {
		return false
	}
	if len(s.field) > 0 {
		s.varies = !bytes.Equal(s.field, text)
		return !s.varies
	}
	if s.varies = len(text) < leastField || len(text) > maxField; s.varies {
		return false
	}
	for _, c := range text {
		if c >= utf8.RuneSelf || c == '\\' || c == '&' { // words may be longer than they look, or shorter
			s.varies = true
			return false
		}
	}
	s.field = append(s.field, text...)
	return false
}

// patience is for how many rounds text is kept back that may be canary and does
// not go on, by how many words it has. Text of a model that happens to end in
// words of the list is let go soon; what looks more like canary waits longer.
// Pieces of the strand itself that have no letter, as between an English word
// and the next in a Chinese text, end the wait sooner: 1 << words of them.
var patience = [canary.MinWords + 1]int64{0, 8, 24, 64, 128, 256, 256, 256, 256}

// rest reports whether nothing is waited for in a strand, be it that nothing
// may be canary, or that it has been waited for long enough. Held is how many
// bytes are kept back for it, many from when on that is much.
func (s *strand) rest(round, held, many int64) bool {
	if s.first == len(s.pieces) {
		return true
	}
	idle, words := round-s.moved, min(s.words, canary.MinWords)
	if s.hasty {
		words = min(words, 1)
	}
	return idle > patience[words] || s.bare > 1<<words || idle > patience[1] && held > many
}

// settle lets go what is waited for.
func (s *strand) settle() { s.pieces, s.first = s.pieces[:0], 0 }

// grow takes the place of a piece that came in a unit, of which nothing before
// from may be canary.
func (s *strand) grow(unit int64, p canary.Pending, round int64) {
	if p.To > s.to || p.Words != s.words {
		s.to, s.words, s.moved = max(s.to, p.To), p.Words, round
		s.bare = 0
	} else {
		s.bare++
	}
	for s.first < len(s.pieces) && s.pieces[s.first].end <= p.From {
		s.first++
	}
	if s.first == len(s.pieces) {
		s.settle()
	}
	if p.From == s.length {
		return
	}
	if n := len(s.pieces); n > 0 && s.pieces[n-1].unit == unit {
		s.pieces[n-1].end = s.length
		return
	}
	if s.first > 0 && len(s.pieces) == cap(s.pieces) {
		s.pieces = s.pieces[:copy(s.pieces, s.pieces[s.first:])]
		s.first = 0
	}
	s.pieces = append(s.pieces, piece{unit, s.length})
}
