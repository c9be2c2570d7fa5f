package canary

import "unicode/utf8"

// The scanner reads text through a normaliser, so that a canary is found in
// whatever dress it comes: lex says what the next piece of text stands for.

// piece is what a bit of text stands for.
type piece uint8

const (
	more    piece = iota // cannot be told before more text is seen
	letter               // a letter, given as a-z
	digit                // a digit, given as 0-9
	space                // anything else: it separates words
	escape               // a backslash before one of b, f, n, r, t, v: separates, and that letter may be part of it
	nothing              // characters without width: as if they were not there
)

// lex reads one piece at the start of b, which is not empty. It returns what
// it stands for, the letter or digit, and its length. When last is false and b
// ends where the piece could go on, it returns more; it never needs more than 32
// bytes.
//
// It understands UTF-8, the backslash escapes of JSON and program text (\n,
// \u0061, \x61, pairs of surrogates, any number of backslashes, so that JSON
// in JSON reads the same) and HTML character references (numbers, the usual
// names, and &amp; before them).
func lex(b []byte, last bool) (p piece, c byte, n int) {
	switch c := b[0]; {
	case 'a' <= c && c <= 'z':
		return letter, c, 1
	case 'A' <= c && c <= 'Z':
		return letter, c | 0x20, 1
	case '0' <= c && c <= '9':
		return digit, c, 1
	case c == '\\':
		return lexBackslash(b, last)
	case c == '&':
		return lexReference(b, last)
	case c < utf8.RuneSelf:
		return space, 0, 1
	}
	if !last && !utf8.FullRune(b) {
		return more, 0, 0
	}
	r, n := utf8.DecodeRune(b)
	p, c = meaning(r)
	return p, c, n
}

// meaning says what a character stands for.
func meaning(r rune) (piece, byte) {
	switch {
	case r < utf8.RuneSelf:
		switch c := byte(r); {
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			return letter, c | 0x20
		case '0' <= c && c <= '9':
			return digit, c
		}
		return space, 0
	case isZeroWidth(r):
		return nothing, 0
	case 0xFF21 <= r && r <= 0xFF3A: // full-width A-Z
		return letter, byte('a' + r - 0xFF21)
	case 0xFF41 <= r && r <= 0xFF5A: // full-width a-z
		return letter, byte('a' + r - 0xFF41)
	case 0xFF10 <= r && r <= 0xFF19: // full-width 0-9
		return digit, byte('0' + r - 0xFF10)
	case 0x24B6 <= r && r <= 0x24E9: // circled letters
		return letter, byte('a' + (r-0x24B6)%26)
	case 0x1D400 <= r && r <= 0x1D6A3: // mathematical alphabets, 52 letters each
		return letter, byte('a' + (r-0x1D400)%26)
	case 0x1D7CE <= r && r <= 0x1D7FF: // mathematical digits
		return digit, byte('0' + (r-0x1D7CE)%10)
	}
	return space, 0
}

// isZeroWidth reports characters that take no room of their own: joiners,
// marks of direction, soft hyphens, variation selectors, accents that combine.
func isZeroWidth(r rune) bool {
	switch {
	case r == 0x00AD, r == 0x034F, r == 0x061C, r == 0x180E, r == 0xFEFF,
		0x0300 <= r && r <= 0x036F,
		0x200B <= r && r <= 0x200F,
		0x202A <= r && r <= 0x202E,
		0x2060 <= r && r <= 0x206F,
		0xFE00 <= r && r <= 0xFE0F,
		0xE0000 <= r && r <= 0xE01EF:
		return true
	}
	return false
}

// lexBackslash reads a backslash and what it escapes.
func lexBackslash(b []byte, last bool) (piece, byte, int) {
	if len(b) < 2 {
		return moreOrSpace(last)
	}
	switch b[1] {
	case 'b', 'f', 'n', 'r', 't', 'v':
		return escape, 0, 1
	case 'x':
		return lexHex(b, 2, last)
	case 'u':
		return lexHex(b, 4, last)
	}
	return space, 0, 1
}

