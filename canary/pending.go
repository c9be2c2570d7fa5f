package canary

import "unicode/utf8"

// Pending is the end of a stream as far as it may still become part of a hit:
// what a reader that must let no canary pass has to wait for.
type Pending struct {
	From  int64 // nothing of a hit that is reported later stands before it, but for one that is under way and the letters before the dash of a token; bytes
	To    int64 // where what is waited for ends as yet, bytes: it moves with every letter that could belong to a canary, and every byte of an escape
	Words int   // how many words in a row may be canary, the one under way counted; 0 if nothing is waited for
}

// Pending tells how much of the stream must be kept back so that nothing of a
// hit is let out before it is known as one: at most seven words and one under
// way, the characters of a token, or an escape that is not complete, whatever
// stands between; nothing if the stream ends in what is in no canary. The
// letters before the dash of a token say nothing and are not waited for. Decoded views
// wait for more: a stretch without white space, or 128 bytes. From never goes
// back.
func (s *Scanner) Pending() Pending {
	p := s.text.pending(s.text.kept, nil, s.off)
	for _, v := range s.views {
		p = p.and(v.pending(s.off))
	}
	s.settled = max(s.settled, p.From)
	p.From, p.To = s.settled, max(s.settled, p.To)
	return p
}

// UnderWay is the hit that the stream is in the middle of, as far as it goes,
// if there is one. It will be reported when it has ended, and be no shorter.
func (s *Scanner) UnderWay() (Hit, bool) {
	if f, ok := s.text.underWay(); ok {
		return f.hit(""), true
	}
	for _, v := range s.views {
		if h, ok := v.underWay(); ok {
			return h, true
		}
	}
	return Hit{}, false
}

// and waits for both.
func (p Pending) and(q Pending) Pending {
	return Pending{min(p.From, q.From), max(p.To, q.To), max(p.Words, q.Words)}
}

// waitFrom waits for what stands from one place to another and may be a word.
func waitFrom(from, to int64) Pending {
	if from == to {
		return Pending{From: to, To: to}
	}
	return Pending{from, to, 1}
}

// pending judges the end of a text. Kept are the bytes from t.base on; if they
// were decoded, spans says where they come from. The stream is read up to end.
func (t *text) pending(kept []byte, spans []span, end int64) Pending {
	at := func(i int) int64 {
		switch {
		case i >= len(kept):
			return end
		case spans != nil:
			return spans[i].from
		}
		return t.base + int64(i)
	}
	p := Pending{From: end, To: end}
	if t.pass != nil {
		p = t.pass.waits(at(int(t.words-t.base)), end)
	}
	if t.anchors != nil {
		i, chars := t.anchors.open(kept, t.base)
		if i < len(kept) {
			p = p.and(Pending{at(i), end, 1 + chars/2})
		}
	}
	return p
}

func (t *text) underWay() (finding, bool) {
	if t.pass == nil {
		return finding{}, false
	}
	r := &t.pass.run
	return finding{r.id, WordChain, r.word, r.words, r.start, r.end}, r.known && r.words >= MinWords
}

// waits is what a pass that has read up to a place waits for.
func (p *pass) waits(read, end int64) Pending {
	w := Pending{From: read, To: read}
	if read < end { // a piece that is not complete
		w.To, w.Words = end, 1
	}
	if p.letters > 0 {
		if !p.mayBeWord() {
			return w
		}
		w = Pending{p.from.off, max(w.To, p.to.off), 1}
	}
	if n := min(p.run.count, MinWords-1); n > 0 {
		w.From = p.run.starts[(p.run.pos+1+MinWords-n)%MinWords].off
		w.Words += n
		if p.letters == 0 && read == end {
			w.To = p.run.last
		}
	}
	return w
}

// mayBeWord reports whether the letters under way may become a word of the
// list. It may say so wrongly.
func (p *pass) mayBeWord() bool {
	if p.escaped && p.letters <= maxLetters+1 {
		return true
	}
	return p.letters <= maxLetters && p.lx.mayBegin(p.key)
}

// open is where in kept, which begins at base, the dash of a token stands that
// may still become one, and how many characters stand after it; the end of kept
// if there is none.
func (a *anchors) open(kept []byte, base int64) (at, chars int) {
	at = len(kept) - halfRune(kept)
	for _, done := range a.at {
		if d := int(done - base); d < len(kept) {
			at, chars = min(at, d), max(chars, min(len(kept)-d, tokenChars))
		}
	}
	return at, chars
}

// halfRune is how many bytes at the end of b begin a character that is not complete.
func halfRune(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// pending is what a decoded text waits for, whose next byte begins at next.
func (d *decoded) pending(next int64) Pending { return d.text.pending(d.bytes, d.spans, next) }

func (d *decoded) underWay(view string) (Hit, bool) {
	f, ok := d.text.underWay()
	return f.hit(view), ok && (d.sigs == nil || f.end.sig > f.start.sig)
}

func (s *stretches) pending(end int64) Pending {
	p := waitFrom(end-int64(len(s.begin)), end)
	if s.active {
		for k := range s.phases {
			p = p.and(waitFrom(s.phases[k].before, end)).and(s.phases[k].out.pending(s.phases[k].before))
		}
	}
	return p
}

func (s *stretches) underWay() (Hit, bool) {
	for k := range s.phases {
		if h, ok := s.phases[k].out.underWay(s.name); ok {
			return h, true
		}
	}
	return Hit{}, false
}

func (v *percents) pending(end int64) Pending {
	next := end - int64(len(v.held))
	return waitFrom(next-int64(len(v.back)), end).and(v.out.pending(next))
}

func (v *percents) underWay() (Hit, bool) { return v.out.underWay("percent") }

func (v *markup) pending(end int64) Pending {
	next := end - int64(len(v.held))
	return waitFrom(next-int64(len(v.back)), end).and(v.out.pending(next))
}

func (v *markup) underWay() (Hit, bool) { return v.out.underWay("markup") }
