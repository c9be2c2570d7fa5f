package node

import "github.com/kvcanary/kvcanary/internal/lab/model"

// slots hold what goes with an answer beside its pages: the short state of the
// model. A slot that was freed last is the first to be used again.
type slots struct {
	free  []*slot
	clean bool // a slot is cleared when it is given out; else the next one when there is time
}

type slot struct{ state model.State }

func (s *slots) take() *slot {
	if n := len(s.free); n > 0 {
		got := s.free[n-1]
		s.free = s.free[:n-1]
		if s.clean {
			got.state.Reset()
		}
		return got
	}
	return new(slot)
}

// give makes a slot free; nil is none.
func (s *slots) give(one *slot) {
	if one != nil {
		s.free = append(s.free, one)
	}
}

// tidy clears the slot that is next, when nothing else is to be done.
func (s *slots) tidy() {
	if n := len(s.free); n > 0 {
		s.free[n-1].state.Reset()
	}
}
