package watch

import "bytes"

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
// line of data is a document with one text, which says nothing else.
func (w *Watch) learn(unit []byte, line span, data []byte) {
	k := &w.walk
	if len(unit) > maxForm || data[0] != '{' || k.odd || k.over || k.counted || w.ended || w.errored {
		return
	}
	var only *leaf
	for i := range k.leaves {
		switch l := &k.leaves[i]; {
		case l.isLabel():
		case only != nil || l.at < 0:
			return
		default:
			only = l
		}
	}
	if only == nil {
		return
	}
	place, exact := k.places(only)
	s := w.places[place]
	if s == nil || exact != 0 {
		return
	}
	lead := line.from + bytes.Index(w.frame.at(line), data[:1])
	w.form.before = append(w.form.before, unit[:lead+only.at]...)
	w.form.after = append(w.form.after, unit[lead+only.at+len(only.text):]...)
	w.form.strand, w.form.tells = s, k.tells()
}
