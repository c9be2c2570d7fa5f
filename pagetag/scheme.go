package pagetag

import (
	"crypto/subtle"
	"fmt"
)

// Scheme digests pages in one strength. It may be used by many goroutines at
// once. The zero Scheme stamps absent tags and refuses everything, so that a
// scheme that was forgotten is not a weak one.
type Scheme struct {
	strength Strength
	keyed    *keyed
}

// AgainstAccidents digests with XXH3-128: for lost, late, torn and misdirected
// writes among nodes that trust each other. It has no key, so whoever can write a
// page can stamp it.
func AgainstAccidents() Scheme { return Scheme{strength: ByAccident} }

// AgainstAdversaries digests with AES-GMAC and AES-CMAC under key: for pages
// that pass through hands that are not trusted.
func AgainstAdversaries(key Key) Scheme {
	return Scheme{strength: ByAdversary, keyed: newKeyed(key)}
}

// Strength is the one strength that the scheme stamps and accepts.
func (s Scheme) Strength() Strength { return s.strength }

// Format keeps the key out of logs, whatever the verb.
func (s Scheme) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "pagetag scheme of strength %d", uint8(s.strength))
}

// Stamp makes the tag of a page that is wholly written. The page is given as
// its bytes in an order that both ends agree on, either all of it or only the
// valid tokens; the number of bytes is bound too.
func (s Scheme) Stamp(o Owner, at Place, page []byte) Tag {
	if s.strength == 0 {
		return Tag{}
	}
	t := Tag{Strength: s.strength, Complete: true, Place: at, Owner: o}
	t.Digest = s.digest(&t, page)
	return t
}

// Verify tells whether the page is owner o's at this place, as [Tag.Owns] does,
// and whether its bytes are those that were stamped. The error is a [*Refusal].
// A tag of another strength is refused, also of a higher one, and one without a
// digest is.
func (s Scheme) Verify(t *Tag, o Owner, at Place, page []byte) error {
	if err := t.Owns(o, at); err != nil {
		return err
	}
	if t.Strength == OwnerOnly {
		return &Refusal{Class: NoDigest}
	}
	if t.Strength != s.strength {
		return &Refusal{Class: WrongStrength, Got: uint64(t.Strength), Want: uint64(s.strength)}
	}
	want := s.digest(t, page)
	if subtle.ConstantTimeCompare(want[:], t.Digest[:]) != 1 {
		return &Refusal{Class: BadDigest}
	}
	return nil
}

// VerifyTable is [CheckTable] followed by Verify of each page. The function
// page gives the bytes of page i of the table; it is not called for a table that
// CheckTable refuses.
func (s Scheme) VerifyTable(tags []Tag, e Expected, page func(i int) []byte) error {
	if err := CheckTable(tags, e); err != nil {
		return err
	}
	for i := range tags {
		if err := s.Verify(&tags[i], e.Owner, e.Place(i), page(i)); err != nil {
			return onPage(err, i)
		}
	}
	return nil
}

func (s Scheme) digest(t *Tag, page []byte) [DigestSize]byte {
	header := t.header()
	if s.keyed != nil {
		return s.keyed.digest(&header, page)
	}
	return accidentDigest(&header, page)
}
