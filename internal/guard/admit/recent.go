package admit

import (
	"container/list"
	"time"
)

// recent keeps the tallies that were asked for last. It is not safe for
// concurrent use.
type recent struct {
	most  int
	order *list.List // of entries, the last asked for in front
	at    map[digest]*list.Element
}

type entry struct {
	key   digest
	tally Tally
	at    time.Time
}

func newRecent(most int) *recent {
	return &recent{most: max(0, most), order: list.New(), at: map[digest]*list.Element{}}
}

// get returns a tally that is not older than since.
func (r *recent) get(key digest, since time.Time) (Tally, bool) {
	e, ok := r.at[key]
	if !ok || e.Value.(entry).at.Before(since) {
		return Tally{}, false
	}
	r.order.MoveToFront(e)
	return e.Value.(entry).tally, true
}

func (r *recent) put(key digest, t Tally, now time.Time) {
	if e, ok := r.at[key]; ok {
		e.Value = entry{key, t, now}
		r.order.MoveToFront(e)
		return
	}
	r.at[key] = r.order.PushFront(entry{key, t, now})
	for r.order.Len() > r.most {
		last := r.order.Back()
		delete(r.at, last.Value.(entry).key)
		r.order.Remove(last)
	}
}
