package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// count is a number of tokens. Anything but a whole number from 0 to 10^12 is
// taken for absent.
type count struct {
	n  int
	ok bool
}

// UnmarshalJSON never fails: a usage that makes no sense is no usage.
func (c *count) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if err == nil && f >= 0 && f <= 1e12 && f == float64(int64(f)) {
		*c = count{int(f), true}
	}
	return nil
}

// textOf returns a JSON string's text, the JSON itself of anything else, and
// nothing of null.
func textOf(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var s string
	if raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// decode unmarshals doc as far as its types fit. It returns the document that
// was decoded: Python servers write NaN and Infinity, which become null. It
// reports false if doc is not JSON.
func decode(doc []byte, v any) ([]byte, bool) {
	err := json.Unmarshal(doc, v)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		clean := nullNaN(doc)
		if clean == nil {
			return doc, false
		}
		doc, err = clean, json.Unmarshal(clean, v)
	}
	return doc, !errors.As(err, &syntax)
}

// nullNaN replaces NaN, Infinity and -Infinity outside of strings by null; nil
// if there are none.
func nullNaN(doc []byte) []byte {
	var out []byte
	inString, from := false, 0
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == 'N' || c == 'I' || c == '-'):
			for _, w := range []string{"NaN", "Infinity", "-Infinity", "-NaN"} {
				if bytes.HasPrefix(doc[i:], []byte(w)) {
					out = append(append(out, doc[from:i]...), "null"...)
					i += len(w) - 1
					from = i + 1
					break
				}
			}
		}
	}
	if out == nil {
		return nil
	}
	return append(out, doc[from:]...)
}
