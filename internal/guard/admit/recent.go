package admit

import "container/list"

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
}

func newRecent(most int) *recent {
	return &recent{most: max(0, most), order: list.New(), at: map[digest]*list.Element{}}
}

func (r *recent) get(key digest) (Tally, bool) {
	e, ok := r.at[key]
	if !ok {
		return Tally{}, false
	}
	r.order.MoveToFront(e)
	return e.Value.(entry).tally, true
}

func (r *recent) put(key digest, t Tally) {
	if e, ok := r.at[key]; ok {
		e.Value = entry{key, t}
		r.order.MoveToFront(e)
		return
	}
	r.at[key] = r.order.PushFront(entry{key, t})
	for r.order.Len() > r.most {
		last := r.order.Back()
		delete(r.at, last.Value.(entry).key)
		r.order.Remove(last)
	}
}
