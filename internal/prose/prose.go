// Package prose writes numbers and strangers' words for people.
package prose

import (
	"fmt"
	"strings"
)

// Printable replaces what could drive a terminal, in text that may come from a
// target: control characters and bidirectional overrides. Line ends and tabs
// become spaces.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < 0x20 || r >= 0x7f && r < 0xa0,
			r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r == 0xfeff, r == 0x2028, r == 0x2029:
			return '\uFFFD'
		}
		return r
	}, s)
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
