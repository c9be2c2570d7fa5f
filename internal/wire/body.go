package wire

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// segment is a piece of a request body: JSON as it stands, or a text of the
// prompt that is escaped while it is sent.
type segment struct {
	json string
	text Text
}

// quote returns s as a JSON string. A string cannot fail to marshal.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("kvcanary: internal error: marshal string: " + err.Error())
	}
	return string(b)
}

// messagesJSON is the value of a "messages" field, brackets included.
func messagesJSON(ms []Message) []segment {
	return messagesIn(ms, func(m Message) (head, tail string) {
		head = `{"role":` + quote(m.Role) + `,"content":`
		if len(m.Images) == 0 {
			return head + `"`, `"}`
		}
		return head + "[" + imageParts(m.Images) + `{"type":"text","text":"`, `"}]}`
	})
}

// imageParts are PNG files as content parts of the chat API, each with a comma
// behind it.
func imageParts(images [][]byte) string {
	var b strings.Builder
	for _, png := range images {
		b.WriteString(`{"type":"image_url","image_url":{"url":"` + dataURL(png) + `"}},`)
	}
	return b.String()
}

// dataURL is a PNG file as a URL.
func dataURL(png []byte) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(png)
}

// messagesIn is a list of messages, brackets included. Each is its text as the
// inside of a JSON string, between a head that opens the string and a tail that
// closes it.
func messagesIn(ms []Message, around func(Message) (head, tail string)) []segment {
	out := []segment{{json: "["}}
	for i, m := range ms {
		sep := ""
		if i > 0 {
			sep = ","
		}
		head, tail := around(m)
		out = append(out, segment{json: sep + head})
		if m.Text != nil {
			out = append(out, segment{text: m.Text})
		}
		out = append(out, segment{json: tail})
	}
	return append(out, segment{json: "]"})
}

// Sized is a [Text] that knows how long it is within a JSON string, bytes: it
// need not be made once just to be measured.
type Sized interface {
	Text
	JSONSize() int64
}

// JSONSize is how long s is within a JSON string, as it is sent, bytes.
func JSONSize(s string) int64 {
	var n int64
	buf := make([]byte, 0, 256)
	for src := []byte(s); len(src) > 0; {
		part := src[:min(len(src), 64)]
		var used int
		buf, used = appendEscaped(buf[:0], part, len(part) == len(src))
		n, src = n+int64(len(buf)), src[used:]
	}
	return n
}

// bodySize is the exact length of a body in bytes. A text that does not know
// its own is made once for that, and none of it is kept.
func bodySize(segs []segment) (int64, error) {
	var n int64
	for _, s := range segs {
		if s.text == nil {
			n += int64(len(s.json))
			continue
		}
		if t, ok := s.text.(Sized); ok {
			n += t.JSONSize()
			continue
		}
		m, err := io.Copy(io.Discard, &escaper{src: s.text.Open()})
		if err != nil {
			return 0, &promptError{err}
		}
		n += m
	}
	return n, nil
}

// promptError says that a text of the prompt could not be read.
type promptError struct{ err error }

func (e *promptError) Error() string { return "read the prompt: " + e.err.Error() }
func (e *promptError) Unwrap() error { return e.err }

// bodyReader streams a body. It calls moved for every piece that is taken, so
// that the caller knows that the upload is alive.
type bodyReader struct {
	segs  []segment
	cur   io.Reader
	left  string
	moved func()
}

func (b *bodyReader) Read(p []byte) (int, error) {
	b.moved()
	for {
		switch {
		case b.left != "":
			n := copy(p, b.left)
			b.left = b.left[n:]
			return n, nil
		case b.cur != nil:
			n, err := b.cur.Read(p)
			if err == io.EOF {
				b.cur, err = nil, nil
			}
			if err != nil {
				return n, &promptError{err}
			}
			if n > 0 {
				return n, nil
			}
		case len(b.segs) == 0:
			return 0, io.EOF
		default:
			s := b.segs[0]
			b.segs = b.segs[1:]
			if s.text != nil {
				b.cur = &escaper{src: s.text.Open()}
			} else {
				b.left = s.json
			}
		}
	}
}

// escaper reads text as the inside of a JSON string. Bytes that are not UTF-8
// become U+FFFD, one each, as encoding/json has it.
type escaper struct {
	src io.Reader
	in  []byte // bytes read and not yet escaped
	buf []byte // storage of in
	out []byte // escaped bytes not yet taken
	enc []byte // storage of out
	eof bool
	nop int // reads in a row that yielded nothing
}

// escapeChunk is how much text is escaped at a time, bytes.
const escapeChunk = 16 << 10

func (e *escaper) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(e.out) == 0 {
		if e.eof && len(e.in) == 0 {
			return 0, io.EOF
		}
		if err := e.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

// fill reads once and escapes what is complete.
func (e *escaper) fill() error {
	if e.buf == nil {
		e.buf = make([]byte, escapeChunk)
	}
	if !e.eof {
		kept := copy(e.buf, e.in)
		n, err := e.src.Read(e.buf[kept:])
		e.in = e.buf[:kept+n]
		switch {
		case err == io.EOF:
			e.eof = true
		case err != nil:
			return err
		case n > 0:
			e.nop = 0
		default:
			if e.nop++; e.nop > 100 {
				return fmt.Errorf("kvcanary: internal error: %w", io.ErrNoProgress)
			}
		}
	}
	var used int
	e.enc, used = appendEscaped(e.enc[:0], e.in, e.eof)
	e.in, e.out = e.in[used:], e.enc
	return nil
}

// appendEscaped escapes src onto dst and returns how many bytes of src it has
// used: all of them, but for a character that is cut off unless atEOF.
func appendEscaped(dst, src []byte, atEOF bool) ([]byte, int) {
	i := 0
	for i < len(src) {
		run := i
		i += plainRun(src[i:])
		dst = append(dst, src[run:i]...)
		if i == len(src) {
			break
		}
		c := src[i]
		if c < utf8.RuneSelf {
			dst = appendEscape(dst, c)
			i++
			continue
		}
		if !atEOF && !utf8.FullRune(src[i:]) {
			return dst, i
		}
		r, n := utf8.DecodeRune(src[i:])
		dst = utf8.AppendRune(dst, r)
		i += n
	}
	return dst, i
}

// plainRun is how many bytes at the beginning of p stand in a JSON string as
// they are. It looks at eight at a time: in a word of eight bytes, lows&^x has
// the top bit of every byte set that is below what was subtracted.
func plainRun(p []byte) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(p); i += 8 {
		x := binary.LittleEndian.Uint64(p[i:])
		control := (x - 0x20*ones) &^ x
		quote := x ^ '"'*ones
		slash := x ^ '\\'*ones
		if (x|control|(quote-ones)&^quote|(slash-ones)&^slash)&tops != 0 {
			break
		}
	}
	for i < len(p) && p[i] >= 0x20 && p[i] < utf8.RuneSelf && p[i] != '"' && p[i] != '\\' {
		i++
	}
	return i
}

// appendEscape appends one character that may not stand in a JSON string.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// number writes a float as JSON does, 0 as "0".
func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