// lexHex reads \x61 or \u0061. What does not complete is a lone backslash.
func lexHex(b []byte, digits int, last bool) (piece, byte, int) {
	n := 2 + digits
	r, got := hexRune(b[2:min(n, len(b))])
	switch {
	case got < digits && 2+got == len(b):
		return moreOrSpace(last)
	case got < digits:
		return space, 0, 1
	}
	const high, low, sizes = 0xD800, 0xDC00, 0x400
	if r < high || r >= low {
		p, c := meaning(r)
		return p, c, n
	}
	// A high surrogate: the low one follows, or it stands for nothing known.
	rest := b[n:]
	if len(rest) < 2 && !last && string(rest) == `\u`[:len(rest)] {
		return more, 0, 0
	}
	if len(rest) < 2 || rest[0] != '\\' || rest[1] != 'u' {
		return space, 0, n
	}
	s, got := hexRune(rest[2:min(6, len(rest))])
	switch {
	case got < 4 && 2+got == len(rest) && !last:
		return more, 0, 0
	case got < 4 || s < low || s >= low+sizes:
		return space, 0, n
	}
	p, c := meaning(0x10000 + (r-high)<<10 + (s - low))
	return p, c, n + 6
}

// hexRune reads hexadecimal digits until the first byte that is none.
func hexRune(b []byte) (r rune, n int) {
	for n < len(b) {
		d := hexDigit(b[n])
		if d < 0 {
			break
		}
		r = r<<4 | rune(d)
		n++
	}
	return r, n
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

func moreOrSpace(last bool) (piece, byte, int) {
	if last {
		return space, 0, 1
	}
	return more, 0, 0
}

const (
	maxAmps = 3  // how often &amp; may stand for the & of a reference
	maxName = 16 // longest name of a reference, or number with its #
)

// lexReference reads an HTML character reference. An & that begins none is a
// separator like any other.
func lexReference(b []byte, last bool) (piece, byte, int) {
	i := 1
	for range maxAmps {
		if len(b) < i+4 && !last && string(b[i:]) == "amp;"[:len(b)-i] {
			return more, 0, 0
		}
		if len(b) < i+4 || string(b[i:i+4]) != "amp;" {
			break
		}
		i += 4
	}
	j := i
	for j < len(b) && j-i < maxName && (isWordByte(b[j]) || b[j] == '#' && j == i) {
		j++
	}
	switch {
	case j == len(b) && j-i < maxName && !last:
		return more, 0, 0
	case j < len(b) && b[j] == ';':
		if p, c := reference(b[i:j]); p != more {
			return p, c, j + 1
		}
	}
	return space, 0, i
}

// reference says what the reference &name; stands for; more if it is none.
func reference(name []byte) (piece, byte) {
	if len(name) > 1 && name[0] == '#' {
		return numeric(name[1:])
	}
	switch string(name) {
	case "shy", "zwj", "zwnj", "lrm", "rlm", "ZeroWidthSpace", "NoBreak":
		return nothing, 0
	case "nbsp", "lt", "gt", "quot", "apos", "ensp", "emsp", "thinsp", "hairsp", "ndash", "mdash",
		"hellip", "bull", "middot", "lsquo", "rsquo", "ldquo", "rdquo", "laquo", "raquo",
		"Tab", "NewLine", "comma", "period", "colon", "lpar", "rpar", "num", "ast", "lowbar", "grave":
		return space, 0
	}
	return more, 0
}

func numeric(digits []byte) (piece, byte) {
	r, base := rune(0), rune(10)
	if digits[0]|0x20 == 'x' {
		digits, base = digits[1:], 16
	}
	if len(digits) == 0 {
		return more, 0
	}
	for _, c := range digits {
		d := rune(hexDigit(c))
		if d < 0 || d >= base || r > utf8.MaxRune {
			return more, 0
		}
		r = r*base + d
	}
	return meaning(r)
}

// isWordByte reports ASCII letters and digits.
func isWordByte(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}
