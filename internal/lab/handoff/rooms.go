package handoff

import "slices"

// rooms keeps the state of the requests of a machine, sorted by room, so that
// equal machines are equal byte for byte.
type rooms[T any] []entry[T]

type entry[T any] struct {
	room Room
	val  T
}

func (rs rooms[T]) find(room Room) (int, bool) {
	return slices.BinarySearchFunc(rs, room, func(e entry[T], r Room) int {
		switch {
		case e.room < r:
			return -1
		case e.room > r:
			return 1
		}
		return 0
	})
}

// get returns the state of a room, good until the next put or del, or nil.
func (rs rooms[T]) get(room Room) *T {
	if i, ok := rs.find(room); ok {
		return &rs[i].val
	}
	return nil
}

// put adds a room that is not there yet, or returns the one that is.
func (rs *rooms[T]) put(room Room) *T {
	i, ok := rs.find(room)
	if !ok {
		*rs = slices.Insert(*rs, i, entry[T]{room: room})
	}
	return &(*rs)[i].val
}

func (rs *rooms[T]) del(room Room) {
	if i, ok := rs.find(room); ok {
		*rs = slices.Delete(*rs, i, i+1)
	}
}
