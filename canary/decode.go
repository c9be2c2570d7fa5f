package canary

import (
	"bytes"
	"unicode/utf8"
)

// view reads a text that is written in the text. It is given all bytes of the
// stream, each with its offset, and finds the stretches in its code by itself.
type view interface {
	write(p []byte, off int64)
	end() // the stretch, if there is one, ends here
}

// newViews returns the views that decode, each with scanners of its own.
func newViews(c *Coder, o ScanOptions, found func(Hit)) []view {
	base := func(name string, digits *[256]uint8, bits, least, phases int) view {
		s := &stretches{digits: digits, least: least}
		for k := range phases {
			d := &decoded{}
			d.text.init(c, o, func(f finding) { found(f.hit(name)) })
			s.phases = append(s.phases, phase{out: d, digits: digits, bits: bits, skip: k, left: k})
		}
		return s
	}
	percent := &percents{back: make([]byte, 0, percentBack), out: &decoded{sigs: []int64{}}}
	percent.out.text.init(c, o, func(f finding) {
		// What the text itself shows as well is reported as that.
		if f.end.sig > f.start.sig {
			found(f.hit("percent"))
		}
	})
	return []view{
		base("base64", &base64Digits, 6, base64Least, 4),
		base("hex", &hexDigits, 4, hexLeast, 2),
		percent,
	}
}

// decodedRoom is how much decoded text is scanned at once; it must be well
// over what text keeps.
const decodedRoom = 1 << 10

// decoded scans one decoded text.
type decoded struct {
	text  text
	bytes []byte
	spans []span
	sigs  []int64 // nil if the view does not count
	sig   int64   // the count before the bytes
}

// add takes the next decoded byte, from the range of the stream that says it.
func (d *decoded) add(c byte, from, to int64) {
	if d.bytes == nil {
		d.bytes, d.spans = make([]byte, 0, decodedRoom), make([]span, 0, decodedRoom)
	}
	d.bytes, d.spans = append(d.bytes, c), append(d.spans, span{from, to})
	if len(d.bytes) == decodedRoom {
		d.scan(false)
	}
}

// scan scans what there is and keeps what cannot be judged yet.
func (d *decoded) scan(last bool) {
	if len(d.bytes) == 0 && !last {
		return
	}
	d.text.source(d.spans, d.sigs)
	done := d.text.window(d.bytes, last)
	if last {
		done = len(d.bytes)
	}
	d.text.base += int64(done)
	d.bytes = d.bytes[:copy(d.bytes, d.bytes[done:])]
	d.spans = d.spans[:copy(d.spans, d.spans[done:])]
	if d.sigs != nil {
		d.sigs = d.sigs[:copy(d.sigs, d.sigs[done:])]
	}
}

const (
	noDigit = 0xFF

	// base64Least and hexLeast are the lengths of the shortest canary, a token
	// of which only "y-" and its 16 characters are left, in characters.
	base64Least = 24
	hexLeast    = 36
)

