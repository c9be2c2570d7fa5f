package explore

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"sync/atomic"
)

// A store keeps every value that a part of the world ever has and every
// operation on parts, once each, and calls them by number. Parts are few and
// states many: a state is a handful of numbers, and what an operation makes of a
// part is found out once. Workers share it.
type store struct {
	model  *Model
	tables [parts]table
	opIDs  sync.Mutex
	byText map[string]opID
	ops    chunks[op]
}

type (
	partID uint32
	opID   uint32
)

// table holds the values of one part.
type table struct {
	mu       sync.Mutex
	byDigest map[digest]partID
	infos    chunks[info]
}

// info is a value of a part with what is asked about it in every state.
type info struct {
	part    part
	digest  digest
	choices []choice
	bad     set // what it breaks by itself
	rest    rest
}

// choice is what may happen next to a part by itself.
type choice struct {
	op   opID
	cost budget
	lull bool
}

func newStore(m *Model) *store {
	s := &store{model: m, byText: map[string]opID{}}
	for i := range s.tables {
		s.tables[i].byDigest = map[digest]partID{}
	}
	return s
}

// part interns a value.
func (s *store) part(slot slot, p part) partID {
	h := digestOf(slot, p)
	t := &s.tables[slot]
	t.mu.Lock()
	defer t.mu.Unlock()
	if id, ok := t.byDigest[h]; ok {
		return id
	}
	id := partID(len(t.byDigest))
	in := info{part: p, digest: h, bad: s.model.checked.of(p.check(s.model)), rest: p.rest(s.model)}
	for _, c := range p.choices(s.model) {
		in.choices = append(in.choices, choice{op: s.op(c.op), cost: c.cost, lull: c.lull})
	}
	t.infos.set(uint32(id), in)
	t.byDigest[h] = id
	return id
}

func (s *store) info(slot slot, id partID) *info { return s.tables[slot].infos.at(uint32(id)) }

// op interns an operation.
func (s *store) op(o op) opID {
	text := string(o.append(nil))
	s.opIDs.Lock()
	defer s.opIDs.Unlock()
	if id, ok := s.byText[text]; ok {
		return id
	}
	id := opID(len(s.byText))
	s.ops.set(uint32(id), o)
	s.byText[text] = id
	return id
}

func (s *store) opOf(id opID) *op { return s.ops.at(uint32(id)) }

// size is how many values of parts there are.
func (s *store) size() int {
	n := 0
	for i := range s.tables {
		n += len(s.tables[i].byDigest)
	}
	return n
}

// digestOf hashes the canonical bytes of a part's value. The fingerprint of a
// state is the sum of those of its parts, so that it is cheap to bring up to
// date; sums of 128-bit hashes of different states collide as seldom as the
// hashes do.
func digestOf(slot slot, p part) digest {
	sum := sha256.Sum256(p.append([]byte{byte(slot)}))
	return digest{binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])}
}

// chunks is a slice that only grows and whose elements stay where they are, so
// that they can be read while it grows.
type chunks[T any] struct {
	of [1 << 14]atomic.Pointer[[1 << chunkBits]T]
}

const chunkBits = 10

func (c *chunks[T]) at(i uint32) *T { return &c.of[i>>chunkBits].Load()[i&(1<<chunkBits-1)] }

// set stores the next element. Callers see to it that there is one at a time.
func (c *chunks[T]) set(i uint32, v T) {
	if c.of[i>>chunkBits].Load() == nil {
		c.of[i>>chunkBits].Store(new([1 << chunkBits]T))
	}
	*c.at(i) = v
}
