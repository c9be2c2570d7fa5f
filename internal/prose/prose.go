// Package prose writes numbers and strangers' words for people.
package prose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
)

// Printable replaces what could drive a terminal, in text that may come from a
// target: control characters and bidirectional overrides. Line ends and tabs
// become spaces.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < 0x20 || unseen(r):
			return '\uFFFD'
		}
		return r
	}, s)
}

// unseen reports whether a character beyond ASCII's first 32 moves others, ends
// lines, or is not seen at all.
func unseen(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r == 0x61c || r == 0x180e || r >= 0x200b && r <= 0x200f || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e ||
		r >= 0x2060 && r <= 0x206f || r == 0xfeff || r >= 0xfff9 && r <= 0xfffb || r >= 0xe0000 && r <= 0xe007f
}

// JSON writes v as indented JSON that drives no terminal: encoding/json leaves
// control characters beyond ASCII as they are, and bidirectional overrides.
func JSON(w io.Writer, v any) error {
	p, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(EscapeJSON(p), '\n'))
	return err
}

// EscapeJSON escapes in a JSON document what drives a terminal. Such characters
// stand in strings only, so it stays the same document.
func EscapeJSON(p []byte) []byte {
	if !bytes.ContainsFunc(p, unseen) {
		return p
	}
	var out bytes.Buffer
	for _, r := range string(p) {
		switch {
		case !unseen(r):
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.Bytes()
}

// Thousands writes a number with commas between thousands.
func Thousands(n int) string {
	s := fmt.Sprint(n)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(s) - 3; i > first; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural is a count of things whose plural ends in s.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Thousands(n) + " " + noun + "s"
}
