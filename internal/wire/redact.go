package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"slices"
	"strings"
)

// minSecret is the length from which a key is taken for a secret, bytes. The
// placeholders that local servers are given ("none", "EMPTY") are shorter, and
// stand in ordinary answers.
const minSecret = 8

// Blotter blots secrets out of what came back, byte for byte, so that a server
// that echoes a key puts it into no file. It finds a secret as it stands, with
// JSON escapes or percent escapes in it, also those of a document within a
// document, and in hexadecimal or base64, wherever in the encoded text it
// begins. The zero value blots nothing.
type Blotter struct {
	byFirst [256][][]byte // forms by the first byte of what may stand for them
	any     bool
}

// NewBlotter makes a blotter of secrets; those too short to be any are left out.
func NewBlotter(secrets ...string) *Blotter {
	b := &Blotter{}
	for _, s := range secrets {
		if len(s) < minSecret {
			continue
		}
		b.any = true
		for _, form := range forms(s) {
			for _, first := range []byte{form[0], '\\', '%'} {
				if !slices.ContainsFunc(b.byFirst[first], func(f []byte) bool { return bytes.Equal(f, form) }) {
					b.byFirst[first] = append(b.byFirst[first], form)
				}
			}
		}
	}
	return b
}

// forms are the texts that show a secret.
func forms(secret string) [][]byte {
	lower := hex.EncodeToString([]byte(secret))
	out := [][]byte{[]byte(secret), []byte(lower), []byte(strings.ToUpper(lower))}
	for before := range 3 { // bytes of the group of three in which the secret begins
		whole := make([]byte, before, before+len(secret)+2)
		whole = append(append(whole, secret...), 0, 0)
		from, to := (before*8+5)/6, (before+len(secret))*8/6
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			out = append(out, []byte(e.EncodeToString(whole)[from:to]))
		}
	}
	return out
}

// Idle reports whether there is nothing to blot.
func (b *Blotter) Idle() bool { return !b.any }

// Text returns s with every secret in it blotted.
func (b *Blotter) Text(s string) string {
	if !b.any || s == "" {
		return s
	}
	p := []byte(s)
	if !b.Bytes(p) {
		return s
	}
	return string(p)
}

// Bytes blots p in place and reports whether there was anything to blot.
func (b *Blotter) Bytes(p []byte) bool {
	_, found := b.blot(p, true)
	return found
}

// Header returns a copy of h with every secret in it blotted.
func (b *Blotter) Header(h http.Header) http.Header {
	out := make(http.Header, len(h))
	for name, values := range h {
		for _, v := range values {
			out[name] = append(out[name], b.Text(v))
		}
	}
	return out
}

// Answer blots what was made of an answer, in place; its raw bytes are not
// touched.
func (b *Blotter) Answer(a *Answer) {
	if !b.any {
		return
	}
	for i := range a.Pieces {
		a.Pieces[i].Text = b.Text(a.Pieces[i].Text)
	}
	for i := range a.Joined { // as long as before, so that the cuts stay where they are
		a.Joined[i].Text = b.Text(a.Joined[i].Text)
	}
	a.Header = b.Header(a.Header)
	for _, s := range []*string{&a.Finish, &a.ID, &a.Model} {
		*s = b.Text(*s)
	}
	if a.Refusal != nil {
		a.Refusal.Message = b.Text(a.Refusal.Message)
	}
	if a.Failure != nil {
		a.Failure.Message = b.Text(a.Failure.Message)
	}
}

