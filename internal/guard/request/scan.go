package request

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// plain returns where the run of bytes that mean themselves ends: at a quote, a
// backslash, a control character or a byte beyond ASCII. Eight bytes are looked
// at together; which of several is the first is exact, since a false borrow can
// only follow a true one.
func plain(p []byte, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(p); i += 8 {
		x := binary.LittleEndian.Uint64(p[i:])
		quote, slash := x^('"'*ones), x^('\\'*ones)
		found := ((x-0x20*ones)&^x | (quote-ones)&^quote | (slash-ones)&^slash | x) & tops
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(p); i++ {
		if c := p[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x80 {
			break
		}
	}
	return i
}

// text takes a piece of the string that a value is.
func (m *machine) text(in []byte, i int) int {
	j, done := m.characters(in, i)
	if m.refused != nil || j == i {
		return 0
	}
	m.put(in[i:j])
	m.facts.Wide += m.beyond
	if m.taking {
		m.take(in[i:j], done)
	}
	if done {
		m.endScalar()
	}
	return j - i
}

// characters goes over the characters of a string, past its closing quote if it
// comes. It stops before a character of which only a part is there. What stands
// beyond ASCII on the way is counted in m.beyond, as it stands or as what an
// escape stands for.
func (m *machine) characters(in []byte, i int) (end int, closed bool) {
	m.beyond = 0
	for j := i; ; {
		j = plain(in, j)
		if j == len(in) {
			return j, false
		}
		n := 0
		switch c := in[j]; {
		case c == '"':
			return j + 1, true
		case c == '\\':
			n = m.escape(in, j)
		case c >= utf8.RuneSelf:
			n = m.wide(in, j)
		case c == 0:
			m.invalid(j, "a NUL stands in a string")
		default:
			m.invalid(j, "a control character stands in a string unescaped")
		}
		if n == 0 {
			return j, false
		}
		j += n
	}
}

// wide is the length of the characters beyond ASCII at in[j].
func (m *machine) wide(in []byte, j int) int {
	k := j
	for k < len(in) && in[k] >= utf8.RuneSelf {
		r, n := utf8.DecodeRune(in[k:])
		if r == utf8.RuneError && n == 1 {
			if utf8.FullRune(in[k:]) {
				m.invalid(k, "it is not UTF-8")
				return 0
			}
			break
		}
		k += n
	}
	m.beyond += int64(k - j)
	return k - j
}

// escape is the length of the escape at in[j]: of two where a pair of
// surrogates stands for one character.
func (m *machine) escape(in []byte, j int) int {
	p := in[j:]
	if len(p) < 2 {
		return 0
	}
	if p[1] != 'u' {
		if bytes.IndexByte([]byte(`"\/bfnrt`), p[1]) < 0 {
			m.invalid(j, "an escape is not one of JSON's")
			return 0
		}
		return 2
	}
	r, ok := hex4(p[2:])
	switch {
	case !ok && len(p) < 6:
		return 0
	case !ok:
		m.invalid(j, "an escape is not one of JSON's")
		return 0
	case !utf16.IsSurrogate(r):
		if r >= utf8.RuneSelf {
			m.beyond += int64(utf8.RuneLen(r))
		}
		return 6
	}
	rest := p[6:min(len(p), 12)]
	if bytes.HasPrefix(rest, []byte(`\u`)) || bytes.HasPrefix([]byte(`\u`), rest) {
		if len(rest) < 6 {
			return 0
		}
		if low, ok := hex4(rest[2:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			m.beyond += 4
			return 12
		}
	}
	m.invalid(j, "half a surrogate pair stands alone")
	return 0
}

// hex4 reads four hexadecimal digits.
func hex4(p []byte) (r rune, ok bool) {
	if len(p) < 4 {
		return 0, false
	}
	for _, c := range p[:4] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// unescape appends what a string says to dst. Its escapes have been checked.
func unescape(dst, raw []byte) []byte {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		c := raw[i+1]
		raw = raw[i+2:]
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r, _ := hex4(raw)
			raw = raw[4:]
			if utf16.IsSurrogate(r) {
				low, _ := hex4(raw[2:])
				r, raw = utf16.DecodeRune(r, low), raw[6:]
			}
			dst = utf8.AppendRune(dst, r)
			continue
		}
		dst = append(dst, c)
	}
}

// appendQuoted writes a string as JSON.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < 0x20:
			b = append(b, `\u00`...)
			b = append(b, "0123456789abcdef"[r>>4], "0123456789abcdef"[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// startValue takes a scalar, or the beginning of an object, a list or a string.
func (m *machine) startValue(in []byte, i int) int {
	c := in[i]
	switch {
	case c == '{' || c == '[':
		if !m.meet(c) {
			return 0
		}
		return m.begin(c, i)
	case c == '"':
		if !m.meet(c) {
			return 0
		}
		m.putByte(c)
		if m.state = inText; m.quoted() {
			m.facts.Depth = max(m.facts.Depth, len(m.stack))
		}
		return 1
	case c == '-' || '0' <= c && c <= '9':
		if n := m.tokenIDs(in, i); n > 0 {
			return n
		}
		return m.number(in, i)
	case c == 't':
		return m.literal(in, i, "true")
	case c == 'f':
		return m.literal(in, i, "false")
	case c == 'n':
		return m.literal(in, i, "null")
	}
	return m.noValue(in, i)
}

// noValue says what stands in place of a value.
func (m *machine) noValue(in []byte, i int) int {
	switch c := in[i]; {
	case c == 'N' || c == 'I' || c == '+' || c == '.':
		return m.invalid(i, "a number is not one of JSON's")
	case c == '/' || c == '#':
		return m.invalid(i, "it has a comment")
	case c == '\'':
		return m.invalid(i, "a string stands in single quotes")
	case c == ']' || c == '}' || c == ',':
		return m.invalid(i, "a value is missing")
	}
	return m.invalid(i, "it is not JSON")
}

// literal takes true, false or null.
func (m *machine) literal(in []byte, i int, word string) int {
	have := in[i:min(len(in), i+len(word))]
	if string(have) != word[:len(have)] {
		return m.invalid(i, "a value is not one of JSON's")
	}
	if len(have) < len(word) {
		return 0
	}
	return m.scalar(have)
}

// scalar takes a whole value that is neither a string nor holds others.
func (m *machine) scalar(p []byte) int {
	if !m.meet(p[0]) {
		return 0
	}
	m.put(p)
	if m.taking {
		m.take(p, false)
	}
	m.endScalar()
	if m.refused != nil {
		return 0
	}
	return len(p)
}

// number takes a number that every parser reads alike: with no more digits than
// parsers keep, and within the range of a double.
func (m *machine) number(in []byte, i int) int {
	end, whole, exponent, ok := numberEnd(in, i)
	switch {
	case end-i > maxNumber:
		return m.invalid(i, "a number has more than "+strconv.Itoa(maxNumber)+" digits")
	case end == len(in):
		return 0
	case !ok:
		return m.invalid(i, "a number is not one of JSON's")
	}
	p := in[i:end]
	switch {
	case exponent && !inRange(p):
		return m.invalid(i, "a number is beyond the range of a double")
	case whole && len(p) > 18 && !in64(p):
		return m.invalid(i, "a number is beyond 64 bits")
	}
	return m.scalar(p)
}

// tokenIDs takes, from a list of numbers that nobody looks at, those that are
// plainly whole and small, with the commas behind them: prompts come as such.
func (m *machine) tokenIDs(in []byte, i int) int {
	if !m.stack[len(m.stack)-1].list || !m.next.idle() {
		return 0
	}
	j := i
	for {
		k := j
		for k < len(in) && in[k]-'0' <= 9 {
			k++
		}
		if k == j || k-j > 9 || in[j] == '0' && k > j+1 || k == len(in) || in[k] != ',' {
			break
		}
		j = k + 1
	}
	if j > i {
		m.put(in[i:j])
		m.state = atValue
	}
	return j - i
}

// in64 reports whether an integer fits a signed or an unsigned word.
func in64(p []byte) bool {
	_, signed := strconv.ParseInt(string(p), 10, 64)
	_, unsigned := strconv.ParseUint(string(p), 10, 64)
	return signed == nil || unsigned == nil
}

func inRange(p []byte) bool {
	_, err := strconv.ParseFloat(string(p), 64)
	return err == nil
}

// numberEnd goes over a number: to its end, or to where it is not one. whole
// says that it has neither fraction nor exponent.
func numberEnd(in []byte, i int) (end int, whole, exponent, ok bool) {
	j := digitsEnd(in, i+sign(in[i], "-"))
	first := i + sign(in[i], "-")
	if j == first || in[first] == '0' && j > first+1 {
		return j, true, false, false
	}
	whole = true
	if j < len(in) && in[j] == '.' {
		from := j + 1
		if j, whole = digitsEnd(in, from), false; j == from {
			return j, false, false, false
		}
	}
	if j < len(in) && in[j]|0x20 == 'e' {
		from := j + 1
		if from < len(in) {
			from += sign(in[from], "+-")
		}
		if j = digitsEnd(in, from); j == from {
			return j, false, true, false
		}
		whole, exponent = false, true
	}
	return j, whole, exponent, j == len(in) || !strings.ContainsRune("+-._", rune(in[j])) && (in[j]|0x20 < 'a' || in[j]|0x20 > 'z')
}

func digitsEnd(in []byte, j int) int {
	for j < len(in) && in[j]-'0' <= 9 {
		j++
	}
	return j
}

// sign is the length of a sign.
func sign(c byte, signs string) int {
	if strings.IndexByte(signs, c) >= 0 {
		return 1
	}
	return 0
}
