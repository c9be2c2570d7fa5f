package watch

import (
	"bytes"
	"fmt"

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

// strand is the strand of a place; nil where there are too many. A text that is
// in none is read with the bytes of its unit only, and what goes on with one
// cannot be judged.
func (w *Watch) strand(place uint64, c Channel) *strand {
	s := w.known(place)
	if s == nil {
		s = w.begun(place, c)
	}
	if s != nil {
		s.seen = w.event
	}
	return s
}

// known is the strand of a place that has one.
func (w *Watch) known(place uint64) *strand {
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
	return w.places[place]
}

// begun is a strand for a place that has none.
func (w *Watch) begun(place uint64, c Channel) *strand {
	if w.lost[place] {
		w.crowded()
		return nil
	}
	most := maxStrands
	if !w.o.Stream {
		most = maxTexts
	}
	if len(w.order) >= most && place > tokensPlace && !w.makeRoom() {
		w.lose(place)
		return nil
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

// makeRoom lets go strands that have said nothing for long, as those of an index
// that grows never do again, and items of lists, most of which come once. It
// reports whether there were any.
func (w *Watch) makeRoom() bool {
	if w.full == w.event {
		return false // nothing has become idle since
	}
	n := 0
	for i, s := range w.order {
		if s.seen >= w.event-idleEvents && !s.once || s.waiting || s == w.form.strand {
			w.order[n], w.keys[n] = s, w.keys[i]
			n++
			continue
		}
		w.lose(w.keys[i])
		delete(w.places, w.keys[i])
	}
	room := n < len(w.order)
	if !room {
		w.full = w.event
	}
	clear(w.order[n:])
	w.order, w.keys, w.guess = w.order[:n], w.keys[:n], n
	return room
}

// lose notes that what comes at a place, or has come there, is in no strand. A
// document has no more places than it may have texts, a stream has no end.
func (w *Watch) lose(place uint64) {
	switch {
	case w.o.Stream && len(w.lost) >= maxLost:
		w.crowded()
		return
	case w.lost == nil:
		w.lost = map[uint64]bool{}
	}
	w.lost[place] = true
}

// crowded says that a text goes on of which the beginning is in no strand.
func (w *Watch) crowded() {
	w.add(Finding{Kind: Unseen, Channel: Raw, Stops: true,
		Explain: fmt.Sprintf("the answer has texts at more than %d places that take turns, and what goes on at one cannot be put together", maxStrands)})
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
	if all == nil {
		return
	}
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
	s.length, s.seen = s.length+int64(len(text)), w.event
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
	w.lost = nil
	w.order, w.keys, w.guess = w.order[:0], w.keys[:0], 0
	w.form.strand = nil
}
