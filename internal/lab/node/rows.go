package node

import (
	"slices"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// rows are the places of a batch that is computed again and again, a token of
// every answer at a time. Two parties keep them: the computation, and whoever
// gives its results back. A new answer takes the row behind the last one; the
// row of one that has ended is filled with the last row, so that no more than
// one moves.
type rows struct {
	computed []handoff.Room // by row, as it is computed
	given    []handoff.Room // by row, as results are given back
	skewed   bool           // with fault RowSkew: given closes up instead
}

// result is what a row has yielded, with whose it is.
type result struct {
	room  handoff.Room
	event handoff.Event
}

// update has the rows be those of the answers under way.
func (r *rows) update(under []handoff.Event) {
	live := map[handoff.Room]bool{}
	for _, s := range under {
		live[s.Room] = true
	}
	ended := func(room handoff.Room) bool { return !live[room] }
	r.computed = compact(r.computed, ended)
	if r.skewed {
		r.given = slices.DeleteFunc(r.given, ended)
	} else {
		r.given = compact(r.given, ended)
	}
	for _, s := range under {
		if !slices.Contains(r.computed, s.Room) {
			r.computed = append(r.computed, s.Room)
			r.given = append(r.given, s.Room)
		}
	}
}

// compact takes out the rows that have ended, from the first on, and puts the last
// row in the place of each.
func compact(all []handoff.Room, ended func(handoff.Room) bool) []handoff.Room {
	for i := 0; i < len(all); {
		if !ended(all[i]) {
			i++
			continue
		}
		last := len(all) - 1
		all[i] = all[last]
		all = all[:last]
	}
	return all
}

// back is a row's result as it is given back: an event for the room that has
// the row. With its id compared, a result that is another's is not given.
func (d *decode) back(row int, r result) handoff.Event {
	room := d.rows.given[row]
	if r.room != room && d.also.Any(RowIDs) {
		return handoff.Event{Kind: handoff.Mismatch, Room: room}
	}
	e := r.event
	e.Room = room
	return e
}
