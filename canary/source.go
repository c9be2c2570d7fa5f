package canary

// source says where the bytes of a block come from.
type source struct {
	base  int64   // where the block begins in its text
	spans []span  // if it was decoded: where each byte comes from in the stream
	sigs  []int64 // if the view counts: what it alone could read before each byte, times two, plus one if the byte is such
}

// span is a range of the stream.
type span struct{ from, to int64 }

// place is a position in the scanned stream. Sig counts, in a decoded view,
// what only that view could read up to there.
type place struct{ off, sig int64 }

// startOf is the place where byte i of the block begins.
func (s *source) startOf(i int) place {
	if s.spans != nil {
		return s.decodedStart(i)
	}
	return place{off: s.base + int64(i)}
}

// endOf is the place where byte i of the block ends.
func (s *source) endOf(i int) place {
	if s.spans != nil {
		return s.decodedEnd(i)
	}
	return place{off: s.base + int64(i) + 1}
}

func (s *source) decodedStart(i int) place {
	p := place{off: s.spans[i].from}
	if s.sigs != nil {
		p.sig = s.sigs[i] >> 1
	}
	return p
}

func (s *source) decodedEnd(i int) place {
	p := place{off: s.spans[i].to}
	if s.sigs != nil {
		p.sig = s.sigs[i]>>1 + s.sigs[i]&1
	}
	return p
}