// base64Digits and hexDigits give the value of each digit; both alphabets of
// base64 in one. They are tables of constants.
var (
	base64Digits = digitTable("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "-_")
	hexDigits    = digitTable("0123456789abcdef", "ABCDEF")
)

// digitTable gives each byte its place in all; those of more stand for the
// last of them.
func digitTable(all, more string) (t [256]uint8) {
	for i := range t {
		t[i] = noDigit
	}
	for i := range all {
		t[all[i]] = uint8(i)
	}
	for i := range more {
		t[more[i]] = uint8(len(all) - len(more) + i)
	}
	return t
}

// stretches finds stretches of digits of one base and decodes each in every
// phase, since its beginning may be something else run into it. Line breaks
// inside a stretch don't end it, once it is long enough to be one.
type stretches struct {
	digits *[256]uint8
	least  int // shortest stretch in digits
	phases []phase
	begin  []byte // digits at the end of the last write, fewer than least
	active bool
}

func (s *stretches) write(p []byte, off int64) {
	for i := 0; i < len(p); {
		if !s.active {
			i = s.find(p, i, off)
			continue
		}
		n := s.run(p[i:])
		for k := range s.phases {
			s.phases[k].feed(p[i:i+n], off+int64(i))
		}
		i += n
		for i < len(p) && (p[i] == '\n' || p[i] == '\r') {
			i++
		}
		if i < len(p) && s.digits[p[i]] == noDigit {
			s.end()
		}
	}
	for k := range s.phases {
		s.phases[k].out.scan(false)
	}
}

// run is how many digits p begins with.
func (s *stretches) run(p []byte) int {
	for i, c := range p {
		if s.digits[c] == noDigit {
			return i
		}
	}
	return len(p)
}

// tail is how many digits p ends with.
func (s *stretches) tail(p []byte) int {
	for i := len(p) - 1; i >= 0; i-- {
		if s.digits[p[i]] == noDigit {
			return len(p) - 1 - i
		}
	}
	return len(p)
}

// find looks for a stretch in p from i on, where none is under way, and returns
// up to where it has looked. If a byte is no digit, no stretch has it, so only
// one byte in as many as the shortest stretch has is looked at.
func (s *stretches) find(p []byte, i int, off int64) int {
	if n := len(s.begin); n > 0 {
		k := min(s.run(p[i:]), s.least-n)
		s.begin = append(s.begin, p[i:i+k]...)
		i += k
		switch {
		case len(s.begin) == s.least:
			s.start(s.begin, off+int64(i-s.least))
			s.begin = s.begin[:0]
		case i < len(p):
			s.begin = s.begin[:0]
		}
		return i
	}
	for i+s.least <= len(p) {
		end := i + s.least
		n := s.tail(p[i:end])
		if n == s.least {
			s.start(p[i:end], off+int64(i))
			return end
		}
		i = end - n
	}
	s.begin = append(s.begin, p[len(p)-s.tail(p[i:]):]...)
	return len(p)
}

// start begins a stretch with its first digits.
func (s *stretches) start(digits []byte, at int64) {
	s.active = true
	for k := range s.phases {
		s.phases[k].feed(digits, at)
	}
}

func (s *stretches) end() {
	if s.active {
		for k := range s.phases {
			s.phases[k].end()
		}
	}
	s.active, s.begin = false, s.begin[:0]
}

// phase decodes stretches from a digit on that is not the first.
type phase struct {
	out    *decoded
	digits *[256]uint8
	bits   int   // of a digit
	skip   int   // digits to leave out
	left   int   // of these, still to come in this stretch
	acc    uint  // the bits read
	have   int   // how many of them are not used yet
	before int64 // where the last digit stands
}

// feed takes digits that stand in a row.
func (d *phase) feed(p []byte, at int64) {
	n := min(d.left, len(p))
	d.left -= n
	for i, c := range p[n:] {
		d.acc = d.acc<<d.bits | uint(d.digits[c])
		d.have += d.bits
		here := at + int64(n+i)
		if d.have >= 8 {
			d.have -= 8
			d.out.add(byte(d.acc>>d.have), d.before, here+1)
		}
		d.before = here
	}
}

func (d *phase) end() {
	d.out.scan(true)
	d.left, d.have, d.acc = d.skip, 0, 0
}

// percentBack is how much before its first escape a stretch of percent-encoding
// is looked at: room for the word that the escape ends.
const percentBack = 64

// percents decodes percent-encoding: stretches without white space that hold
// an escape.
type percents struct {
	out    *decoded
	back   []byte // what the stretch had before its first escape, at most percentBack bytes
	active bool
	held   []byte // what may be the beginning of an escape
}

func (v *percents) write(p []byte, off int64) {
	for i := 0; i < len(p); {
		if !v.active && len(v.held) == 0 {
			n := bytes.IndexByte(p[i:], '%')
			if n < 0 {
				n = len(p) - i
			}
			v.remember(p[i : i+n])
			if i += n; i == len(p) {
				break
			}
		}
		v.next(p[i], off+int64(i))
		i++
	}
	v.out.scan(false)
}

// remember keeps what of p is the end of a stretch without white space.
func (v *percents) remember(p []byte) {
	k := len(p)
	for k > 0 && p[k-1] > ' ' && len(p)-k < percentBack {
		k--
	}
	if k > 0 {
		v.back = v.back[:0]
	}
	p = p[k:]
	if over := len(v.back) + len(p) - percentBack; over > 0 {
		v.back = v.back[:copy(v.back, v.back[over:])]
	}
	v.back = append(v.back, p...)
}

// next takes a byte at the beginning of an escape, or of a stretch that has one.
func (v *percents) next(c byte, at int64) {
	if len(v.held) > 0 && hexDigits[c] != noDigit {
		if v.held = append(v.held, c); len(v.held) == 3 {
			v.escape(at)
		}
		return
	}
	for k, h := range v.held { // it was none
		v.plain(h, at-int64(len(v.held)-k))
	}
	v.held = v.held[:0]
	switch {
	case c <= ' ':
		v.end()
	case c == '%':
		v.held = append(v.held, c)
	default:
		v.plain(c, at)
	}
}

func (v *percents) plain(c byte, at int64) {
	if v.active {
		v.add(c, at, at+1, 0)
	} else {
		v.remember([]byte{c})
	}
}

// escape takes the escape whose last digit stands at the given offset.
func (v *percents) escape(at int64) {
	if !v.active {
		v.active = true
		for k, c := range v.back {
			v.plain(c, at-2+int64(k-len(v.back)))
		}
		v.back = v.back[:0]
	}
	c := hexDigits[v.held[1]]<<4 | hexDigits[v.held[2]]
	hides := int64(0)
	if c >= utf8.RuneSelf || isWordByte(c) || kinds[v.held[1]]&isLetter != 0 || kinds[v.held[2]]&isLetter != 0 {
		hides = 1
	}
	v.add(c, at-2, at+1, hides)
	v.held = v.held[:0]
}

// add hands a byte on, and counts the escapes that the text itself hides.
func (v *percents) add(c byte, from, to, hides int64) {
	d := v.out
	d.sigs = append(d.sigs, d.sig<<1|hides)
	d.sig += hides
	d.add(c, from, to)
}

func (v *percents) end() {
	// An escape that breaks off is part of the stretch, but of no canary.
	if v.active {
		v.out.scan(true)
	}
	v.active, v.back, v.held = false, v.back[:0], v.held[:0]
}
