package pagetag

import "fmt"

// Class is a reason to refuse. Use it with [errors.Is].
type Class uint8

// Classes of refusal. Each means the same to a reader: do not read, fail the
// request, and keep the page away from others until it has been looked at.
const (
	Absent          Class = iota + 1 // nobody has stamped the page
	BadVersion                       // the tag is of another version of the format
	Malformed                        // the bytes are no tag of this version
	WrongEpoch                       // stamped in another run of the engine
	WrongTenant                      // a page of another tenant
	WrongOwner                       // a page of another request; for a mark, of another owner in any way
	StaleGeneration                  // of this request, of another reservation
	WrongSpace                       // of another pool, layer or rank
	WrongIndex                       // a page of this request that belongs elsewhere in the table
	Incomplete                       // reserved and not yet written, or written too little
	LongPage                         // holds more tokens than the reader accounts for
	WrongStrength                    // digested for another strength than this reader asks for
	NoDigest                         // owned, and never digested
	BadDigest                        // the bytes are not those that were stamped
	ShortTable                       // fewer pages than reserved
	LongTable                        // more pages than reserved
	BadExpectation                   // the reader expects no page, or an impossible one
	classes
)

var names = [classes]string{
	Absent: "absent", BadVersion: "bad_version", Malformed: "malformed", WrongEpoch: "wrong_epoch",
	WrongTenant: "wrong_tenant", WrongOwner: "wrong_owner", StaleGeneration: "stale_generation",
	WrongSpace: "wrong_space", WrongIndex: "wrong_index", Incomplete: "incomplete", LongPage: "long_page",
	WrongStrength: "wrong_strength", NoDigest: "no_digest", BadDigest: "bad_digest",
	ShortTable: "short_table", LongTable: "long_table", BadExpectation: "bad_expectation",
}

var words = [classes]string{
	Absent:          "nobody has stamped this page: do not read it",
	BadVersion:      "tag of version %d, this reader knows %d: let both ends run the same version",
	Malformed:       "not a tag: do not read the page",
	WrongEpoch:      "page of another run of the engine: do not read it",
	WrongTenant:     "page of another tenant: do not read it",
	WrongOwner:      "page of another owner: do not read it",
	StaleGeneration: "page of generation %d, expected %d: do not read it",
	WrongSpace:      "page of space %d, expected %d: do not read it",
	WrongIndex:      "page with index %d, expected %d: do not read it",
	Incomplete:      "page holds %d tokens, expected %d: wait for its writer or fail the request",
	LongPage:        "page holds %d tokens, expected %d: do not read it",
	WrongStrength:   "digest of strength %d, this reader asks for %d: let both ends use one scheme",
	NoDigest:        "page was never digested: have its writer stamp it",
	BadDigest:       "bytes are not those that were stamped: do not read the page",
	ShortTable:      "table of %d pages, reserved for %d: fail the request",
	LongTable:       "table of %d pages, only %d reserved: fail the request",
	BadExpectation:  "reader expects no page or an impossible one: give tokens and page size",
}

// String is the name of the class in test vectors.
func (c Class) String() string {
	if c == 0 || c >= classes {
		return fmt.Sprintf("class %d", uint8(c))
	}
	return names[c]
}

// Error makes a class a target of [errors.Is].
func (c Class) Error() string { return c.String() }

// Refusal says why a page or a table must not be read. It holds no byte of a
// page and no number of an owner.
type Refusal struct {
	Class Class
	// Page is the position in the table of the page that is refused, plus 1; 0
	// if the refusal is not about one page of a table.
	Page int
	// Got and Want are what differed, where that is no secret: versions,
	// generations, spaces, indexes, tokens, pages, strengths.
	Got, Want uint64
}

// Error is one line, lower case.
func (r *Refusal) Error() string {
	text := r.Class.String()
	if r.Class > 0 && r.Class < classes {
		text = words[r.Class]
	}
	switch r.Class {
	case BadVersion, StaleGeneration, WrongSpace, WrongIndex, Incomplete, LongPage, WrongStrength, ShortTable, LongTable:
		text = fmt.Sprintf(text, r.Got, r.Want)
	}
	if r.Page > 0 {
		return fmt.Sprintf("page %d of the table: %s", r.Page-1, text)
	}
	return text
}

// Unwrap gives the class.
func (r *Refusal) Unwrap() error { return r.Class }

func onPage(err error, i int) error {
	if r, ok := err.(*Refusal); ok {
		r.Page = i + 1
	}
	return err
}
