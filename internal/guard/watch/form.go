package watch

import (
	"bytes"
	"encoding/binary"
)

// maxForm is the longest event that is remembered, bytes.
const maxForm = 4 << 10

// form is an event with a hole where its only text stands. Most events of an
// answer are the same but for it. What fits the form is that event: it need
// not be read as JSON once more, nor what surrounds its text be scanned.
type form struct {
	before, after []byte
	strand        *strand // that the text belongs to; nil if there is no form
	tells         bool    // the text is part of the answer as it comes
}

// text is what stands in the hole, if the unit has the form.
func (f *form) text(unit []byte) ([]byte, bool) {
	end := len(unit) - len(f.after)
	if f.strand == nil || end < len(f.before) || !bytes.HasPrefix(unit, f.before) || !bytes.HasSuffix(unit, f.after) {
		return nil, false
	}
	text := unit[len(f.before):end]
	// A quotation mark that is not escaped would end the text before, a line end
	// the line.
	for _, c := range text {
		if c == '"' || c == '\n' || c == '\r' {
			return nil, false
		}
	}
	return text, !escaped(text)
}

// learn remembers the form of a unit that has just been read: one whose only
// line of data is a document with one text, which says nothing else. It reports
// whether the form is the one before but for digits, so that nothing but the
// text can be canary.
func (w *Watch) learn(unit []byte, line span, data []byte) (known bool) {
	k, old := &w.walk, w.form
	w.form = form{before: old.before[:0], after: old.after[:0]}
	if len(unit) > maxForm || data[0] != '{' || k.odd || k.over || k.counted || w.ended || w.errored {
		return false
	}
	var only *leaf
	for i := range k.leaves {
		switch l := &k.leaves[i]; {
		case l.isLabel():
		case only != nil || l.at < 0:
			return false
		default:
			only = l
		}
	}
	if only == nil {
		return false
	}
	place, exact, bare := k.places(only)
	s := w.places[place]
	if s == nil || exact != 0 || bare != 0 && !s.alone && (w.firsts[bare] != s || w.places[bare] != nil) {
		return false
	}
	from := line.from + bytes.Index(w.frame.at(line), data[:1]) + only.at
	before, after := unit[:from], unit[from+len(only.text):]
	known = old.strand == s && sameButDigits(old.before, before) && sameButDigits(old.after, after)
	w.form = form{append(old.before[:0], before...), append(old.after[:0], after...), s, k.tells()}
	return known
}

// sameButDigits reports whether two texts differ at most in digits.
func sameButDigits(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for len(a) > 0 {
		n := min(len(a), 8)
		if n < 8 || binary.LittleEndian.Uint64(a) != binary.LittleEndian.Uint64(b) {
			for i := range n {
				if a[i] != b[i] && (a[i] < '0' || a[i] > '9' || b[i] < '0' || b[i] > '9') {
					return false
				}
			}
		}
		a, b = a[n:], b[n:]
	}
	return true
}
