package overlap

import (
	"cmp"
	"slices"
	"time"
)

// Run is the most that one stretch of an answer has of what one other tenant
// alone has sent. At least half of the stretch is that.
type Run struct {
	From    Tenant
	Channel string // of the answer
	Letters int    // of the tenant's
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

// Found is what has been found so far, the most first.
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

	under []stretch // one a tenant
}

// stretch is a part of a text that is at least half of one other tenant's.
// What leaks are often pages, in any order and with others between, so that a
// run breaks at the end of each.
type stretch struct {
	from    Tenant
	end     int       // letters of the text up to where it has come
	letters int       // of the tenant's
	ahead   int       // by how much these are more than the rest
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
	if from == nobody {
		return
	}
	i := slices.IndexFunc(s.under, func(u stretch) bool { return u.from == from })
	if i < 0 {
		if i = len(s.under); i == maxRuns {
			i = s.weakest(end)
			s.under[i] = stretch{}
		} else {
			s.under = append(s.under, stretch{})
		}
		s.under[i].from, s.under[i].end = from, end-gram
	}
	if u := &s.under[i]; u.take(print, end) && u.letters >= x.o.Letters {
		s.a.found(Run{from, s.channel, u.letters})
	}
}

// weakest is the stretch that is closest to its end.
func (s *Strand) weakest(end int) int {
	least := 0
	for i := range s.under {
		if s.under[i].ahead-(end-s.under[i].end) < s.under[least].ahead-(end-s.under[least].end) {
			least = i
		}
	}
	return least
}

// take takes a fingerprint of the tenant's and reports whether it adds to the
// stretch: text that repeats itself is no longer for that.
func (u *stretch) take(print uint64, end int) bool {
	since := end - u.end
	u.end = end
	if u.ahead -= since - min(since, gram); u.ahead < 0 {
		u.ahead, u.letters, u.prints = 0, 0, 0
	}
	if slices.Contains(u.recent[:min(u.prints, len(u.recent))], print) {
		return false
	}
	u.letters += min(since, gram)
	u.ahead += min(since, gram)
	u.recent[u.prints%len(u.recent)] = print
	u.prints++
	return true
}

// found keeps a run if it has the most of its tenant's.
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