// blot overwrites secrets and says up to where p is settled: what follows may
// be the beginning of one, unless p is the last of its text.
func (b *Blotter) blot(p []byte, last bool) (settled int, found bool) {
	if !b.any {
		return len(p), false
	}
	slashes := 0 // behind one another before p[i]
next:
	for i := 0; i < len(p); {
		if p[i] == '\\' {
			if slashes++; slashes%maxSlashes != 1 { // a match would have begun with the first of them
				i++
				continue
			}
		} else {
			slashes = 0
		}
		for _, form := range b.byFirst[p[i]] {
			if i+1 < len(p) && p[i] != '\\' && p[i] != '%' && p[i+1] != form[1] && p[i+1] != '\\' && p[i+1] != '%' {
				continue // by far the most often
			}
			n, open := shows(p[i:], form)
			if open && !last {
				return i, found
			}
			if n > 0 {
				copy(p[i:i+n], bytes.Repeat([]byte("*"), n))
				i, found = i+n, true
				continue next
			}
		}
		i++
	}
	return len(p), found
}

// maxSlashes bounds how often a document may be escaped within others: n of
// them put up to 2^n backslashes before a character.
const maxSlashes = 32

// shows reports how many bytes at the beginning of p stand for form, 0 if they
// do not; open says that p ends while they still may.
func shows(p, form []byte) (n int, open bool) {
	behind := false // slashes that are taken belong to what follows, too
	for i := 0; i < len(form); {
		slashes := 0
		for n+slashes < len(p) && p[n+slashes] == '\\' && slashes < maxSlashes {
			slashes++
		}
		used, open := character(p[n+slashes:], form[i], behind || slashes > 0)
		own := run(form[i:], '\\') // backslashes of the secret's
		switch {
		case used > 0:
			n, i, behind = n+slashes+used, i+1, false
		case open || slashes < max(1, own) || own == 0:
			return 0, open
		default: // they are in what was taken for escapes
			n, i, behind = n+slashes, i+own, true
		}
	}
	return n, false
}

// run is how often c stands at the beginning of p.
func run(p []byte, c byte) int {
	n := 0
	for n < len(p) && p[n] == c {
		n++
	}
	return n
}

// character reports how many bytes at the beginning of p stand for c, as
// itself or escaped.
func character(p []byte, c byte, slashed bool) (used int, open bool) {
	escape := ""
	switch {
	case len(p) == 0:
		return 0, true
	case slashed && p[0] == 'u':
		escape = "u00"
	case !slashed && p[0] == '%':
		escape = "%"
	}
	if escape != "" {
		whole := len(escape) + 2
		same := 0
		for same < min(len(p), whole) && escaped(p[same], same, escape, c) {
			same++
		}
		switch {
		case same == whole:
			return whole, false
		case same == len(p):
			return 0, true
		}
	}
	if p[0] == c {
		return 1, false
	}
	return 0, false
}

// escaped reports whether d is byte i of an escape of c: the escape's own bytes,
// then c in hexadecimal.
func escaped(d byte, i int, escape string, c byte) bool {
	const digits = "0123456789abcdef"
	switch i - len(escape) {
	case 0:
		return d|0x20 == digits[c>>4] || d == digits[c>>4]
	case 1:
		return d|0x20 == digits[c&15] || d == digits[c&15]
	}
	return d == escape[i]
}

// redactReader blots secrets out of a stream. The length of the stream stays
// as it was.
type redactReader struct {
	src  io.Reader
	b    *Blotter
	buf  []byte // storage of have
	have []byte // read and not yet given out
	safe int    // how much of have may be given out
	err  error
}

// Reader returns src with every secret in it blotted: src itself if there are
// none.
func (b *Blotter) Reader(src io.Reader) io.Reader {
	if !b.any {
		return src
	}
	return &redactReader{src: src, b: b, buf: make([]byte, 16<<10)}
}

func (r *redactReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for r.safe == 0 {
		if r.err != nil {
			return 0, r.err
		}
		kept := copy(r.buf, r.have)
		if kept > len(r.buf)/2 { // a secret that long, escaped at that
			r.buf = append(r.buf, make([]byte, len(r.buf))...)
		}
		n, err := r.src.Read(r.buf[kept:])
		r.have, r.err = r.buf[:kept+n], err
		r.safe, _ = r.b.blot(r.have, r.err != nil)
	}
	n := copy(p, r.have[:r.safe])
	r.have, r.safe = r.have[n:], r.safe-n
	return n, nil
}
