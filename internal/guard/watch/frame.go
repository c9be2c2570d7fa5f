package watch

import "bytes"

// framer cuts a stream into lines and keeps what is not released yet.
type framer struct {
	buf    []byte
	base   int64  // where buf begins in the stream, comments that overtook left out
	out    int    // how much of buf has been released, to be dropped
	unit   int    // where the unit under way begins
	line   int    // where the line under way begins
	seen   int    // up to where its end has been looked for
	cr     bool   // the last line ended in CR: an LF belongs to it
	begun  bool   // the byte order mark is behind
	fields bool   // the unit has a line that is no comment
	failed bool   // the unit has data that is called an error
	data   []span // the data of the unit, from its beginning
	name   span   // and what it is called
}

// span is a range of buf.
type span struct{ from, to int }

// value marks what ends at to and has the given length as part of the unit.
func (f *framer) value(to, length int) span { return span{to - length - f.unit, to - f.unit} }

// at is what a span of the unit holds.
func (f *framer) at(s span) []byte { return f.buf[f.unit+s.from : f.unit+s.to] }

// all is the data of the unit: its lines, joined.
func (f *framer) all() (data []byte) {
	if len(f.data) == 1 {
		return bytes.TrimSpace(f.at(f.data[0]))
	}
	for i, d := range f.data {
		if i > 0 {
			data = append(data, '\n')
		}
		data = append(data, f.at(d)...)
	}
	return bytes.TrimSpace(data)
}

func (f *framer) add(p []byte) { f.buf = append(f.buf, p...) }

// drop forgets what has been released.
func (f *framer) drop() {
	if n := f.out; n > 0 {
		f.buf = f.buf[:copy(f.buf, f.buf[n:])]
		f.moved(n)
	}
}

// shrink gives a large buffer away with what is released of it, so that a
// stream at rest keeps little. What is released stays valid.
func (f *framer) shrink() {
	if rest := f.buf[f.out:]; cap(f.buf) > largeBuffer && len(rest) <= largeBuffer/2 {
		f.buf = append([]byte(nil), rest...)
		f.moved(f.out)
	}
}

// largeBuffer is how many bytes a stream at rest may keep.
const largeBuffer = 8 << 10

// moved takes notice that the first n bytes are gone.
func (f *framer) moved(n int) {
	f.base += int64(n)
	f.out, f.unit, f.line, f.seen = 0, f.unit-n, f.line-n, f.seen-n
}

// framed is up to where the stream has been cut into units.
func (f *framer) framed() int64 { return f.base + int64(f.unit) }

// end is up to where the stream has come.
func (f *framer) end() int64 { return f.base + int64(len(f.buf)) }

// held is how many bytes are kept back.
func (f *framer) held() int { return len(f.buf) - f.out }

// release is what stands before limit and was not released before.
func (f *framer) release(limit int64) []byte {
	to := max(f.out, int(limit-f.base))
	b := f.buf[f.out:to]
	f.out = to
	f.shrink()
	return b
}

// next returns the next line without its end, which is LF, CRLF or CR.
func (f *framer) next() (line span, ok bool) {
	if f.cr && f.line < len(f.buf) {
		if f.cr = false; f.buf[f.line] == '\n' {
			if f.unit == f.line {
				f.unit++
			}
			f.line++
			f.seen = f.line
		}
	}
	rest := f.buf[f.seen:]
	n := bytes.IndexByte(rest, '\n')
	if n < 0 {
		n = len(rest)
	}
	if c := bytes.IndexByte(rest[:n], '\r'); c >= 0 {
		n, f.cr = c, true
	} else if n == len(rest) {
		f.seen = len(f.buf)
		return span{}, false
	}
	line = span{f.line, f.seen + n}
	f.line = f.seen + n + 1
	f.seen = f.line
	if !f.begun {
		f.begun = true
		if bytes.HasPrefix(f.buf[line.from:line.to], []byte("\ufeff")) {
			line.from += len("\ufeff")
		}
	}
	return line, true
}

// overtake takes the unit under way, which ends before the line under way, out
// of the stream, and appends it to b.
func (f *framer) overtake(b []byte) []byte {
	if f.cr && f.line < len(f.buf) && f.buf[f.line] == '\n' {
		f.cr = false
		f.line++
		f.seen = f.line
	}
	n := f.line - f.unit
	b = append(b, f.buf[f.unit:f.line]...)
	f.buf = append(f.buf[:f.unit], f.buf[f.line:]...)
	f.line, f.seen = f.line-n, f.seen-n
	return b
}
