package canary

// view reads a text that is written in the text. It is given all bytes of the
// stream, each with its offset, and finds the stretches in its code by itself.
type view interface {
	write(p []byte, off int64)
	end() // the stretch, if there is one, ends here
	pending(end int64) Pending
	underWay() (Hit, bool)
}

// newViews returns the views that decode, each with scanners of its own.
func newViews(c *Coder, o ScanOptions, found func(Hit)) []view {
	base := func(name string, digits *[256]uint8, bits, least, phases int) view {
		s := &stretches{name: name, digits: digits, least: least}
		for k := range phases {
			d := &decoded{}
			d.text.init(c, o, func(f finding) { found(f.hit(name)) })
			s.phases = append(s.phases, phase{out: d, digits: digits, bits: bits, skip: k, left: k})
		}
		return s
	}
	// What the text itself shows as well is reported as that.
	counting := func(name string) *decoded {
		d := &decoded{sigs: []int64{}}
		d.text.init(c, o, func(f finding) {
			if f.end.sig > f.start.sig {
				found(f.hit(name))
			}
		})
		return d
	}
	return []view{
		base("base64", &base64Digits, 6, base64Least, 4),
		base("hex", &hexDigits, 4, hexLeast, 2),
		&percents{back: make([]byte, 0, percentBack), out: counting("percent")},
		&markup{back: make([]byte, 0, markupBack), out: counting("markup")},
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
