package canary

import (
	"bytes"
	"unicode/utf8"
)

const (
	// tokenRoom is how many bytes the 16 characters of a token may fill, with
	// characters without width among them and in other dress.
	tokenRoom = 128
	// tokenBack is how many bytes before its dash belong to a token.
	tokenBack = 32
	// tokenName is the word before the dash, as far as it is there.
	tokenName = "canary"
)

// anchors looks for short tokens. The rarest thing about a token is its dash,
// so that is what is searched for, as a byte: "-", and the first bytes of the
// other dashes. Before it must stand a y, after it 16 letters and digits that
// open. So a token with its first letters cut off is found, and how many
// canaries there are makes no difference.
type anchors struct {
	coder *Coder
	emit  func(finding)
	at    [len(dashLeads)]int64 // up to where each kind of dash has been looked at

	source
}

// dashLeads are the bytes that dashes begin with: ASCII; U+2010 to U+2015 and
// U+2212; U+FE58, U+FE63 and U+FF0D.
var dashLeads = [...]byte{'-', 0xE2, 0xEF}

// block looks at the dashes of b, which begins at base, and returns up to where
// it is done with it: a dash that cannot be judged yet is to be given again,
// with what follows it.
func (a *anchors) block(b []byte, last bool) int {
	done := len(b)
	for k, lead := range dashLeads {
		i := a.dashes(b, int(a.at[k]-a.base), lead, last)
		a.at[k] = a.base + int64(i)
		done = min(done, i)
	}
	return done
}

// dashes looks at the dashes of b from i on that begin with lead.
func (a *anchors) dashes(b []byte, i int, lead byte, last bool) int {
	for i < len(b) {
		n := bytes.IndexByte(b[i:], lead)
		if n < 0 {
			return len(b)
		}
		i += n
		// The byte before rules nearly all of them out.
		if i > 0 && (b[i-1]|0x20 == 'y' || b[i-1] >= utf8.RuneSelf || b[i-1] == '\\') && !a.candidate(b, i, last) {
			return i
		}
		for i++; i < len(b) && b[i] == lead && b[i-1] == lead; i++ { // a rule of dashes
		}
	}
	return i
}

// candidate judges what stands around the dash at d; false if that needs more text.
func (a *anchors) candidate(b []byte, d int, last bool) bool {
	start, ok := tokenStart(b, d)
	if !ok {
		return true
	}
	n, ok := dashLen(b[d:])
	if !ok {
		return last || utf8.FullRune(b[d:])
	}
	var body [tokenChars]byte
	i, got := d+n, 0
	for got < tokenChars {
		if i-d > tokenRoom {
			return true
		}
		if i == len(b) {
			return last
		}
		p, c, n := lex(b[i:], last)
		switch p {
		case more:
			return false
		case letter, digit:
			body[got] = c
			got++
		case nothing:
		default:
			return true
		}
		i += n
	}
	if id, ok := a.coder.openToken(&body); ok {
		a.emit(finding{id: id, form: ShortToken, start: a.startOf(start), end: a.endOf(i - 1)})
	}
	return true
}

// dashLen is the length of the dash that b begins with.
func dashLen(b []byte) (int, bool) {
	if b[0] == '-' {
		return 1, true
	}
	r, n := utf8.DecodeRune(b)
	switch {
	case 0x2010 <= r && r <= 0x2015, r == 0x2212, r == 0xFE58, r == 0xFE63, r == 0xFF0D:
		return n, true
	}
	return 0, false
}

// tokenStart follows the letters of the prefix back from the dash at d. It
// needs the last of them only.
func tokenStart(b []byte, d int) (int, bool) {
	i := d
	if i > 0 && b[i-1] == '\\' { // Markdown escapes the dash
		i--
	}
	start, ok := 0, false
	for k := len(tokenName) - 1; k >= 0; k-- {
		n := endsWithLetter(b[max(0, d-tokenBack):i], tokenName[k])
		if n == 0 {
			break
		}
		i -= n
		start, ok = i, true
	}
	return start, ok
}

// endsWithLetter is the length of the letter c, in either case, plain or
// full-width, at the end of b; 0 if b ends otherwise.
func endsWithLetter(b []byte, c byte) int {
	if len(b) == 0 {
		return 0
	}
	if b[len(b)-1] < utf8.RuneSelf {
		if b[len(b)-1]|0x20 == c {
			return 1
		}
		return 0
	}
	r, n := utf8.DecodeLastRune(b)
	if p, l := meaning(r); p == letter && l == c {
		return n
	}
	return 0
}
