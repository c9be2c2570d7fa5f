package canary

import "unicode/utf8"

// Skimming is how most text is passed over unread. Eight list words in a row
// fill at least 39 bytes, and whatever an escape or an insertion does makes
// them longer. So the word under the earliest byte at which a run from here
// could end decides: if it is not in the list, no run has it, and the next can
// begin only after it. If it is, the words before it are looked at the same
// way, right to left, down to where the run must have begun. Text is read piece
// by piece only where something stands that could be part of an escape.

// Kinds of byte, for skimming.
const (
	isLetter = 1 << iota // an ASCII letter
	isDigit              // may end \u0061, so that what follows is not the whole word
	isOdd                // may begin an escape, or is not ASCII
	isTail               // may end an escape or a character reference
)

// kinds is a table of constants.
var kinds = func() (t [256]uint8) {
	for c := range t {
		switch b := byte(c); {
		case b >= 0x80, b == '\\', b == '&':
			t[c] = isOdd | isTail
		case b == ';', b == '#':
			t[c] = isTail
		case '0' <= b && b <= '9':
			t[c] = isDigit
		case isWordByte(b):
			t[c] = isLetter
		}
	}
	return t
}()

const (
	// lookAhead is how many bytes behind the one in question skimming may read.
	lookAhead = 16
	// hexTail is the length of an escape like \u0061.
	hexTail = 6
	// longest is how many letters in a row are no list word, even if the first
	// belong to an escape like \uabcd.
	longest = maxLetters + hexTail
)

// What skimming finds out about a word, other than its number.
const (
	notInList = -1
	unclear   = -2 // to be read piece by piece
)

// skim reads b from i, which is a place between words, to its end or to a
// piece that is not complete.
func (p *pass) skim(b []byte, i int, last bool) int {
	for {
		need := MinWords - p.run.count
		q := i + need*(minLetters+1) - 2
		if q+lookAhead >= len(b) {
			i, _ = p.careful(b, i, len(b), last)
			return i
		}
		ok := need > 0 && q >= lookAhead
		if ok {
			s, e, w := p.glance(b, i, q)
			if w == notInList {
				p.run.stop()
				i = e
				continue
			}
			q, ok = p.stretch(b, i, q, s, e, w)
		}
		if ok {
			i = q
		} else if i, ok = p.careful(b, i, max(q, i+lookAhead)+1, last); !ok {
			return i
		}
	}
}

// seen is a list word that was found, right to left, and not yet taken.
type seen struct{ word, start, end int }

// stretch judges the words from the first at q or after it, which at a glance
// is the word w at [s, e), down to i or to the first that is not in the list,
// and takes them. It returns where the first ends. If there is something that
// must be read piece by piece it takes nothing, and returns false and up to
// where to read.
func (p *pass) stretch(b []byte, i, q, s, e, w int) (int, bool) {
	if w == unclear {
		var ok bool
		if q, ok = forward(b, i, q); !ok {
			return q, false
		}
		s, e, w = p.judge(b, i, q)
	}
	end, n := e, 0
	for w >= 0 {
		p.found[n] = seen{w, s, e}
		n++
		if s > i && kinds[b[s-1]]&isLetter != 0 {
			s-- // the letter of an escape
		}
		at, ok := s-2, true
		if at < i || b[s-1] != ' ' || kinds[b[at]]&isLetter == 0 {
			at, ok = backward(b, i, s)
		}
		if !ok {
			return q, false
		}
		if at < i {
			break
		}
		if s, e, w = p.glance(b, i, at); w == unclear {
			s, e, w = p.judge(b, i, at)
		}
	}
	switch w {
	case unclear:
		return q, false
	case notInList:
		p.run.stop()
	}
	for n--; n >= 0; n-- {
		p.run.push(uint64(p.found[n].word), p.startOf(p.found[n].start), p.endOf(p.found[n].end-1))
	}
	return end, true
}

// forward is the first letter of b at q or after it; false where something odd
// or the end comes first. Nothing before lo is looked at.
func forward(b []byte, lo, q int) (int, bool) {
	for q+lookAhead < len(b) {
		switch k := kinds[b[q]]; {
		case k&isLetter != 0:
			return q, true
		case b[q] == '&':
			return q, false
		case b[q] < utf8.RuneSelf:
			q++
		default:
			s := q
			for s > lo && q-s < utf8.UTFMax-1 && !utf8.RuneStart(b[s]) {
				s--
			}
			r, n := utf8.DecodeRune(b[s:])
			if p, _ := meaning(r); s+n > q && p != space {
				return q, false
			}
			q = max(s+n, q+1) // a byte that no character covers is a space
		}
	}
	return q, false
}

// backward is the last letter of b before s; less than lo if there is none
// from lo on, and false where something odd comes first.
func backward(b []byte, lo, s int) (int, bool) {
	for s--; s >= lo; s-- {
		switch k := kinds[b[s]]; {
		case k&isLetter != 0:
			return s, true
		case b[s] == '&':
			return s, false
		case b[s] < utf8.RuneSelf:
		default:
			n := spaceBefore(b[lo : s+1])
			if n == 0 {
				return s, false
			}
			s -= n - 1
		}
	}
	return s, true
}

// spaceBefore is the length of the character that b ends with, if it is one
// that only separates, as bytes that are no characters do; else 0.
func spaceBefore(b []byte) int {
	r, n := utf8.DecodeLastRune(b)
	if p, _ := meaning(r); p != space {
		return 0
	}
	return n
}
