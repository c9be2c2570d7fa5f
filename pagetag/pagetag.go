// Package pagetag makes and checks owner-bound tags for pages of KV cache.
//
// Whoever writes a page stamps it afterwards; whoever is about to read it
// checks that the page is its own, of this generation, at this index of its
// table, and complete. A page that was reserved and never written, that was
// written by somebody else, that stayed from an earlier request or that lies at
// the wrong place is refused instead of read.
//
// There are two checks, of two costs. Ownership compares a few bytes a page and
// is meant for every step: [CheckMarks], [CheckTable], [Tag.Owns]. Contents
// digests the page and is meant for once a handoff, or on demand:
// [Scheme.Verify], [Scheme.VerifyTable].
//
// No tag depends on where its page lies, so both ends of a handoff may hold the
// page at unrelated slots. The bytes of tags and marks are laid down in
// docs/pagetag.md, with test vectors in testdata/vectors.json and a C header in
// c/pagetag.h.
package pagetag

// Version is the version of the byte format that this package reads and writes.
const Version = 1

// MaxLength is the greatest number of tokens a page may hold.
const MaxLength = 1<<24 - 1

// Owner says to whom a page belongs. All values are legal, 0 too: whether there
// is a tag at all is told by its version, never by a value.
type Owner struct {
	// Epoch is one run of the engine: a random number that its nodes agree on
	// when they connect, so that tags of an earlier run are refused. Clients
	// must not learn it.
	Epoch uint64
	// Tenant and Request are the engine's own numbers. Names that a client
	// chooses are not unique and do not belong here.
	Tenant, Request uint64
	// Generation is a counter which the owner of the pool raises at each
	// reservation and never reuses within an epoch. It tells a retry from the
	// attempt before it.
	Generation uint64
	// Space tells apart pages of one request that have the same index: pools,
	// layers, ranks, recurrent state beside attention.
	Space uint32
}

// Place is where in its owner's table a page belongs, and how much of it counts.
type Place struct {
	Index  uint32 // of the page in the table of the request, from 0
	Length uint32 // valid tokens, at most MaxLength
}

// Strength is what the digest of a tag withstands.
type Strength uint8

// Strengths. The zero value is a tag that is not there.
const (
	// OwnerOnly has no digest: it can be owned and not verified.
	OwnerOnly Strength = 1
	// ByAccident finds every change of bytes that nobody made on purpose.
	ByAccident Strength = 2
	// ByAdversary finds changes made on purpose by somebody without the key.
	ByAdversary Strength = 3
)

// Tag is the tag of one page. The zero Tag is absent, and refused as such.
type Tag struct {
	Strength Strength
	// Complete is set by the writer once all bytes of the page have landed.
	Complete bool
	Place
	Owner
	// Digest binds the bytes of the page to all other fields. Every value is legal.
	Digest [DigestSize]byte
}

// Reserve is the tag an allocator gives to a page that is reserved and not yet
// written. Every check refuses it as [Incomplete].
func Reserve(o Owner, at Place) Tag {
	return Tag{Strength: OwnerOnly, Place: at, Owner: o}
}

// Claim is the tag a writer gives to a page whose bytes it does not digest: a
// page that grows by a token a step, say. It can be owned and not verified.
func Claim(o Owner, at Place) Tag {
	return Tag{Strength: OwnerOnly, Complete: true, Place: at, Owner: o}
}

// Owns tells whether a reader that expects the page of owner o at this place
// may read it; the error is a [*Refusal]. It does not look at contents: the
// digest of a tag that owns may be wrong.
func (t *Tag) Owns(o Owner, at Place) error {
	if t.Owner == o && t.Place == at && t.Complete && known(t.Strength) {
		return nil
	}
	return t.refuse(o, at)
}

func known(s Strength) bool { return s >= OwnerOnly && s <= ByAdversary }

// refuse names the first difference, the widest first: a page of another tenant
// is also one of another request.
func (t *Tag) refuse(o Owner, at Place) error {
	switch {
	case t.Strength == 0:
		return &Refusal{Class: Absent}
	case !known(t.Strength):
		return &Refusal{Class: Malformed}
	case t.Epoch != o.Epoch:
		return &Refusal{Class: WrongEpoch}
	case t.Tenant != o.Tenant:
		return &Refusal{Class: WrongTenant}
	case t.Request != o.Request:
		return &Refusal{Class: WrongOwner}
	case t.Generation != o.Generation:
		return &Refusal{Class: StaleGeneration, Got: t.Generation, Want: o.Generation}
	case t.Space != o.Space:
		return &Refusal{Class: WrongSpace, Got: uint64(t.Space), Want: uint64(o.Space)}
	case t.Index != at.Index:
		return &Refusal{Class: WrongIndex, Got: uint64(t.Index), Want: uint64(at.Index)}
	}
	return refuseLength(t.Complete, t.Length, at.Length)
}

func refuseLength(complete bool, got, want uint32) error {
	switch {
	case !complete:
		return &Refusal{Class: Incomplete, Got: 0, Want: uint64(want)}
	case got < want:
		return &Refusal{Class: Incomplete, Got: uint64(got), Want: uint64(want)}
	case got > want:
		return &Refusal{Class: LongPage, Got: uint64(got), Want: uint64(want)}
	}
	return nil
}
