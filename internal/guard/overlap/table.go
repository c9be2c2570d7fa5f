package overlap

import "math/bits"

// again marks an entry that was met again since the hand last passed it.
const again Tenant = 1 << 31

// entry is a fingerprint with who has sent it and when it was met last, seconds.
type entry struct {
	print uint64
	owner Tenant
	seen  uint32
}

// table is a fixed number of fingerprints. New ones take the places of the
// oldest; those that were met again are passed over once.
type table struct {
	entries []entry
	places  []uint32 // of entries, plus 1, by their fingerprints; 0 for none; half of it is empty
	hand    int      // where the next new one goes
	keep    uint32   // seconds
}

func newTable(n int, keep uint32) table {
	return table{entries: make([]entry, n), places: make([]uint32, 2*n), keep: keep}
}

// home is where a fingerprint is looked for first.
func (t *table) home(print uint64) int {
	hi, _ := bits.Mul64(print, uint64(len(t.places)))
	return int(hi)
}

// find returns the entry of a fingerprint, nil for none, and where in places it
// stands, or would.
func (t *table) find(print uint64) (*entry, int) {
	for at := t.home(print); ; {
		p := t.places[at]
		if p == 0 {
			return nil, at
		}
		if e := &t.entries[p-1]; e.print == print {
			return e, at
		}
		if at++; at == len(t.places) {
			at = 0
		}
	}
}

// send takes a fingerprint of what a tenant sends.
func (t *table) send(print uint64, who Tenant, now uint32) {
	e, _ := t.find(print)
	switch {
	case e == nil:
		t.add(entry{print, who, now})
		return
	case t.old(e, now):
		e.owner = who
	case e.owner&^again >= firstTenant && e.owner&^again != who:
		e.owner = several
	}
	e.owner |= again
	e.seen = max(e.seen, now)
}

// say takes a fingerprint of what a model says to a tenant, and returns the
// other tenant who alone has sent it; nobody if there is none.
func (t *table) say(print uint64, to Tenant, now uint32) Tenant {
	e, _ := t.find(print)
	switch {
	case e == nil:
		t.add(entry{print, said, now})
		return nobody
	case t.old(e, now):
		e.owner, e.seen = said, now
		return nobody
	}
	switch owner := e.owner &^ again; owner {
	case several, said, to:
		e.owner |= again
		e.seen = max(e.seen, now)
		return nobody
	default:
		return owner
	}
}

// old reports whether an entry is past its time: it counts as not there.
func (t *table) old(e *entry, now uint32) bool { return now > e.seen && now-e.seen > t.keep }

// passedOver bounds how many entries one new one passes over.
const passedOver = 64

// add puts an entry in the place of an old one.
func (t *table) add(e entry) {
	for range passedOver {
		at := &t.entries[t.hand]
		if at.owner&again == 0 || t.old(at, e.seen) {
			break
		}
		at.owner &^= again
		t.next()
	}
	if t.entries[t.hand].owner != nobody {
		t.remove(t.entries[t.hand].print)
	}
	t.entries[t.hand] = e
	_, at := t.find(e.print)
	t.places[at] = uint32(t.hand + 1)
	t.next()
}

func (t *table) next() {
	if t.hand++; t.hand == len(t.entries) {
		t.hand = 0
	}
}

// remove takes a fingerprint out of places, and moves up those behind it that
// stand further from their homes than they need to.
func (t *table) remove(print uint64) {
	e, hole := t.find(print)
	if e == nil {
		panic("kvcanary: internal error: a fingerprint of the table cannot be found in it")
	}
	n := len(t.places)
	for at := (hole + 1) % n; t.places[at] != 0; at = (at + 1) % n {
		home := t.home(t.entries[t.places[at]-1].print)
		if (at-home+n)%n >= (at-hole+n)%n {
			t.places[hole] = t.places[at]
			hole = at
		}
	}
	t.places[hole] = 0
}
