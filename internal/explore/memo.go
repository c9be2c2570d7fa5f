package explore

// memo remembers for one worker what operations make of parts.
type memo struct {
	store   *store
	entries [parts]results
	effects []effect // of all entries
	misses  int
}

// result is what an operation makes of a value of a part.
type result struct {
	key    uint64 // value and operation, plus one
	next   partID
	first  uint32 // effects
	n      uint16
	bad    set    // what it breaks
	change digest // of the fingerprint
}

func newMemo(s *store) *memo { return &memo{store: s} }

// do returns what op makes of the part, from memory if it can.
func (m *memo) do(slot slot, id partID, op opID) *result {
	key := (uint64(id)<<32 | uint64(op)) + 1
	t := &m.entries[slot]
	r := t.slot(key)
	if r.key == key {
		return r
	}
	made := m.make(slot, id, op)
	made.key = key
	return t.put(made)
}

func (m *memo) make(slot slot, id partID, op opID) result {
	m.misses++
	before := m.store.info(slot, id)
	out := before.part.do(m.store.model, *m.store.opOf(op))
	next := m.store.part(slot, out.next)
	after := m.store.info(slot, next)
	r := result{next: next, first: uint32(len(m.effects)), change: after.digest.minus(before.digest)}
	r.bad = after.bad | m.store.model.checked.of(out.broken)
	for _, e := range out.effects {
		m.effects = append(m.effects, effect{slot: e.slot, op: m.store.op(e.op)})
	}
	r.n = uint16(len(out.effects))
	return r
}

// effect is an operation that follows from another one.
type effect struct {
	slot slot
	op   opID
}

// results is an open-addressing table of results.
type results struct {
	slots []result // a power of two
	shift int      // 64 less its logarithm
	n     int
}

// slot is where key is or would be; it is good until the next put.
func (t *results) slot(key uint64) *result {
	if len(t.slots) == 0 {
		t.slots, t.shift = make([]result, 1<<8), 64-8
	}
	mask := uint64(len(t.slots) - 1)
	for i := key * 0x9e3779b97f4a7c15 >> t.shift; ; i = (i + 1) & mask {
		if k := t.slots[i].key; k == key || k == 0 {
			return &t.slots[i]
		}
	}
}

func (t *results) put(r result) *result {
	if 2*t.n >= len(t.slots) {
		old := t.slots
		t.slots, t.shift = make([]result, 2*len(old)), t.shift-1
		for _, o := range old {
			if o.key != 0 {
				*t.slot(o.key) = o
			}
		}
	}
	t.n++
	at := t.slot(r.key)
	*at = r
	return at
}
