package node

import (
	"slices"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// drainLimit is how long pages drain at most with DrainDeadline: longer than most
// writes take, and shorter than some.
const drainLimit = 5 * time.Millisecond

// overdue are the pages that decode has asked prefill about, with the time at which
// it waits no longer, the earliest first.
type overdue []drain

type drain struct {
	room handoff.Room
	gen  uint64
	end  time.Time
}

// asked notes a Quiesce.
func (o *overdue) asked(e handoff.Event, now time.Time) {
	*o = append(*o, drain{e.Room, e.Gen, now.Add(drainLimit)})
}

// gone notes the answer to one.
func (o *overdue) gone(e handoff.Event) {
	*o = slices.DeleteFunc(*o, func(q drain) bool { return q.room == e.Room && q.gen == e.Gen })
}

// wait is how long it takes until the next one is overdue; never if negative.
func (o overdue) wait(now time.Time) time.Duration {
	if len(o) == 0 {
		return -1
	}
	return max(0, o[0].end.Sub(now))
}

// take takes those off that are overdue, as what prefill would have said of them.
func (o *overdue) take(now time.Time) (events []handoff.Event) {
	for len(*o) > 0 && !(*o)[0].end.After(now) {
		events = append(events, handoff.Event{Kind: handoff.Gone, Room: (*o)[0].room, Gen: (*o)[0].gen})
		*o = (*o)[1:]
	}
	return events
}
