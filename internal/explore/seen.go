package explore

// digest is the fingerprint of a state: 128 bits.
type digest [2]uint64

func (p digest) plus(q digest) digest  { return digest{p[0] + q[0], p[1] + q[1]} }
func (p digest) minus(q digest) digest { return digest{p[0] - q[0], p[1] - q[1]} }

// seen is a set of fingerprints in an open-addressing table. The zero
// fingerprint marks an empty slot; it is one of 2^128 and never occurs.
type seen struct {
	slots []digest // a power of two
	n     int
}

const seenLeast = 1 << 12

func newSeen() *seen { return &seen{slots: make([]digest, seenLeast)} }

// add reports whether p was not in the set. A set is used by one goroutine at a
// time; the race detector, which watches whoever passes it on, would only cost
// time here.
//
//go:norace
func (s *seen) add(p digest) bool {
	if s.n*8 >= len(s.slots)*5 {
		s.grow()
	}
	mask := uint64(len(s.slots) - 1)
	for i := p[0] & mask; ; i = (i + 1) & mask {
		switch s.slots[i] {
		case digest{}:
			s.slots[i] = p
			s.n++
			return true
		case p:
			return false
		}
	}
}

// touch reads the slot where p would be. Asking for many slots before looking
// at any of them lets their cache misses overlap.
func (s *seen) touch(p digest) uint64 { return s.slots[p[0]&uint64(len(s.slots)-1)][1] }

func (s *seen) grow() {
	old := s.slots
	s.slots, s.n = make([]digest, 2*len(old)), 0
	for _, p := range old {
		if p != (digest{}) {
			s.add(p)
		}
	}
}
