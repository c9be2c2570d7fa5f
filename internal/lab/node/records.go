package node

import (
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// With fault MetadataSlot the metadata of a transfer is not a message in the
// order of the link that names its room. It is a record that prefill writes
// into a numbered slot of decode's, one-sided as pages are written where writes
// are one-sided: it takes its time, nothing calls it back, and all that says
// whose it is, is the number.

// records are the slots on decode's side. The one that was freed last is the
// first to be used again.
type records struct {
	slots []recordSlot
	free  []int
	found []*Frame // records that were in a slot when it was given out
	clean bool     // a slot is cleared when it is given out
	named bool     // a record is taken only by the room that it names
}

type recordSlot struct {
	room handoff.Room // who waits for a record here; 0 is nobody
	left *Frame       // a record that came when nobody did
}

// give has a room wait at a slot, whose number it returns.
func (r *records) give(room handoff.Room) int {
	if len(r.free) == 0 {
		r.free = append(r.free, len(r.slots))
		r.slots = append(r.slots, recordSlot{})
	}
	n := r.free[len(r.free)-1]
	r.free = r.free[:len(r.free)-1]
	s := &r.slots[n]
	s.room = room
	if left := s.left; left != nil {
		s.left = nil
		if !r.clean && r.fits(left, room) {
			left.Event.Room = room
			r.found = append(r.found, left)
		}
	}
	return n
}

// end frees the slot of a room, if it has one.
func (r *records) end(room handoff.Room) {
	for n := range r.slots {
		if r.slots[n].room == room {
			r.slots[n].room = 0
			r.free = append(r.free, n)
			return
		}
	}
}

// land puts a record into the slot that it is for. It reports whether somebody
// takes it from there, to whom it is then addressed.
func (r *records) land(f *Frame) bool {
	n := f.Event.Index
	f.Event.Index = 0
	if n >= len(r.slots) {
		return false
	}
	s := &r.slots[n]
	switch {
	case s.room == 0:
		kept := *f
		kept.Data = append([]byte(nil), f.Data...)
		s.left = &kept
		return false
	case !r.fits(f, s.room):
		return false
	}
	f.Event.Room = s.room
	return true
}

func (r *records) fits(f *Frame, room handoff.Room) bool { return !r.named || f.Event.Room == room }

// record takes what prefill has written into a slot. Prefill hears that its own
// transfer is over, whoever takes the record.
func (d *decode) record(f *Frame) {
	d.toPeer(&Frame{Event: handoff.Event{Kind: handoff.Ack, Room: f.Event.Room}})
	if d.records.land(f) {
		d.arrive(f)
	}
	d.lookInto()
}

// lookInto takes the records that were in slots already when they were given out.
func (d *decode) lookInto() {
	for d.records != nil && len(d.records.found) > 0 {
		f := d.records.found[0]
		d.records.found = d.records.found[1:]
		d.arrive(f)
	}
}

// late is a record whose write has begun.
type late struct {
	Frame
	end time.Time
}

// sendRecord begins to write a room's metadata into its slot.
func (p *prefill) sendRecord(f Frame, now time.Time) {
	f.Event.Index = p.prompts[f.Event.Room].record
	p.late = append(p.late, late{f, now.Add(p.lag())})
}

// landRecords ends the writes of records whose time has come.
func (p *prefill) landRecords(now time.Time) {
	kept := p.late[:0]
	for i := range p.late {
		if p.late[i].end.After(now) {
			kept = append(kept, p.late[i])
		} else {
			p.toPeer(&p.late[i].Frame)
		}
	}
	p.late = kept
}
