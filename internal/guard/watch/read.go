package watch

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/kvcanary/kvcanary/canary"
)

// stopper ends whatever could go on from one unit to the next in the raw bytes:
// no word of a canary is one letter long.
var stopper = []byte("\n a \n")

// read takes the lines that have come.
func (w *Watch) read() {
	f := &w.frame
	for !w.halted() {
		line, ok := f.next()
		if !ok {
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
)

// halted reports whether nothing more is to be read.
func (w *Watch) halted() bool { return w.stopped && w.o.Strict }

// line takes a line. A unit is what is released as a whole: an event with the
// blank line that ends it, a document on a line of its own, or a comment
// between events.
func (w *Watch) line(at span) {
	f := &w.frame
	line := f.buf[at.from:at.to]
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
	f.fields = true
	name, value, _ := bytes.Cut(line, []byte{':'})
	switch string(name) {
	case "data":
	case "error": // llama.cpp
		w.fail()
	case "event":
		f.name = f.value(at.to, len(value))
		return
	case "id", "retry":
		return
	default:
		if line[0] != '{' && line[0] != '[' { // a comment in an event, or nothing that a stream has
			w.text(Raw, linesPlace, f.buf[at.from:f.line])
			return
		}
		value = line
	}
	f.data = append(f.data, f.value(at.to, len(value)))
}

// comment takes a comment between events. It keeps a connection alive and must
// not wait: it overtakes what is held. A canary in comments, word by word, is
// found all the same, and held from its third word on.
func (w *Watch) comment(at span) {
	f := &w.frame
	text := f.buf[at.from+1 : at.to]
	s := w.strand(commentsPlace, Raw)
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

// overtake lets the unit under way go before what is held, if it may.
func (w *Watch) overtake(may bool) {
	if may && w.o.Strict && !w.stopped && w.limit < w.frame.framed() {
		w.aside = w.frame.overtake(w.aside)
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

// endUnit takes the unit that ends before the line under way.
func (w *Watch) endUnit() {
	f := &w.frame
	var data []byte
	switch len(f.data) {
	case 0:
	case 1:
		data = f.at(f.data[0])
	default:
		for i, d := range f.data {
			if i > 0 {
				data = append(data, '\n')
			}
			data = append(data, f.at(d)...)
		}
	}
	w.event++
	w.guess = 0
	ping := false
	if data = bytes.TrimSpace(data); len(data) > 0 {
		grown := w.grown
		w.take(bytes.TrimSpace(f.at(f.name)), data)
		if w.grown == grown {
			ping = string(w.walk.typ) == "ping"
			if !ping {
				w.round++
			}
		}
	}
	w.scanRaw(f.buf[f.unit:f.line])
	w.stopRaw()
	w.overtake(ping)
	f.data, f.name, f.fields = f.data[:0], span{}, false
	w.passed()
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
	w.event++
	if doc := bytes.TrimSpace(bytes.TrimPrefix(f.buf, []byte("\ufeff"))); len(doc) > 0 {
		w.take(nil, doc)
	}
	w.settle()
	w.scanRaw(f.buf)
	w.stopRaw()
}

// take takes the data of an event of a name, or a document.
func (w *Watch) take(name, data []byte) {
	failed := string(name) == "error"
	switch {
	case string(data) == "[DONE]":
		w.end()
		return
	case data[0] == '{' || data[0] == '[' || data[0] == '"':
		k := &w.walk
		k.read(data)
		failed = failed || k.failed || string(k.typ) == "error" || string(k.typ) == "response.failed"
		w.document()
	default:
		w.text(Raw, dataPlace, data)
	}
	if failed {
		w.fail()
	}
}

// document takes what the walker has read.
func (w *Watch) document() {
	k := &w.walk
	for i := range k.leaves {
		l := &k.leaves[i]
		if (l.class == label || l.class == kind) && len(l.text) <= 64 {
			continue // read raw
		}
		if l.channel.says() && !blank(l.text) {
			w.says(l.channel)
		}
		place, exact := k.places(l)
		w.text(l.channel, place, l.text)
		if exact != 0 {
			w.text(l.channel, exact, l.text)
		}
	}
	if k.over {
		k.over = false
		w.add(Finding{Kind: Unseen, Channel: Raw, Stops: true, Explain: fmt.Sprintf("the answer has a document of more than %d objects and lists", maxFrames)})
	}
	if k.counted {
		w.counts()
	}
	if k.ended && w.o.Dialect == "ollama" || isEnd(k.typ) {
		w.end()
	}
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

// text takes a piece of the strand of a place.
func (w *Watch) text(c Channel, place uint64, text []byte) {
	s := w.strand(place, c)
	if s.repeats(text) {
		s.settle()
		return
	}
	w.extend(s, text)
}

// strand is the strand of a place.
func (w *Watch) strand(place uint64, c Channel) *strand {
	if w.guess < len(w.keys) && w.keys[w.guess] == place {
		w.guess++
		return w.order[w.guess-1]
	}
	for i, k := range w.keys {
		if i == 16 {
			break
		}
		if k == place {
			w.guess = i + 1
			return w.order[i]
		}
	}
	if s := w.places[place]; s != nil {
		return s
	}
	if len(w.order) == maxStrands {
		return w.order[maxStrands-1]
	}
	s := &strand{channel: c}
	s.scanners = w.scanners(func() Channel { return s.channel })
	if w.places == nil {
		w.places = map[uint64]*strand{}
	}
	w.places[place] = s
	w.order, w.keys = append(w.order, s), append(w.keys, place)
	w.guess = len(w.order)
	return s
}

// extend puts a piece at the end of a strand.
func (w *Watch) extend(s *strand, text []byte) {
	w.grown++
	s.length += int64(len(text))
	if !w.o.Strict {
		for _, c := range s.scanners {
			c.Write(text)
		}
		return
	}
	if s.event != w.event {
		s.event = w.event
		if s.grew == w.round {
			w.round++
		}
		s.grew = w.round
	}
	wait := canary.Pending{From: s.length, To: s.length}
	for _, c := range s.scanners {
		c.Write(text)
		p := c.Pending()
		if p.Words >= canary.MinWords-1 {
			if h, ok := c.UnderWay(); ok {
				w.hit(h, s.channel)
			}
		}
		wait = canary.Pending{From: min(wait.From, p.From), To: p.To, Words: max(wait.Words, p.Words)}
	}
	s.grow(w.frame.framed(), wait, w.round)
	if !s.waiting && s.first < len(s.pieces) {
		s.waiting = true
		w.waiting = append(w.waiting, s)
	}
}

// scanRaw reads bytes of the answer as they are.
func (w *Watch) scanRaw(b []byte) {
	for _, c := range w.raw {
		c.Write(b)
	}
}

// stopRaw ends a unit in the raw bytes.
func (w *Watch) stopRaw() { w.scanRaw(stopper) }

// settle ends all strands: the answer says that no more of them will come.
func (w *Watch) settle() {
	for _, s := range w.order {
		for _, c := range s.scanners {
			c.Close()
		}
		s.settle()
	}
	clear(w.places)
	w.order, w.keys, w.guess = w.order[:0], w.keys[:0], 0
}
