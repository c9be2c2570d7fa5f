package canary

import (
	"cmp"
	"errors"
	"slices"
)

// Form is the form of a canary.
type Form string

// The forms of a canary.
const (
	WordChain  Form = "words" // text of a word chain
	ShortToken Form = "token" // CANARY- and 16 characters
)

// Hit is a piece of canary found in a text. The words themselves are not kept:
// [Coder.Words] mints them again.
type Hit struct {
	ID    ID
	Form  Form
	Word  int    // offset of its first word in the canary, words; 0 for a token
	Words int    // how many words in a row, at least MinWords; 0 for a token
	Start int64  // byte range in the scanned stream, as it is encoded there
	End   int64  // one past the last byte
	View  string // "" for the text itself, else the decoded view: "base64", "hex", "percent" or "markup"
}

// ScanOptions says what a scanner looks for. The zero value looks for both
// forms in the text itself.
type ScanOptions struct {
	Decode bool   // also look into base64, hexadecimal and percent-encoded runs, and between tags, terminal colours and the NULs of UTF-16
	Forms  []Form // look for these forms only; empty means all
}

func (o ScanOptions) wants(f Form) bool { return len(o.Forms) == 0 || slices.Contains(o.Forms, f) }

// Scan finds all canaries of the coder's key in p, in order of their start.
func (c *Coder) Scan(p []byte) []Hit {
	var hits []Hit
	s := c.NewScanner(ScanOptions{}, func(h Hit) { hits = append(hits, h) })
	s.Write(p)
	s.Close()
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	return hits
}

// Scanner finds canaries in a stream. The hits do not depend on how the bytes
// were cut into writes, except for the order in which hits of different forms
// and views come. It keeps a few hundred bytes, whatever the length of the
// stream; decoded views take some 100 kB. It is not safe for concurrent use.
type Scanner struct {
	text    text
	views   []view
	off     int64 // bytes written
	settled int64 // before it nothing is waited for
	closed  bool
}

// NewScanner returns a scanner that calls found for each hit. Each unbroken
// run of words of one canary is one hit, reported when it has ended: when
// something else follows it, or the stream closes.
func (c *Coder) NewScanner(o ScanOptions, found func(Hit)) *Scanner {
	s := new(Scanner)
	s.text.init(c, o, func(f finding) { found(f.hit("")) })
	if o.Decode {
		s.views = newViews(c, o, found)
	}
	return s
}

func (f finding) hit(view string) Hit {
	return Hit{f.id, f.form, f.word, f.words, f.start.off, f.end.off, view}
}

// ErrClosed is what writing to a closed scanner returns.
var ErrClosed = errors.New("canary scanner is closed: make a new one for the next stream")

// Write scans the next bytes of the stream. It fails only after Close.
func (s *Scanner) Write(p []byte) (int, error) {
	if s.closed {
		return 0, ErrClosed
	}
	s.text.write(p)
	for _, v := range s.views {
		v.write(p, s.off)
	}
	s.off += int64(len(p))
	return len(p), nil
}

// Close ends the stream and reports what ends with it.
func (s *Scanner) Close() error {
	if !s.closed {
		s.closed = true
		s.text.close()
		for _, v := range s.views {
			v.end()
		}
	}
	return nil
}

// Reset ends the stream and makes the scanner ready for another, whose hits
// begin at zero again. It allocates nothing.
func (s *Scanner) Reset() {
	s.Close()
	s.off, s.settled, s.closed = 0, 0, false
	s.text.base, s.text.words = 0, 0
	if s.text.anchors != nil {
		s.text.anchors.at = [len(dashLeads)]int64{}
	}
}

const (
	// windowSize is how much is scanned at once, so that every pass over it
	// finds it in the cache.
	windowSize = 1 << 16
	// joinSize is how much of a write is put behind what was kept.
	joinSize = 1 << 10
)

// text scans one text for the forms wanted, in windows. It keeps the bytes at
// the end that cannot be judged before more is seen.
type text struct {
	pass    *pass    // nil if words are not wanted
	anchors *anchors // nil if tokens are not wanted
	kept    []byte
	base    int64 // where kept begins in the stream
	words   int64 // up to where the pass has read
}

func (t *text) init(c *Coder, o ScanOptions, emit func(finding)) {
	if o.wants(WordChain) {
		t.pass = &pass{lx: c.lx, run: run{chain: &c.chain, emit: emit}}
	}
	if o.wants(ShortToken) {
		t.anchors = &anchors{coder: c, emit: emit}
	}
}

// source says where the bytes of the next windows come from.
func (t *text) source(spans []span, sigs []int64) {
	if t.pass != nil {
		t.pass.spans, t.pass.sigs = spans, sigs
	}
	if t.anchors != nil {
		t.anchors.spans, t.anchors.sigs = spans, sigs
	}
}

func (t *text) write(p []byte) {
	for len(t.kept) > 0 && len(p) > 0 {
		k := min(len(p), joinSize)
		join := append(t.kept, p[:k]...)
		done := t.window(join, false)
		t.base += int64(done)
		if done >= len(t.kept) {
			p = p[done-len(t.kept):]
			t.kept = join[:0]
			break
		}
		t.kept = append(join[:0], join[done:]...)
		p = p[k:]
	}
	for len(p) > 0 {
		w := p[:min(len(p), windowSize)]
		done := t.window(w, false)
		t.base += int64(done)
		if len(w) == len(p) {
			t.kept = append(t.kept[:0], p[done:]...)
			return
		}
		p = p[done:]
	}
}

func (t *text) close() {
	t.window(t.kept, true)
	t.base += int64(len(t.kept))
	t.kept = t.kept[:0]
}

// window scans b, which begins at t.base, and returns how much of it is not
// needed any more.
func (t *text) window(b []byte, last bool) int {
	done := len(b)
	if t.pass != nil {
		t.pass.base = t.base
		at := int(t.words - t.base)
		at = t.pass.block(b, at, last)
		t.words = t.base + int64(at)
		done = min(done, at)
	}
	if t.anchors != nil {
		t.anchors.base = t.base
		done = min(done, max(0, t.anchors.block(b, last)-tokenBack))
	}
	return done
}
