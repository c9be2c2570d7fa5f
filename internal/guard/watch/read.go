package watch

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/kvcanary/kvcanary/canary"
)

// read takes the lines that have come.
func (w *Watch) read() {
	f := &w.frame
	for !w.halted() {
		line, ok := f.next()
		if !ok {
			if len(w.waiting) == 0 {
				w.limit = f.framed() // an LF after a CR has come
			}
			return
		}
		w.line(line)
	}
}

// Places of text that is no member of a document.
const (
	linesPlace    = 2
	commentsPlace = 4
	dataPlace     = 6
	tokensPlace   = 8
)

// halted reports whether nothing more is to be read.
func (w *Watch) halted() bool { return w.stopped && w.o.Strict }

// line takes a line. A unit is what is released as a whole: an event with the
// blank line that ends it, a document on a line of its own, or a comment
// between events.
func (w *Watch) line(at span) {
	f := &w.frame
	line := f.buf[at.from:at.to]
	if !f.fields {
		line = bytes.TrimLeft(line, " \t")
	}
	switch {
	case len(line) == 0:
		w.endUnit()
		return
	case !f.fields && line[0] == ':':
		w.comment(at)
		return
	case !f.fields && (line[0] == '{' || line[0] == '['):
		f.data = append(f.data, f.value(at.to, len(line)))
		w.endUnit()
		return
	}
	name, value, _ := bytes.Cut(line, []byte{':'})
	switch string(name) {
	case "data":
	case "error": // llama.cpp
		f.failed = true
	case "event":
		f.name, f.fields = f.value(at.to, len(value)), true
		return
	case "id", "retry":
		f.fields = true
		return
	default:
		if line[0] != '{' && line[0] != '[' { // a comment in an event, or nothing that a stream has
			w.text(w.strand(linesPlace, Raw), f.buf[at.from:f.line])
			if !f.fields {
				w.endUnit()
			}
			return
		}
		value = line
	}
	f.fields = true
	f.data = append(f.data, f.value(at.to, len(value)))
}

// comment takes a comment between events. It keeps a connection alive and must
// not wait: it overtakes what is held. A canary in comments, word by word, is
// found all the same, and held from its third word on, but not for long.
func (w *Watch) comment(at span) {
	f := &w.frame
	text := f.buf[at.from+1 : at.to]
	s := w.strand(commentsPlace, Raw)
	s.hasty = true
	if letters := lettersOf(text); letters != w.comments { // what keeps a connection alive says the same each time
		w.comments = letters
		w.extend(s, f.buf[at.from+1:f.line])
		if s.words <= 2 {
			s.settle()
		}
	}
	w.scanRaw(f.buf[f.unit:f.line])
	w.stopRaw()
	w.overtake(s.first == len(s.pieces))
	w.passed()
}

// maxAside is how much may overtake at once, bytes.
const maxAside = 4 << 10

// overtake lets the unit under way go before what is held, if it may.
func (w *Watch) overtake(may bool) {
	w.overtook = false
	if may && w.o.Strict && !w.stopped && len(w.waiting) > 0 && len(w.aside) < maxAside {
		w.aside = w.frame.overtake(w.aside)
		w.overtook = true
	}
}

// lettersOf names the letters of a text, whatever stands between them.
func lettersOf(text []byte) uint64 {
	h := uint64(1)
	for _, c := range text {
		if 'a' <= c|0x20 && c|0x20 <= 'z' || c >= utf8.RuneSelf {
			h = mix(h, uint64(c))
		}
	}
	return h
}

// leastRun is how many bytes as many words have at least as make a canary.
const leastRun = 3 * canary.MinWords

// endUnit takes the unit that ends before the line under way.
func (w *Watch) endUnit() {
	f := &w.frame
	unit := f.buf[f.unit:f.line]
	w.event++
	w.guess = 0
	if text, ok := w.form.text(unit); ok {
		if w.form.tells {
			w.says(w.form.strand.channel, text)
		}
		w.text(w.form.strand, text)
		if len(text) >= leastRun { // by itself too: its first word may stand right behind a letter
			w.scanRaw(text)
			w.stopRaw()
		}
	} else {
		w.other(unit)
	}
	f.data, f.name, f.fields, f.failed = f.data[:0], span{}, false, false
	w.passed()
}

// other takes a unit that is not like the last.
func (w *Watch) other(unit []byte) {
	f := &w.frame
	data := f.all()
	known := false
	ping := w.overtook && len(bytes.TrimSpace(unit)) == 0 // the line after a comment
	if len(data) > 0 {
		grown := w.grown
		w.walk.borrow()
		w.take(bytes.TrimSpace(f.at(f.name)), data)
		if w.grown == grown {
			if ping = string(w.walk.typ) == "ping"; !ping {
				w.round++
			}
		}
		if len(f.data) == 1 {
			known = w.learn(unit, f.data[0], data)
		}
		w.walk.giveBack()
	}
	if !known {
		w.scanRaw(unit)
		w.stopRaw()
	}
	w.overtake(ping)
}

