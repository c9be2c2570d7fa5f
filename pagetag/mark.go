package pagetag

import "encoding/binary"

// MarkSize is the length of an encoded mark in bytes.
const MarkSize = 16

// Mark is a tag cut down to what a check at every step compares: two words a
// page, which a pool keeps beside its pages. The zero Mark is absent.
//
// A writer that others read from at the same time stores zero to Place, writes
// the page, stores Owner, and then Place, each so that the ones before are seen
// first.
type Mark struct {
	// Owner is the Owner of the tag folded to one word. Two owners that differ
	// in one field never share a word; others do with a chance of 2^-64.
	Owner uint64
	// Place holds, from the low bits: index (32), tokens (24), complete (4),
	// version (4).
	Place uint64
}

const (
	lengthShift   = 32
	completeShift = 56
	versionShift  = 60
	whole         = uint64(Version)<<versionShift | uint64(flagComplete)<<completeShift
)

// Mark cuts t down. An absent tag, or one that no reader would accept for its
// strength or length, gives an absent mark.
func (t *Tag) Mark() Mark {
	if !known(t.Strength) || t.Length > MaxLength {
		return Mark{}
	}
	place := uint64(t.Index) | uint64(t.Length)<<lengthShift | uint64(Version)<<versionShift
	if t.Complete {
		place |= uint64(flagComplete) << completeShift
	}
	return Mark{Owner: t.Owner.word(), Place: place}
}

// word folds an owner so that a change of any one field changes the word.
func (o *Owner) word() uint64 {
	h := fold(markSeed, o.Epoch)
	h = fold(h, o.Tenant)
	h = fold(h, o.Request)
	h = fold(h, o.Generation)
	return fold(h, uint64(o.Space))
}

// Bytes encodes m.
func (m Mark) Bytes() (b [MarkSize]byte) {
	binary.LittleEndian.PutUint64(b[:], m.Owner)
	binary.LittleEndian.PutUint64(b[8:], m.Place)
	return b
}

// ParseMark decodes a mark of any value: a mark is judged when it is checked.
// It refuses only bytes of another length, as [Malformed].
func ParseMark(b []byte) (Mark, error) {
	if len(b) != MarkSize {
		return Mark{}, &Refusal{Class: Malformed}
	}
	return Mark{Owner: binary.LittleEndian.Uint64(b), Place: binary.LittleEndian.Uint64(b[8:])}, nil
}

// CheckMarks is [CheckTable] for marks, cheap enough for every step of every
// request: no allocation, and no branch that depends on a page. A page of
// another owner is refused as [WrongOwner], whichever field differs.
func CheckMarks(marks []Mark, e Expected) error {
	if err := e.covers(len(marks)); err != nil {
		return err
	}
	owner, last := e.Owner.word(), len(marks)-1
	want := uint64(e.First) | uint64(e.PageTokens)<<lengthShift | whole
	var differs uint64
	for i := range marks[:last] {
		differs |= (marks[i].Owner ^ owner) | (marks[i].Place ^ want)
		want++ // the index is in the low bits and does not overflow: covers has seen to it
	}
	differs |= (marks[last].Owner ^ owner) | (marks[last].Place ^ e.Place(last).full())
	if differs == 0 {
		return nil
	}
	return explain(marks, owner, e)
}

// full is the second word of the mark of a complete page at this place.
func (p Place) full() uint64 { return uint64(p.Index) | uint64(p.Length)<<lengthShift | whole }

// explain finds the first page that CheckMarks has refused, and why.
func explain(marks []Mark, owner uint64, e Expected) error {
	for i, m := range marks {
		if err := m.owns(owner, e.Place(i)); err != nil {
			return onPage(err, i)
		}
	}
	panic("kvcanary: internal error: marks are refused and each of them is good")
}

func (m Mark) owns(owner uint64, at Place) error {
	version, complete := m.Place>>versionShift, m.Place>>completeShift&0xf
	switch {
	case version == 0:
		return &Refusal{Class: Absent}
	case version != Version:
		return &Refusal{Class: BadVersion, Got: version, Want: Version}
	case complete > flagComplete:
		return &Refusal{Class: Malformed}
	case m.Owner != owner:
		return &Refusal{Class: WrongOwner}
	case uint32(m.Place) != at.Index:
		return &Refusal{Class: WrongIndex, Got: uint64(uint32(m.Place)), Want: uint64(at.Index)}
	}
	return refuseLength(complete == flagComplete, uint32(m.Place>>lengthShift)&MaxLength, at.Length)
}
