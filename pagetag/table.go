package pagetag

import "math"

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

// ParseTable decodes a whole table as it comes from elsewhere, one tag of [Size]
// bytes after another, and checks it as [CheckTable] does. How much it decodes is
// bounded by what is expected, not by what comes.
func ParseTable(b []byte, e Expected) ([]Tag, error) {
	if len(b)%Size != 0 {
		return nil, &Refusal{Class: Malformed}
	}
	if err := e.covers(len(b) / Size); err != nil {
		return nil, err
	}
	tags := make([]Tag, len(b)/Size)
	for i := range tags {
		var err error
		if tags[i], err = Parse(b[i*Size : (i+1)*Size]); err == nil {
			err = tags[i].Owns(e.Owner, e.Place(i))
		}
		if err != nil {
			return nil, onPage(err, i)
		}
	}
	return tags, nil
}
