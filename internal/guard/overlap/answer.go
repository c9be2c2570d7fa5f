package overlap

import (
	"cmp"
	"slices"
	"time"
)

// Run is the longest run of an answer that one other tenant alone has sent.
type Run struct {
	From    Tenant
	Channel string // of the answer
	Letters int
}

// maxRuns bounds how many are kept of an answer.
const maxRuns = 16

// Answer looks at one answer. It is not safe for concurrent use.
type Answer struct {
	x    *Index
	to   Tenant
	now  uint32
	runs []Run
}

// Answer begins the answer to a request of a tenant's.
func (x *Index) Answer(to Tenant, now time.Time) *Answer {
	return &Answer{x: x, to: to, now: x.at(now)}
}

// Found is what has been found so far, the longest run first.
func (a *Answer) Found() []Run {
	out := slices.Clone(a.runs)
	slices.SortStableFunc(out, func(b, c Run) int { return cmp.Compare(c.Letters, b.Letters) })
	return out
}

// Strand is one text of an answer.
type Strand struct {
	a       *Answer
	channel string
	sieve   sieve

	from    Tenant    // whose run is under way; nobody for none
	end     int       // letters up to where it has come
	letters int       // of it
	recent  [8]uint64 // its last fingerprints that were not there before
	prints  int
}

// Strand begins a text of the answer.
func (a *Answer) Strand(channel string) *Strand {
	return &Strand{a: a, channel: channel, sieve: sieve{r: &a.x.roller}}
}

// Write takes the next piece of the text, as it is written within quotes in JSON.
func (s *Strand) Write(p []byte) {
	for len(p) > 0 {
		n, _ := s.sieve.write(p)
		p = p[n:]
	}
	v := &s.sieve
	for _, c := range v.chosen {
		s.take(s.a.x.secret(v, c.hash), c.end)
	}
	v.chosen = v.chosen[:0]
}

// take takes the fingerprint of the letters that end at end.
func (s *Strand) take(print uint64, end int) {
	x := s.a.x
	x.mu.Lock()
	from := x.table.say(print, s.a.to, s.a.now)
	x.mu.Unlock()
	if from != s.from {
		s.from, s.letters, s.prints = from, 0, 0
		s.end = end - gram
	}
	if from == nobody {
		return
	}
	// Text that repeats itself is no longer for that.
	if !slices.Contains(s.recent[:min(s.prints, len(s.recent))], print) {
		s.letters += min(end-s.end, gram)
		s.recent[s.prints%len(s.recent)] = print
		s.prints++
	}
	s.end = end
	if s.letters >= x.o.Letters {
		s.a.found(Run{from, s.channel, s.letters})
	}
}

// found keeps a run if it is the longest of its tenant's.
func (a *Answer) found(r Run) {
	i := slices.IndexFunc(a.runs, func(o Run) bool { return o.From == r.From })
	switch {
	case i >= 0:
		if r.Letters > a.runs[i].Letters {
			a.runs[i] = r
		}
	case len(a.runs) < maxRuns:
		a.runs = append(a.runs, r)
	}
}