// passed goes on to the next unit, and to what may be released by now.
func (w *Watch) passed() {
	f := &w.frame
	f.unit = f.line
	if w.halted() {
		return
	}
	limit := f.framed()
	n := 0
	for _, s := range w.waiting {
		if s.first < len(s.pieces) && s.rest(w.round, f.framed()-s.pieces[s.first].unit, int64(w.o.MaxHeld/16)) {
			s.settle()
		}
		if s.waiting = s.first < len(s.pieces); s.waiting {
			limit = min(limit, s.pieces[s.first].unit)
			w.waiting[n] = s
			n++
		}
	}
	w.waiting = w.waiting[:n]
	w.limit = max(w.limit, limit)
}

// rest takes what stands after the last line end as the last unit.
func (w *Watch) rest() {
	f := &w.frame
	if f.line < len(f.buf) {
		at := span{f.line, len(f.buf)}
		f.line, f.seen = len(f.buf), len(f.buf)
		w.line(at)
	}
	if f.unit < len(f.buf) && !w.halted() {
		w.endUnit()
	}
}

// whole takes a document.
func (w *Watch) whole() {
	f := &w.frame
	if looksStreamed(f.buf) {
		w.read()
		w.rest()
		return
	}
	w.event++
	if doc := bytes.TrimSpace(bytes.TrimPrefix(f.buf, []byte("\ufeff"))); len(doc) > 0 {
		w.walk.borrow()
		w.take(nil, doc)
		w.walk.giveBack()
	}
	w.settle()
	w.scanRaw(f.buf)
	w.stopRaw()
	if bytes.IndexByte(f.buf, 0) >= 0 { // some clients guess UTF-16 and UTF-32 by that
		w.scanRaw(bytes.ReplaceAll(f.buf, []byte{0}, nil))
		w.stopRaw()
	}
}

// looksStreamed reports a stream that came as a document.
func looksStreamed(b []byte) bool {
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	return bytes.HasPrefix(b, []byte("data:")) || bytes.HasPrefix(b, []byte("event:")) || bytes.HasPrefix(b, []byte(":"))
}

// take takes the data of an event of a name, or a document.
func (w *Watch) take(name, data []byte) {
	failed := string(name) == "error" || w.frame.failed
	switch {
	case string(data) == "[DONE]":
		w.end()
		return
	case data[0] == '{' || data[0] == '[' || data[0] == '"':
		k := &w.walk
		k.read(data)
		failed = failed || k.failed || string(k.typ) == "error" || string(k.typ) == "response.failed"
		w.document(failed)
	default:
		w.bare(data)
	}
	if failed {
		w.fail()
	}
}

// bare takes data that is no document. What stands in events of its own may be
// tokens, with the blanks between words or without: all has cut these off.
func (w *Watch) bare(data []byte) {
	w.text(w.strand(dataPlace, Raw), data)
	w.spaced = append(append(w.spaced[:0], data...), ' ')
	w.text(w.strand(tokensPlace, Raw), w.spaced)
}

// document takes what the walker has read. One that is an error says nothing
// more than that.
func (w *Watch) document(failed bool) {
	k := &w.walk
	tells := !failed && k.tells()
	for i := range k.leaves {
		l := &k.leaves[i]
		if l.isLabel() {
			continue // read raw
		}
		if l.channel = k.channel(l.channel); tells {
			w.says(l.channel, l.text)
		}
		place, exact, bare := k.places(l)
		if s := w.strand(place, l.channel); s != nil {
			w.text(s, l.text)
			if bare != 0 && !s.alone {
				w.loosely(s, bare, l.text)
			}
		}
		if exact != 0 {
			if s := w.strand(exact, l.channel); s != nil {
				s.once = s.length == 0
				w.text(s, l.text)
			}
		}
	}
	if k.over {
		k.over = false
		w.add(Finding{Kind: Unseen, Channel: Raw, Stops: true, Explain: fmt.Sprintf("the answer has a document of more than %d objects and lists, or texts", k.most)})
	}
	if k.counted {
		w.counts()
	}
	if k.ended && w.o.Dialect == "ollama" || isEnd(k.typ) {
		w.end()
	}
	k.spare()
}

// isEnd reports whether an event of that type is the last of an answer.
func isEnd(typ []byte) bool {
	switch string(typ) {
	case "message_stop", "response.completed", "response.incomplete", "response.failed":
		return true
	}
	return false
}

// blank reports whether a text, with its escapes, is white space.
func blank(text []byte) bool {
	for i, c := range text {
		if c > ' ' && c != '\\' && (i == 0 || text[i-1] != '\\' || c != 'n' && c != 't' && c != 'r') {
			return false
		}
	}
	return true
}

// scanRaw reads bytes of the answer as they are.
func (w *Watch) scanRaw(b []byte) {
	for _, c := range w.raw {
		c.Write(b)
	}
}

// stopRaw ends a unit in the raw bytes.
func (w *Watch) stopRaw() {
	for _, c := range w.raw {
		c.Reset()
	}
}
