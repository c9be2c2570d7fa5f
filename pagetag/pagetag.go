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

import "math"

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
	if *t == (Tag{Strength: t.Strength, Complete: true, Place: at, Owner: o, Digest: t.Digest}) && known(t.Strength) {
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

// Expected is the table that a reader is about to read: all its pages are full
// but the last, which holds what is left.
type Expected struct {
	Owner Owner
	// First is the index of the first page: 0, unless the pages before belong to
	// another owner, such as an entry of a prefix cache, and are checked apart.
	First      uint32
	Tokens     uint64 // that will be read; at least 1
	PageTokens uint32 // tokens in a full page, 1 to MaxLength
}

// Pages is the number of pages that the table has to have. The error is a
// [*Refusal] with class [BadExpectation]: a reader that expects nothing would
// accept everything.
func (e Expected) Pages() (int, error) {
	if e.Tokens == 0 || e.PageTokens == 0 || e.PageTokens > MaxLength {
		return 0, &Refusal{Class: BadExpectation}
	}
	pages := (e.Tokens-1)/uint64(e.PageTokens) + 1
	if pages > 1<<32-uint64(e.First) || pages > math.MaxInt {
		return 0, &Refusal{Class: BadExpectation}
	}
	return int(pages), nil
}

// Place is where page i of the table belongs, i being less than Pages.
func (e Expected) Place(i int) Place {
	left := e.Tokens - uint64(i)*uint64(e.PageTokens)
	return Place{Index: e.First + uint32(i), Length: uint32(min(left, uint64(e.PageTokens)))}
}

// covers refuses a table of n pages that is shorter or longer than what is
// expected: a sender that stopped early has no bad page, it has too few.
func (e Expected) covers(n int) error {
	pages, err := e.Pages()
	switch {
	case err != nil:
		return err
	case n < pages:
		return &Refusal{Class: ShortTable, Got: uint64(n), Want: uint64(pages)}
	case n > pages:
		return &Refusal{Class: LongTable, Got: uint64(n), Want: uint64(pages)}
	}
	return nil
}

// CheckTable tells whether a whole table may be read: each page is there, its
// owner's, in its place and complete, and none is missing or too many. The
// error is a [*Refusal] of the first page that is not.
func CheckTable(tags []Tag, e Expected) error {
	if err := e.covers(len(tags)); err != nil {
		return err
	}
	for i := range tags {
		if err := tags[i].Owns(e.Owner, e.Place(i)); err != nil {
			return onPage(err, i)
		}
	}
	return nil
}
