package pagetag_test

import (
	"errors"
	"fmt"

	"github.com/kvcanary/kvcanary/pagetag"
)

// A request of 150 tokens on pages of 64: prefill writes and stamps three pages,
// decode checks all three before it reads one.
func Example() {
	owner := pagetag.Owner{Epoch: 0x5eed, Tenant: 7, Request: 42, Generation: 3}
	expected := pagetag.Expected{Owner: owner, Tokens: 150, PageTokens: 64}
	scheme := pagetag.AgainstAccidents()
	pages := [][]byte{[]byte("bytes of page 0"), []byte("bytes of page 1"), []byte("bytes of page 2")}

	var tags []pagetag.Tag
	for i, page := range pages {
		tags = append(tags, scheme.Stamp(owner, expected.Place(i), page))
	}
	content := func(i int) []byte { return pages[i] }
	fmt.Println(scheme.VerifyTable(tags, expected, content))

	// The sender gave up after one page and said that all went well.
	fmt.Println(pagetag.CheckTable(tags[:1], expected))

	// The last page stayed as an earlier request left it.
	tags[2] = scheme.Stamp(pagetag.Owner{Epoch: 0x5eed, Tenant: 8, Request: 41, Generation: 2}, expected.Place(2), pages[2])
	err := pagetag.CheckTable(tags, expected)
	fmt.Println(err, errors.Is(err, pagetag.WrongTenant))

	// Output:
	// <nil>
	// table of 1 pages, reserved for 3: fail the request
	// page 2 of the table: page of another tenant: do not read it true
}

// At every step a reader compares two words a page.
func ExampleCheckMarks() {
	owner := pagetag.Owner{Tenant: 7, Request: 42, Generation: 3}
	expected := pagetag.Expected{Owner: owner, Tokens: 150, PageTokens: 64}
	marks := make([]pagetag.Mark, 3) // beside the pages of a pool
	for i := range 2 {
		tag := pagetag.Claim(owner, expected.Place(i))
		marks[i] = tag.Mark()
	}
	fmt.Println(pagetag.CheckMarks(marks, expected))

	reserved := pagetag.Reserve(owner, expected.Place(2))
	marks[2] = reserved.Mark()
	fmt.Println(pagetag.CheckMarks(marks, expected))

	// Output:
	// page 2 of the table: nobody has stamped this page: do not read it
	// page 2 of the table: page holds 0 tokens, expected 22: wait for its writer or fail the request
}
