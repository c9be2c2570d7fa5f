package overlap

import (
	"crypto/aes"
	"math/bits"
	"unicode/utf8"
)

// prime is 2^61 - 1. Two texts of gram letters have the same hash for at most
// gram of the secret bases.
const prime = 1<<61 - 1

// roller is what rolling hashes are computed with: polynomials over a prime, at
// a secret place.
type roller struct {
	base uint64
	gone [256]uint64 // what a letter still counts when it leaves
}

func newRoller(seed uint64) roller {
	r := roller{base: seed%(prime-256) + 256}
	top := uint64(1)
	for range gram {
		top = times(top, r.base)
	}
	for c := range r.gone {
		r.gone[c] = times(uint64(c), top)
	}
	return r
}

// times multiplies modulo prime.
func times(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return reduce(lo&prime + (lo>>61 | hi<<3))
}

// reduce brings what is less than twice the prime below it.
func reduce(x uint64) uint64 {
	if x >= prime {
		x -= prime
	}
	return x
}

// sieve chooses the fingerprints of one text that comes in pieces, as it is
// written within quotes in JSON.
type sieve struct {
	r     *roller
	n     int // letters so far
	hash  uint64
	last  [gram]byte
	grams [window]uint64
	least uint64 // of the window
	at    int    // letters up to the end of it

	solid  int  // ASCII letters since the last blank or the like
	escape int8 // 0 outside escapes, 1 behind the backslash, 2 to 5 within \uXXXX
	unit   rune
	high   rune // first half of a pair; 0 for none

	chosen []choice // since they were taken last
	block  [aes.BlockSize]byte
}

// choice is one of the runs that stand for a text.
type choice struct {
	hash uint64
	end  int // letters of the text up to its end
}

// restart begins another text.
func (s *sieve) restart() {
	s.n, s.hash, s.last, s.solid, s.escape, s.high = 0, 0, [gram]byte{}, 0, 0, 0
}

// letterOf is the letter that a byte counts as; 0 for none. It is a constant.
var letterOf = func() (t [256]byte) {
	for c := range t {
		switch b := byte(c); {
		case 'a' <= b && b <= 'z', '0' <= b && b <= '9', b >= utf8.RuneSelf:
			t[c] = b
		case 'A' <= b && b <= 'Z':
			t[c] = b | 0x20
		}
	}
	return t
}()

// write takes a piece, up to the first quotation mark that is not escaped, and
// returns how much of it that was. closed says that there was one.
func (s *sieve) write(p []byte) (n int, closed bool) {
	for i, c := range p {
		switch l := letterOf[c]; {
		case s.escape != 0:
			s.escaped(c)
		case l != 0:
			s.letter(l)
		case c == '\\':
			s.escape = 1
		case c == '"':
			return i + 1, true
		case !joins(c):
			s.solid = 0
		}
	}
	return len(p), false
}

// mostSolid is how many ASCII letters may follow each other without a blank.
// What stands behind them is no text but a picture or the like in base64, and
// would take the place of text in the index.
const mostSolid = 1024

// joins reports whether base64 goes on over a byte.
func joins(c byte) bool { return c == '+' || c == '/' || c == '-' || c == '_' || c == '=' }

// escaped takes a byte of an escape. All but those by number stand for no letter.
func (s *sieve) escaped(c byte) {
	if s.escape == 1 {
		s.escape, s.unit = 0, 0
		if c == 'u' {
			s.escape = 2
		} else if c != '/' {
			s.solid = 0
		}
		return
	}
	s.unit = s.unit<<4 | rune(digitOf(c))
	if s.escape++; s.escape < 6 {
		return
	}
	s.escape = 0
	high := s.high
	if s.high = 0; s.unit >= 0xD800 && s.unit < 0xDC00 {
		s.high = s.unit
		return
	}
	if s.unit >= 0xDC00 && s.unit < 0xE000 {
		if high == 0 {
			return
		}
		s.unit = 0x10000 + (high-0xD800)<<10 + (s.unit - 0xDC00)
	}
	var b [utf8.UTFMax]byte
	for _, c := range b[:utf8.EncodeRune(b[:], s.unit)] {
		if l := letterOf[c]; l != 0 {
			s.letter(l)
		} else if !joins(c) {
			s.solid = 0
		}
	}
}

func digitOf(c byte) byte {
	if c >= 'A' {
		return (c | 0x20 - 'a' + 10) & 15
	}
	return c & 15
}

// letter takes the next letter. Of each window the least hash is chosen; of
// several the one that was chosen before, else the last (robust winnowing).
func (s *sieve) letter(c byte) {
	if s.solid++; c >= utf8.RuneSelf {
		s.solid = 0
	}
	if s.solid > mostSolid {
		return
	}
	i := s.n % gram
	out := s.last[i]
	s.last[i] = c
	s.n++
	h := times(s.hash, s.r.base) + uint64(c)
	s.hash = reduce(reduce(h) + prime - s.r.gone[out])
	grams := s.n - gram + 1
	if grams < 1 {
		return
	}
	s.grams[s.n%window] = s.hash
	switch {
	case grams == 1 || s.hash < s.least || s.hash == s.least && grams <= window:
		s.least, s.at = s.hash, s.n
	case s.n-s.at >= window:
		s.again()
	case grams != window:
		return
	}
	if grams >= window {
		s.chosen = append(s.chosen, choice{s.least, s.at})
	}
}

// again looks for the least hash of the window anew.
func (s *sieve) again() {
	s.least, s.at = s.hash, s.n
	for end := s.n - 1; end > s.n-window; end-- {
		if h := s.grams[end%window]; h < s.least {
			s.least, s.at = h, end
		}
	}
}
