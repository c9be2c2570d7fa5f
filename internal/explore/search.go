package explore

import (
	"context"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// state is what the world is at one moment: a value of each part and how many
// faults may still happen, with the fingerprint of it all.
type state struct {
	digest digest
	parts  [parts]partID
	budget budget
}

// sum makes the fingerprint from scratch.
func (s *state) sum(st *store) {
	s.digest = s.budget.digest()
	for slot, id := range s.parts {
		s.digest = s.digest.plus(st.info(slotOf(slot), id).digest)
	}
}

// lanes divide the states by fingerprint. The order in which states are found
// depends on their number and not on that of the workers, so that the same
// counterexample is found each time.
const lanes = 4

// lane holds the states of one residue class.
type lane struct {
	seen     *seen
	cur, new []state  // this level and the next
	parents  []uint32 // by number within the lane: number of the parent, counted over all lanes
	vias     []uint16 // which of the parent's choices
	base     int      // number of cur[0] within the lane
}

// stateNumber names a state over all lanes.
func stateNumber(lane, i int) uint32 { return uint32(i*lanes + lane) }

// search explores breadth first.
type search struct {
	ctx      context.Context
	model    *Model
	store    *store
	lanes    [lanes]lane
	workers  []*worker
	limit    int  // states; 0 for none
	survey   bool // go on after a finding
	progress func(Progress)

	depth       int
	states      int
	transitions int64
	ends        int64
	found       findings
	began       time.Time
	now         func() time.Time
}

// finding is a choice that breaks an invariant, or a state at which one is
// broken because nothing more happens.
type finding struct {
	at  uint32
	via uint16 // endVia: the state itself
}

const endVia = 1<<16 - 1

// findings are the first ways to break each invariant that is broken.
type findings struct {
	set set
	by  [invariants]finding
}

// add notes findings of a later place in the search.
func (f *findings) add(broken set, at func(Invariant) finding) {
	for i := range invariants {
		if broken&^f.set&(1<<i) != 0 {
			f.by[i] = at(i)
		}
	}
	f.set |= broken
}

// worker expands states and files what comes of them.
type worker struct {
	memo        *memo
	queue       []effect
	transitions int64
	ends        int64
	sink        uint64
}

// batch is how many states are expanded between two filings, and share how
// many of them a worker takes at a time.
const (
	batch = 8192
	share = 256
)

// candidates come of a share of states, by lane.
type candidates struct {
	of    [lanes][]candidate
	found findings
}

type candidate struct {
	state state
	from  uint32
	via   uint16
}

func newSearch(ctx context.Context, m *Model, workers int, now func() time.Time) *search {
	s := &search{ctx: ctx, model: m, store: newStore(m), now: now, began: now()}
	for i := range s.lanes {
		s.lanes[i].seen = newSeen()
	}
	for range workers {
		s.workers = append(s.workers, &worker{memo: newMemo(s.store)})
	}
	first := m.first(s.store)
	first.sum(s.store)
	lane := laneOf(first.digest)
	l := &s.lanes[lane]
	l.seen.add(first.digest)
	// The first state is its own parent.
	l.cur, l.parents, l.vias = []state{first}, []uint32{stateNumber(lane, 0)}, []uint16{0}
	s.states = 1
	return s
}

// laneOf uses other bits than the table within the lane does.
func laneOf(p digest) int { return int(p[1] >> 62) }

// run explores until all is explored, which it reports, something is found, or
// the limit is reached.
func (s *search) run() bool {
	for s.limit == 0 || s.states < s.limit {
		more := s.level()
		switch {
		case s.found.set != 0 && !s.survey || s.ctx.Err() != nil:
			return false
		case !more:
			return true
		}
		s.depth++
	}
	return false
}

// level expands all states of a depth. It reports whether there are any of the next.
func (s *search) level() bool {
	made := make([]candidates, batch/share)
	for from := range s.lanes {
		for at := 0; at < len(s.lanes[from].cur); at += batch {
			n := min(batch, len(s.lanes[from].cur)-at)
			shares := (n + share - 1) / share
			s.expand(from, at, n, made[:shares])
			for _, m := range made[:shares] {
				s.found.add(m.found.set, func(i Invariant) finding { return m.found.by[i] })
				if s.found.set != 0 && !s.survey {
					return false
				}
			}
			s.file(made[:shares])
			s.report()
			if s.ctx.Err() != nil {
				return false
			}
		}
	}
	more := false
	for i := range s.lanes {
		l := &s.lanes[i]
		l.base += len(l.cur)
		l.cur, l.new = l.new, l.cur[:0]
		more = more || len(l.cur) > 0
	}
	return more
}

// each runs f for every worker at once.
func (s *search) each(f func(i int, w *worker)) {
	var wg sync.WaitGroup
	for i, w := range s.workers[1:] {
		wg.Go(func() { f(i+1, w) })
	}
	f(0, s.workers[0])
	wg.Wait()
}

func (s *search) expand(from, at, n int, made []candidates) {
	var next atomic.Int64
	l := &s.lanes[from]
	s.each(func(_ int, w *worker) {
		for {
			k := int(next.Add(1)) - 1
			if k >= len(made) {
				return
			}
			m := &made[k]
			m.found.set = 0
			for i := range m.of {
				m.of[i] = m.of[i][:0]
			}
			for i := at + k*share; i < min(at+(k+1)*share, at+n) && (s.survey || m.found.set == 0); i++ {
				w.expand(&l.cur[i], stateNumber(from, l.base+i), s.survey, m)
			}
		}
	})
}

// file puts away what is new, every worker its own lanes.
func (s *search) file(made []candidates) {
	s.each(func(i int, w *worker) {
		for lane := i; lane < lanes; lane += len(s.workers) {
			l := &s.lanes[lane]
			for k := range made {
				w.file(l, made[k].of[lane])
			}
		}
	})
	s.states = 0
	s.transitions, s.ends = 0, 0
	for i := range s.lanes {
		s.states += s.lanes[i].seen.n
	}
	for _, w := range s.workers {
		s.transitions += w.transitions
		s.ends += w.ends
	}
}

// file adds the candidates that nobody has seen to the next level.
func (w *worker) file(l *lane, all []candidate) {
	const ahead = 16
	for i := range all {
		if i%ahead == 0 {
			for j := i; j < min(i+ahead, len(all)); j++ {
				w.sink += l.seen.touch(all[j].state.digest)
			}
		}
		c := &all[i]
		if !l.seen.add(c.state.digest) {
			continue
		}
		l.new = append(l.new, c.state)
		l.parents = append(l.parents, c.from)
		l.vias = append(l.vias, c.via)
	}
}

// expand takes every choice that there is in a state.
func (w *worker) expand(s *state, id uint32, survey bool, out *candidates) {
	bound := w.choose(s, id, false, out)
	if bound || out.found.set != 0 && !survey {
		return
	}
	var all rest
	for slot, part := range s.parts {
		all |= w.memo.store.info(slotOf(slot), part).rest
	}
	if m := w.memo.store.model; all != 0 {
		out.found.add(m.checked.of(m.atLull(all, s.budget)), func(Invariant) finding { return finding{id, endVia} })
	}
	if bound = w.choose(s, id, true, out); !bound {
		w.ends++
	}
}

// choose takes the choices that need a lull, or those that do not. It reports
// whether any of them was bound to happen.
func (w *worker) choose(s *state, id uint32, lull bool, out *candidates) (bound bool) {
	for slot, part := range s.parts {
		all := w.memo.store.info(slotOf(slot), part).choices
		for i := range all {
			c := &all[i]
			if c.lull != lull || !s.budget.allows(c.cost) {
				continue
			}
			bound = bound || c.cost == 0
			via := uint16(slot<<viaBits | i)
			next := *s
			if broken := w.take(&next, slotOf(slot), c); broken != 0 {
				out.found.add(broken, func(Invariant) finding { return finding{id, via} })
				if broken&(1<<Books) != 0 {
					continue // the machine has stopped
				}
			}
			w.transitions++
			lane := laneOf(next.digest)
			out.of[lane] = append(out.of[lane], candidate{state: next, from: id, via: via})
		}
	}
	return bound
}

// viaBits leaves room for the choices of one part.
const viaBits = 11

// take carries a choice out with all that follows from it, and brings the
// fingerprint up to date. It returns what that breaks.
func (w *worker) take(s *state, at slot, c *choice) (broken set) {
	if c.cost != 0 {
		before := s.budget.digest()
		s.budget -= c.cost
		s.digest = s.digest.plus(s.budget.digest().minus(before))
	}
	w.queue = append(w.queue[:0], effect{at, c.op})
	for i := 0; i < len(w.queue); i++ {
		e := w.queue[i]
		r := w.memo.do(e.slot, s.parts[e.slot], e.op)
		broken |= w.memo.breaks(e.slot, r)
		s.parts[e.slot] = r.next
		s.digest = s.digest.plus(r.change)
		w.queue = append(w.queue, w.memo.after(r)...)
	}
	return broken
}

// path returns the choices that lead to a state, first to last.
func (s *search) path(id uint32) []uint16 {
	var back []uint16
	for {
		l, i := &s.lanes[id%lanes], id/lanes
		if id == l.parents[i] {
			break
		}
		back = append(back, l.vias[i])
		id = l.parents[i]
	}
	for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	return back
}

// doubt is an upper bound of the chance that two of n states have the same
// fingerprint: n^2 / 2^129, as a power of two.
func doubt(n int) int { return 2*bits.Len(uint(n)) - 129 }

func (s *search) report() {
	if s.progress != nil {
		s.progress(Progress{States: s.states, Transitions: s.transitions, Depth: s.depth, Elapsed: s.now().Sub(s.began)})
	}
}
