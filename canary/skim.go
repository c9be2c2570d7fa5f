package canary

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

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
	// hexTail is how far before its last digit an escape like \u0061 begins.
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
// and takes them. It returns where that
// first word ends. If there is something that must be read piece by piece it
// takes nothing, and returns false and up to where to read.
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

// glance finds the word at q, or the next, and its number in the list, if all
// is as plain as it mostly is; else it says unclear, and judge knows better.
// It takes the letters around q as a bit map, because branches that depend on
// where words begin and end are what costs most here.
func (p *pass) glance(b []byte, lo, q int) (s, e, word int) {
	if q-8 < lo || q+lookAhead+8 > len(b) {
		return 0, 0, unclear
	}
	near := b[q-8 : q+lookAhead]
	letters := letterBits(near) | letterBits(near[8:])<<8 | letterBits(near[16:])<<16
	first := 8 + bits.TrailingZeros32(letters>>8|1<<8)
	left := bits.LeadingZeros32(^(letters << (32 - first)))
	right := bits.TrailingZeros32(^(letters >> first))
	s, e = q-8+first-left, q-8+first+right
	n := left + right
	if first == 16 || first+right == 24 || s <= lo || kinds[b[e]]&isOdd != 0 && goesOn(b[e:]) {
		return 0, 0, unclear
	}
	if n >= longest {
		return s, e, notInList
	}
	switch k := kinds[b[s-1]]; {
	case left == first, k&isDigit != 0 && inEscape(b[lo:s]):
		return 0, 0, unclear
	case b[s-1] == '\\' && b[s] != 'u' && b[s] != 'x':
		if n > minLetters && isEscapeLetter(b[s]) && p.find(b, s+1, n-1) >= 0 {
			return s + 1, e, p.find(b, s+1, n-1)
		}
	case k&isTail != 0 && tailBefore(b[lo:s]):
		return 0, 0, unclear
	}
	key := pack(b[s:], n)
	if n > maxLetters || !p.lx.mayHold(key) {
		return s, e, notInList
	}
	return s, e, p.lx.find(key)
}

// find is the number of the word of n letters, at least one, at s of b, or
// notInList.
func (p *pass) find(b []byte, s, n int) int {
	key := pack(b[s:], n)
	if n > maxLetters || !p.lx.mayHold(key) {
		return notInList
	}
	return p.lx.find(key)
}

// pack packs the first n letters of b, eight at most, in lower case.
func pack(b []byte, n int) uint64 {
	unused := 64 - 8*min(n, maxLetters)
	return (binary.LittleEndian.Uint64(b) | 0x2020202020202020) << unused >> unused
}

// letterBits has a bit set for each of the first eight bytes of b that is an
// ASCII letter.
func letterBits(b []byte) uint32 {
	v := ^nonLetters(binary.LittleEndian.Uint64(b)) >> 7 & 0x0101010101010101
	return uint32(v * 0x0102040810204080 >> 56)
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

// wordAround is the run of letters that holds the one at q and does not begin
// before lo.
func wordAround(b []byte, lo, q int) (s, e int) {
	e = letterEnd(b, q)
	s = q
	for s > lo && kinds[b[s-1]]&isLetter != 0 {
		s--
	}
	return s, e
}

// letterEnd is where the run of letters at q ends. It may read the eight bytes
// from q on.
func letterEnd(b []byte, q int) int {
	e := q + bits.TrailingZeros64(nonLetters(binary.LittleEndian.Uint64(b[q:])))/8
	if e == q+8 {
		for e < len(b) && kinds[b[e]]&isLetter != 0 {
			e++
		}
	}
	return e
}

// nonLetters has the high bit of each byte set that is no ASCII letter.
func nonLetters(v uint64) uint64 {
	const ones = 0x0101010101010101
	low := v&(0x7f*ones) | 0x20*ones
	return ^((low + (0x80-'a')*ones) &^ (low + (0x7f-'z')*ones) &^ v) & (0x80 * ones)
}

// judge finds the word around the letter at q and its number in the list, if
// it can tell that this is all of the word. The word begins one letter later
// if the first belongs to an escape.
func (p *pass) judge(b []byte, lo, q int) (s, e, word int) {
	s, e = wordAround(b, lo, q)
	if e+lookAhead/2 >= len(b) || kinds[b[e]]&isOdd != 0 && goesOn(b[e:]) {
		return s, e, unclear
	}
	escaped := false
	if s > lo {
		if b[s-1] == '\\' {
			escaped = isEscapeLetter(b[s])
			if b[s] == 'u' || b[s] == 'x' {
				return s, e, unclear
			}
		} else if tailBefore(b[lo:s]) {
			return s, e, unclear
		}
	}
	if w := p.find(b, s, e-s); w >= 0 || !escaped || e-s <= minLetters {
		return s, e, w
	}
	return s + 1, e, p.find(b, s+1, e-s-1)
}

// tailBefore reports whether b may end in an escape or in characters that
// belong to the word after it.
func tailBefore(b []byte) bool {
	c := b[len(b)-1]
	switch k := kinds[c]; {
	case k&isTail != 0:
		return c < utf8.RuneSelf || spaceBefore(b) == 0
	case k&isDigit != 0:
		return inEscape(b)
	}
	return false
}

// goesOn reports whether the word before b may go on in it, in disguise.
func goesOn(b []byte) bool {
	if b[0] == '\\' {
		return b[1] == 'u' || b[1] == 'x'
	}
	r, _ := utf8.DecodeRune(b)
	p, _ := meaning(r)
	return b[0] == '&' || p != space
}

// inEscape reports whether the letters and digits at the end of b may belong to
// an escape like \u0061 or to a reference like &#x61;.
func inEscape(b []byte) bool {
	if n := len(b); n >= maxName && !holds(b[n-16:], '\\', '#') && !holds(b[n-8:], '\\', '#') {
		return false
	}
	i := len(b)
	for i > 0 && len(b)-i < maxName && isWordByte(b[i-1]) {
		i--
	}
	return i > 0 && (b[i-1] == '\\' || b[i-1] == '#')
}

// holds reports whether c or d is among the first eight bytes of b.
func holds(b []byte, c, d byte) bool {
	const ones = 0x0101010101010101
	v := binary.LittleEndian.Uint64(b)
	x, y := v^uint64(c)*ones, v^uint64(d)*ones
	return ((x-ones)&^x|(y-ones)&^y)&(0x80*ones) != 0
}
