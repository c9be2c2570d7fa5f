package guard

import (
	"io"
	"net/http"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/guard/overlap"
	"github.com/kvcanary/kvcanary/internal/guard/watch"
)

// carried are the canaries that a request carries itself.
type carried struct {
	s      *setup
	found  map[canary.ID]bool
	by     *finder         // nil once all of the request is read
	prompt *overlap.Prompt // remembers its text; nil for nobody
}

// finder reads one request after the other.
type finder struct {
	scanners []*canary.Scanner
	of       *carried // the request's
}

func newFinder(coders []*canary.Coder) *finder {
	f := &finder{}
	for _, c := range coders {
		f.scanners = append(f.scanners, c.NewScanner(canary.ScanOptions{}, func(h canary.Hit) {
			if f.of.found == nil {
				f.of.found = map[canary.ID]bool{}
			}
			f.of.found[h.ID] = true
		}))
	}
	return f
}

// carries begins to read a request. One whose reading is not closed costs the
// setup a finder, and nothing else.
func (s *setup) carries() *carried {
	f, _ := s.finders.Get().(*finder)
	if f == nil {
		f = newFinder(s.Watch.Coders)
	}
	f.of = &carried{s: s, by: f}
	return f.of
}

func (o *carried) write(p []byte) {
	for _, c := range o.by.scanners {
		c.Write(p)
	}
	if o.prompt != nil {
		o.prompt.Write(p)
	}
}

// head takes what a request carries beside its body: an engine may say again
// what it was called by.
func (o *carried) head(r *http.Request, rt *route) {
	if r.URL.Path != rt.path { // else it is the table's, and no client's
		o.line(r.URL.Path)
	}
	for _, values := range r.Header {
		for _, v := range values {
			o.line(v)
		}
	}
}

// line takes what stands by itself.
func (o *carried) line(s string) {
	if len(s) < watch.LeastHit {
		return
	}
	for _, c := range o.by.scanners {
		io.WriteString(c, s)
		c.Reset()
	}
}

// close ends the reading. What was found stays known.
func (o *carried) close() {
	for _, c := range o.by.scanners {
		c.Reset()
	}
	o.by.of = nil
	o.s.finders.Put(o.by)
	o.by, o.prompt = nil, nil
}

// has says that the request carried a canary.
func (o *carried) has(id canary.ID) bool { return o.found[id] }
