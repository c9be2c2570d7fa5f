package node

import (
	"testing"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// A record that lands when its request has gone is the next one's of the slot,
// whether that waits there already or comes later; unless the slot is cleared,
// for one that comes later, or the record says whose it is.
func TestLateRecords(t *testing.T) {
	meta := func(room handoff.Room, slot int) *Frame {
		return &Frame{Event: handoff.Event{Kind: handoff.Meta, Room: room, Index: slot}, Data: []byte{byte(room)}}
	}
	for _, c := range []struct {
		name          string
		clean, named  bool
		before, after bool // the next one gets the record that lands before it comes, and after
	}{
		{"no defence", false, false, true, true},
		{"cleared", true, false, false, true},
		{"named", false, true, false, false},
	} {
		for _, early := range []bool{true, false} {
			r := &records{clean: c.clean, named: c.named}
			slot := r.give(1)
			r.end(1)
			late := meta(1, slot)
			taken := false
			if early {
				taken = r.land(late)
			}
			if again := r.give(2); again != slot {
				t.Fatalf("%s: slot %d in place of %d, which was freed last", c.name, again, slot)
			}
			want := c.before
			if early {
				taken = taken || len(r.found) == 1 && r.found[0].Event.Room == 2 && r.found[0].Data[0] == 1
			} else {
				want = c.after
				taken = r.land(late) && late.Event.Room == 2
			}
			if taken != want {
				t.Errorf("%s, a record that lands before the next one comes %v: taken %v, want %v", c.name, early, taken, want)
			}
			if own := meta(2, slot); !r.land(own) || own.Event.Room != 2 || own.Event.Index != 0 {
				t.Errorf("%s: its own record is not the room's: %+v", c.name, own.Event)
			}
		}
	}
}

// Slots of rooms that live are apart, whatever comes and goes.
func TestRecordSlotsAreApart(t *testing.T) {
	r := &records{}
	a, b := r.give(1), r.give(2)
	r.end(1)
	r.end(7) // has none
	c, d := r.give(3), r.give(4)
	if a == b || c != a || d == b || d == c {
		t.Errorf("slots %d, %d, then %d and %d", a, b, c, d)
	}
	if f := (&Frame{Event: handoff.Event{Room: 9, Index: 99}}); r.land(f) {
		t.Error("a record for a slot that is not there is taken")
	}
}
