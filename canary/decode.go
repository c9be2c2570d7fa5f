package canary

// view reads a text that is written in the text. It is given all bytes of the
// stream, each with its offset, and finds the stretches in its code by itself.
type view interface {
	write(p []byte, off int64)
	end() // the stretch, if there is one, ends here
}

// newViews returns the views that decode, each with scanners of its own.
func newViews(c *Coder, o ScanOptions, found func(Hit)) []view {
	sink := func(name string) *decoded {
		return newDecoded(c, o, func(f finding) { found(f.hit(name)) })
	}
	base64 := &stretches{digits: &base64Digits, bits: 6, least: base64Least}
	for range 4 {
		base64.phases = append(base64.phases, sink("base64"))
	}
	hex := &stretches{digits: &hexDigits, bits: 4, least: hexLeast}
	for range 2 {
		hex.phases = append(hex.phases, sink("hex"))
	}
	percent := &percents{out: newDecoded(c, o, func(f finding) {
		// What the text itself shows as well is reported as that.
		if f.end.sig > f.start.sig {
			found(f.hit("percent"))
		}
	})}
	return []view{base64, hex, percent}
}

// decodedRoom is how much decoded text is scanned at once; it must be more
// than what text keeps.
const decodedRoom = 1 << 9

// decoded scans one decoded text.
type decoded struct {
	text  text
	bytes []byte
	spans []span
}

func newDecoded(c *Coder, o ScanOptions, emit func(finding)) *decoded {
	d := new(decoded)
	d.text.init(c, o, emit)
	return d
}

// add takes the next decoded byte.
func (d *decoded) add(c byte, s span) {
	if d.bytes == nil {
		d.bytes, d.spans = make([]byte, 0, decodedRoom), make([]span, 0, decodedRoom)
	}
	d.bytes, d.spans = append(d.bytes, c), append(d.spans, s)
	if len(d.bytes) == decodedRoom {
		d.scan(false)
	}
}

// scan scans what there is and keeps what cannot be judged yet.
func (d *decoded) scan(last bool) {
	if len(d.bytes) == 0 && !last {
		return
	}
	if d.text.pass != nil {
		d.text.pass.spans = d.spans
	}
	if d.text.anchors != nil {
		d.text.anchors.spans = d.spans
	}
	done := d.text.window(d.bytes, last)
	if last {
		done = len(d.bytes)
	}
	d.text.base += int64(done)
	d.bytes = d.bytes[:copy(d.bytes, d.bytes[done:])]
	d.spans = d.spans[:copy(d.spans, d.spans[done:])]
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
// inside a stretch don't end it.
type stretches struct {
	digits *[256]uint8
	bits   int        // of a digit
	least  int        // shortest stretch in digits
	phases []*decoded // phase k leaves out the first k digits

	begin  []byte // digits of a stretch that is still too short
	active bool
	count  int   // digits of the stretch so far
	acc    uint  // its last bits
	before int64 // where its last digit stands
}

func (s *stretches) write(p []byte, off int64) {
	for i, c := range p {
		switch at := off + int64(i); {
		case s.digits[c] != noDigit && s.active:
			s.digit(c, at)
		case s.digits[c] != noDigit:
			s.begin = append(s.begin, c)
			if len(s.begin) < s.least {
				continue
			}
			s.active = true
			for k, c := range s.begin {
				s.digit(c, at-int64(s.least-1-k))
			}
			s.begin = s.begin[:0]
		case c == '\n' || c == '\r':
			if !s.active {
				s.begin = s.begin[:0]
			}
		default:
			s.end()
		}
	}
	for _, d := range s.phases {
		if s.active {
			d.scan(false)
		}
	}
}

// digit takes the next digit of a stretch. Each digit completes a byte in the
// phases whose bits come out even enough.
func (s *stretches) digit(c byte, at int64) {
	s.acc = s.acc<<s.bits | uint(s.digits[c])
	s.count++
	for k, d := range s.phases {
		if spare := (s.count - k) * s.bits % 8; s.count > k+1 && spare < s.bits {
			d.add(byte(s.acc>>spare), span{place{off: s.before}, place{off: at + 1}})
		}
	}
	s.before = at
}

func (s *stretches) end() {
	if s.active {
		for _, d := range s.phases {
			d.scan(true)
		}
	}
	s.active, s.begin, s.count, s.acc = false, s.begin[:0], 0, 0
}

// percentBack is how much before its first escape a stretch of percent-encoding
// is looked at: room for the word that the escape ends.
const percentBack = 64

// percents decodes percent-encoding: stretches without white space that hold
// an escape.
type percents struct {
	out    *decoded
	back   [percentBack]byte // the last bytes of the stretch before its first escape, as a ring
	length int               // of the stretch before its first escape, bytes
	active bool
	held   []byte // what may be the beginning of an escape
	sig    int64  // escapes that hide something, so far
}

func (v *percents) write(p []byte, off int64) {
	for i, c := range p {
		v.next(c, off+int64(i))
	}
	if v.active {
		v.out.scan(false)
	}
}

func (v *percents) next(c byte, at int64) {
	if len(v.held) > 0 && hexDigits[c] != noDigit {
		v.held = append(v.held, c)
		if len(v.held) == 3 {
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
		v.out.add(c, span{place{at, v.sig}, place{at + 1, v.sig}})
		return
	}
	v.back[v.length%percentBack] = c
	v.length++
}

// escape takes the escape that ends at the given offset.
func (v *percents) escape(at int64) {
	if !v.active {
		v.active = true
		start := at - 2 - int64(v.length)
		for k := max(0, v.length-percentBack); k < v.length; k++ {
			v.plain(v.back[k%percentBack], start+int64(k))
		}
	}
	c := hexDigits[v.held[1]]<<4 | hexDigits[v.held[2]]
	from := place{at - 2, v.sig}
	if c >= 0x80 || isWordByte(c) || isLetterByte(v.held[1]) || isLetterByte(v.held[2]) {
		v.sig++
	}
	v.out.add(c, span{from, place{at + 1, v.sig}})
	v.held = v.held[:0]
}

func (v *percents) end() {
	// An escape that breaks off is part of the stretch, but of no canary.
	if v.active {
		v.out.scan(true)
	}
	v.active, v.length, v.held = false, 0, v.held[:0]
}

func isLetterByte(c byte) bool { return kinds[c]&isLetter != 0 }
