package node

import (
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

func TestOverdue(t *testing.T) {
	var o overdue
	start := time.Unix(1000, 0)
	if o.wait(start) >= 0 || o.take(start) != nil {
		t.Errorf("nothing was asked, and %+v is waited for", o)
	}
	ask := func(room handoff.Room, gen uint64, after time.Duration) {
		o.asked(handoff.Event{Kind: handoff.Quiesce, Room: room, Gen: gen}, start.Add(after))
	}
	ask(1, 11, 0)
	ask(2, 12, time.Millisecond)
	ask(3, 13, 2*time.Millisecond)
	o.gone(handoff.Event{Room: 2, Gen: 12})
	o.gone(handoff.Event{Room: 3, Gen: 12}) // of another lease
	if got := o.wait(start.Add(time.Millisecond)); got != drainLimit-time.Millisecond {
		t.Errorf("waits %v", got)
	}
	if got := o.take(start.Add(drainLimit - 1)); got != nil {
		t.Errorf("too early: %v", got)
	}
	got := o.take(start.Add(2 * drainLimit))
	if len(got) != 2 || got[0].Room != 1 || got[0].Gen != 11 || got[1].Room != 3 || got[1].Kind != handoff.Gone {
		t.Errorf("overdue are %v", got)
	}
	if o.wait(start) >= 0 {
		t.Errorf("%+v is left", o)
	}
}
