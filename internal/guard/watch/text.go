package watch

import (
	"bytes"

	"github.com/kvcanary/kvcanary/canary"
)

// text takes a piece of a strand.
func (w *Watch) text(s *strand, text []byte) {
	if s.repeats(text) {
		s.settle()
		return
	}
	if s.also != nil {
		s.also(text)
	}
	if bytes.IndexByte(text, '\\') >= 0 {
		w.plain = unescape(w.plain[:0], text)
		text = w.plain
	}
	w.extend(s, text)
}

// unescape appends what stands in a JSON string to b, but for characters by
// number: scanners read these, and one may be half of a pair whose other half
// comes with the next piece.
func unescape(b, text []byte) []byte {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '\\' && i+1 < len(text) && text[i+1] != 'u' {
			i++
			switch c = text[i]; c {
			case 'b', 'f', 'n', 'r', 't':
				c = ' '
			}
		}
		b = append(b, c)
	}
	return b
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
	s := w.strandOf(c)
	if w.o.Stream {
		w.equip(s)
	}
	if w.o.Text != nil {
		s.also = w.o.Text(c)
	}
	if w.places == nil {
		w.places = map[uint64]*strand{}
	}
	w.places[place] = s
	w.order, w.keys = append(w.order, s), append(w.keys, place)
	w.guess = len(w.order)
	return s
}

// enough takes a piece of a strand that has no scanners yet, and returns what
// they are to read once there is enough for a canary. Most texts of a document
// are a word or two, and nothing of it is released before all of it is read.
func (w *Watch) enough(s *strand, text []byte) []byte {
	if len(s.short)+len(text) < LeastHit {
		s.short = append(s.short, text...)
		return nil
	}
	w.equip(s)
	if len(s.short) > 0 {
		text = append(s.short, text...)
		s.short = text[:0] // for the next answer
	}
	return text
}

// loosely reads a text once more, joined with those that stand at other indexes
// of the same place: an index that grows from event to event, as some engines
// number tokens, would else cut a text into strands of one piece. Once a strand
// is so long that it would have shown a canary itself, it stands alone.
func (w *Watch) loosely(s *strand, bare uint64, text []byte) {
	first := w.firsts[bare]
	if first == nil {
		if w.firsts == nil {
			w.firsts = map[uint64]*strand{}
		}
		w.firsts[bare] = s
		return
	}
	if first == s && w.places[bare] == nil {
		return // as yet it is the only one
	}
	all := w.strand(bare, s.channel)
	if !s.joined {
		s.joined = true
		all.begun++
	}
	// Choices that come by turns are no rounds. So many are none: it is an index
	// that grows.
	all.aside = all.begun <= maxTurns
	if s.length > alone {
		s.alone = true
		all.settle()
		return
	}
	w.text(all, text)
}

// extend puts a piece at the end of a strand.
func (w *Watch) extend(s *strand, text []byte) {
	w.grown++
	if s.scanners == nil {
		if text = w.enough(s, text); text == nil {
			return
		}
	}
	s.length += int64(len(text))
	if !w.o.Strict {
		for _, c := range s.scanners {
			c.Write(text)
		}
		return
	}
	if s.event != w.event && !s.aside {
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
			w.likely, w.likelyAt = s.channel, w.event
		}
		// Also where nothing is waited for: letters that are in no canary may stand
		// behind the last of its words.
		if h, ok := c.UnderWay(); ok {
			w.hit(h, s.channel)
		}
		wait = canary.Pending{From: min(wait.From, p.From), To: p.To, Words: max(wait.Words, p.Words)}
	}
	s.grow(w.frame.framed(), wait, w.round)
	if !s.waiting && s.first < len(s.pieces) {
		s.waiting = true
		w.waiting = append(w.waiting, s)
	}
}

// settle ends all strands: the answer says that no more of them will come.
func (w *Watch) settle() {
	for _, s := range w.order {
		for _, c := range s.scanners {
			c.Close()
		}
		s.settle()
	}
	clear(w.places)
	clear(w.firsts)
	w.order, w.keys, w.guess = w.order[:0], w.keys[:0], 0
	w.form.strand = nil
}
