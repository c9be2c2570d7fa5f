package canary

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
	name   string
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
