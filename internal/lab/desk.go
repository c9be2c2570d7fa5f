package lab

import "github.com/kvcanary/kvcanary/internal/lab/handoff"

// desk is where answers find those who wait for them: by their room, or with
// fault id_reuse:coarse_clock by an id that the time has given them.
type desk struct {
	clock func() handoff.Room // id of a request that comes now; nil where the room is the id

	calls map[handoff.Room]*call        // by id
	ids   map[handoff.Room]handoff.Room // by room, where the clock gives them
	lost  map[handoff.Room]*call        // by room: whose id is another's by now
}

func newDesk(clock func() handoff.Room) desk {
	return desk{
		clock: clock, calls: map[handoff.Room]*call{}, ids: map[handoff.Room]handoff.Room{}, lost: map[handoff.Room]*call{},
	}
}

// wait has a call wait for its room's answer. Who waits under the same id waits
// in vain.
func (d *desk) wait(c *call) {
	id := c.room
	if d.clock != nil {
		id = d.clock()
		d.ids[c.room] = id
		if before := d.calls[id]; before != nil {
			d.lost[before.room] = before
		}
	}
	d.calls[id] = c
}

// of is who waits for what comes from a room; nil if nobody does.
func (d *desk) of(room handoff.Room) *call { return d.calls[d.id(room)] }

// waits says that a call has not ended.
func (d *desk) waits(c *call) bool { return d.of(c.room) == c || d.lost[c.room] == c }

// leave has a call wait no more.
func (d *desk) leave(c *call) {
	if d.of(c.room) == c {
		delete(d.calls, d.id(c.room))
	}
	delete(d.lost, c.room)
}

// end notes that nothing more comes from a room: who got its last event waits
// no more, and who should have got it hears that it is lost.
func (d *desk) end(room handoff.Room) {
	delete(d.calls, d.id(room))
	delete(d.ids, room)
	if c := d.lost[room]; c != nil {
		c.put(Event{Error: answerLost})
		delete(d.lost, room)
	}
}

func (d *desk) id(room handoff.Room) handoff.Room {
	if d.clock == nil {
		return room
	}
	return d.ids[room]
}

var answerLost = &Error{Status: 500, Type: "InternalServerError", Message: "The answer of this request did not arrive."}
