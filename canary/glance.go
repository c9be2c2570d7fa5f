package canary

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

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
