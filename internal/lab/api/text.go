package api

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// text is a piece of prompt in JSON, a string. It is decoded without a copy in between, so that a long prompt is held once.
type text string

// UnmarshalJSON implements [json.Unmarshaler]. null is no text.
func (t *text) UnmarshalJSON(p []byte) error {
	switch p[0] {
	case '"':
		*t = text(unquote(p))
		return nil
	case 'n':
		*t = ""
		return nil
	}
	return errContent
}

// phrase is a JSON string.
type phrase string

// UnmarshalJSON implements [json.Unmarshaler].
func (s *phrase) UnmarshalJSON(p []byte) error {
	if p[0] != '"' {
		return errors.New("a string is wanted where the body has something else")
	}
	*s = phrase(unquote(p))
	return nil
}

// unquote is the text of a valid JSON string. What is no valid UTF-8, and half
// a surrogate pair, becomes U+FFFD, as in encoding/json.
func unquote(quoted []byte) string {
	p := quoted[1 : len(quoted)-1]
	var dst strings.Builder
	dst.Grow(len(p))
	for len(p) > 0 {
		plain := bytes.IndexByte(p, '\\')
		if plain < 0 {
			writeValid(&dst, p)
			break
		}
		writeValid(&dst, p[:plain])
		p = p[plain+1:]
		if p[0] != 'u' {
			dst.WriteByte(unescape(p[0]))
			p = p[1:]
			continue
		}
		r := hex4(p[1:])
		p = p[5:]
		if utf16.IsSurrogate(r) {
			pair := rune(utf8.RuneError)
			if len(p) >= 6 && p[0] == '\\' && p[1] == 'u' {
				pair = utf16.DecodeRune(r, hex4(p[2:]))
			}
			if pair != utf8.RuneError {
				p = p[6:]
			}
			r = pair
		}
		dst.WriteRune(r)
	}
	return dst.String()
}

func writeValid(dst *strings.Builder, p []byte) {
	if utf8.Valid(p) {
		dst.Write(p)
		return
	}
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		dst.WriteRune(r)
		p = p[n:]
	}
}

func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c // a quote, a slash or a backslash
}

func hex4(p []byte) rune {
	n, err := strconv.ParseUint(string(p[:4]), 16, 16)
	if err != nil {
		panic("kvcanary: internal error: api: a string that encoding/json took as valid has a bad \\u escape")
	}
	return rune(n)
}
