package explore

// memo remembers for one worker what operations make of parts.
type memo struct {
	store   *store
	entries [parts]results
	effects []effect // of all entries
	broken  [parts]map[uint64]set
	misses  int
}

// result is what an operation makes of a value of a part: 32 bytes, of which two
// fit a cache line.
type result struct {
	key    uint64 // value and operation, plus one
	change digest // of the fingerprint
	next   partID
	after  span
}

// span is a run of effects: where it begins, how long it is, and whether there
// is something that the operation breaks.
type span uint32

const (
	spanBits = 5 // for the length
	badBit   = 1 << spanBits
	spanMost = badBit - 1
)

func (m *memo) after(r *result) []effect {
	first := r.after >> (spanBits + 1)
	return m.effects[first : first+r.after&spanMost]
}

// breaks is what an operation breaks.
func (m *memo) breaks(slot slot, r *result) set {
	if r.after&badBit == 0 {
		return 0
	}
	return m.broken[slot][r.key]
}

func newMemo(s *store) *memo {
	m := &memo{store: s}
	for i := range m.broken {
		m.broken[i] = map[uint64]set{}
	}
	return m
}

// do returns what op makes of the part, from memory if it can.
func (m *memo) do(slot slot, id partID, op opID) *result {
	key := (uint64(id)<<32 | uint64(op)) + 1
	t := &m.entries[slot]
	r := t.slot(key)
	if r.key == key {
		return r
	}
	return t.put(m.make(slot, id, op, key))
}

func (m *memo) make(slot slot, id partID, op opID, key uint64) result {
	m.misses++
	before := m.store.info(slot, id)
	out := before.part.do(m.store.model, *m.store.opOf(op))
	next := m.store.part(slot, out.next)
	after := m.store.info(slot, next)
	r := result{key: key, next: next, change: after.digest.minus(before.digest)}
	if len(out.effects) > spanMost || len(m.effects) >= 1<<(32-spanBits-1) {
		panic("kvcanary: internal error: explorer has too many effects to remember")
	}
	r.after = span(len(m.effects)<<(spanBits+1) | len(out.effects))
	if bad := after.bad | m.store.model.checked.of(out.broken); bad != 0 {
		r.after |= badBit
		m.broken[slot][key] = bad
	}
	for _, e := range out.effects {
		m.effects = append(m.effects, effect{slot: e.slot, op: m.store.op(e.op)})
	}
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

// slot is where key is or would be; it is good until the next put. Results are
// one worker's own: the race detector would only cost time here.
//
//go:norace
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
