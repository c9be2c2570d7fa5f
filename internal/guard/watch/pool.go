package watch

import (
	"cmp"
	"slices"
	"sync"

	"github.com/kvcanary/kvcanary/canary"
)

// Pool keeps watches whose answers have ended, for the next ones: making a watch
// costs as much as reading a short answer. Its zero value is ready, and it is
// safe for concurrent use.
type Pool struct{ watches sync.Pool }

// Get returns a watch of one answer, which is in all it does as one of [New].
func (p *Pool) Get(o Options) *Watch {
	w, _ := p.watches.Get().(*Watch)
	if w == nil {
		return New(o)
	}
	if !slices.Equal(w.o.Coders, o.Coders) {
		return New(o)
	}
	w.begin(o)
	return w
}

// Put takes a watch whose answer has ended, and has been sent: nothing that it
// has released is valid afterwards. One that stopped, or whose answer has not
// come to its end, is let go.
func (p *Pool) Put(w *Watch) {
	if w.retire() {
		p.watches.Put(w)
	}
}

// maxSpare is how many strands a watch keeps for the next answer.
const maxSpare = 8

// begin makes w a watch of another answer. Nothing of what it knew is left but
// its scanners, which know nothing between two texts, and empty memory.
func (w *Watch) begin(o Options) {
	o.MaxHeld, o.MaxDocument = cmp.Or(o.MaxHeld, DefaultHeld), cmp.Or(o.MaxDocument, DefaultDocument)
	if !o.Stream {
		o.MaxHeld = o.MaxDocument
	}
	most := maxEventParts
	if !o.Stream {
		most = maxParts
	}
	*w = Watch{
		o: o, where: Raw, walk: walker{most: most}, raw: w.raw, used: w.used[:0], spare: w.spare,
		places: w.places, firsts: w.firsts, order: w.order[:0], keys: w.keys[:0], waiting: w.waiting[:0],
		frame: framer{buf: w.frame.buf[:0], data: w.frame.data[:0]}, form: form{before: w.form.before[:0], after: w.form.after[:0]},
		plain: w.plain[:0], spaced: w.spaced[:0], out: w.out[:0], aside: w.aside[:0],
	}
	if w.raw == nil {
		w.raw = w.scanners(func() Channel { return w.where })
	}
}

// retire lets go what belongs to an answer that has ended, and reports whether
// the rest may be kept: only after an ordinary end, and if it is little.
func (w *Watch) retire() bool {
	if !w.closed || w.stopped || len(w.used)+len(w.spare) > maxSpare {
		return false
	}
	for _, b := range [][]byte{w.frame.buf, w.plain, w.spaced, w.out, w.aside} {
		if cap(b) > largeBuffer {
			return false
		}
		clear(b[:cap(b)])
	}
	for _, c := range w.raw {
		c.Reset()
	}
	for _, s := range w.used {
		w.spare = append(w.spare, s.retire())
	}
	clear(w.used)
	w.used = w.used[:0]
	clear(w.order[:cap(w.order)])
	clear(w.waiting[:cap(w.waiting)])
	w.o = Options{Coders: w.o.Coders}
	w.findings, w.form.strand = nil, nil
	return true
}

// retire makes a strand ready for another text, with the memory that it has.
func (s *strand) retire() *strand {
	idle := s.idle
	if s.scanners != nil {
		idle = s.scanners
	}
	for _, c := range idle {
		c.Reset()
	}
	if cap(s.short) > maxField || cap(s.pieces) > maxField {
		s.short, s.pieces = nil, nil
	}
	*s = strand{idle: idle, short: s.short[:0], field: s.field[:0], pieces: s.pieces[:0]}
	return s
}

// strandOf is a strand that is new, or as good as that.
func (w *Watch) strandOf(c Channel) *strand {
	s := &strand{}
	if n := len(w.spare); n > 0 {
		s, w.spare = w.spare[n-1], w.spare[:n-1]
	}
	s.channel = c
	if len(w.used) <= maxSpare { // one more says that they are too many
		w.used = append(w.used, s)
	}
	return s
}

// equip gives a strand its scanners.
func (w *Watch) equip(s *strand) {
	if s.scanners = s.idle; s.scanners == nil {
		s.scanners = w.scanners(func() Channel { return s.channel })
	}
	s.idle = nil
}

func (w *Watch) scanners(at func() Channel) []*canary.Scanner {
	out := make([]*canary.Scanner, len(w.o.Coders))
	for i, c := range w.o.Coders {
		out[i] = c.NewScanner(canary.ScanOptions{}, func(h canary.Hit) { w.hit(h, at()) })
	}
	return out
}
