package pagetag

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestImpossibleExpectationsAreRefused(t *testing.T) {
	for _, e := range []Expected{
		{},
		{Tokens: 0, PageTokens: 64},
		{Tokens: 64, PageTokens: 0},
		{Tokens: 64, PageTokens: MaxLength + 1},
		{Tokens: 65, PageTokens: 64, First: math.MaxUint32},
		{Tokens: math.MaxUint64, PageTokens: 1},
	} {
		for what, err := range map[string]error{"tags": CheckTable(nil, e), "marks": CheckMarks(nil, e)} {
			if !errors.Is(err, BadExpectation) {
				t.Errorf("%+v, %s: %v, want bad_expectation", e, what, err)
			}
		}
		if _, err := ParseTable(nil, e); !errors.Is(err, BadExpectation) {
			t.Errorf("%+v, bytes: %v, want bad_expectation", e, err)
		}
	}
	e := Expected{Tokens: 64, PageTokens: 64, First: math.MaxUint32}
	if n, err := e.Pages(); n != 1 || err != nil {
		t.Errorf("the last index of all: %d pages, %v", n, err)
	}
}

// An absent tag is told by its version, so a page whose owner and digest are
// all zeros is a page like any other.
func TestZeroIsAValueAndNotAbsence(t *testing.T) {
	e := Expected{Tokens: 1, PageTokens: 1}
	tag := Tag{Strength: ByAccident, Complete: true, Place: e.Place(0)}
	if err := CheckTable([]Tag{tag}, e); err != nil {
		t.Errorf("owner 0: %v", err)
	}
	if err := AgainstAccidents().Verify(&tag, e.Owner, e.Place(0), []byte{1}); !errors.Is(err, BadDigest) {
		t.Errorf("digest 0 of other bytes: %v, want bad_digest", err)
	}
	b := tag.Bytes()
	if got, err := Parse(b[:]); got != tag || err != nil {
		t.Errorf("parsed %+v, %v", got, err)
	}
	absent := Tag{}
	if b := absent.Bytes(); b != [Size]byte{} {
		t.Errorf("an absent tag is % x", b)
	}
	if err := CheckTable([]Tag{absent}, e); !errors.Is(err, Absent) {
		t.Errorf("no tag: %v, want absent", err)
	}
}

func TestEachSchemeTakesItsOwnStrengthOnly(t *testing.T) {
	e := Expected{Tokens: 1, PageTokens: 1}
	page := []byte("page")
	accident, adversary := AgainstAccidents(), AgainstAdversaries(testKey)
	tags := map[string]Tag{
		"accident":  accident.Stamp(e.Owner, e.Place(0), page),
		"adversary": adversary.Stamp(e.Owner, e.Place(0), page),
		"claim":     Claim(e.Owner, e.Place(0)),
		"none":      Scheme{}.Stamp(e.Owner, e.Place(0), page),
	}
	if tags["none"] != (Tag{}) {
		t.Errorf("a scheme that was forgotten stamps %+v", tags["none"])
	}
	for name, s := range map[string]Scheme{"accident": accident, "adversary": adversary, "zero": {}} {
		for stamped, tag := range tags {
			expect := WrongStrength
			switch stamped {
			case name:
				expect = 0
			case "claim":
				expect = NoDigest
			case "none":
				expect = Absent
			}
			err := s.Verify(&tag, e.Owner, e.Place(0), page)
			if expect == 0 && err != nil || expect != 0 && !errors.Is(err, expect) {
				t.Errorf("scheme %s, tag %s: %v, want %v", name, stamped, err, expect)
			}
		}
	}
}

func TestTagsNobodyCouldEncodeAreRefused(t *testing.T) {
	o, at := Owner{Tenant: 1}, Place{Length: 1}
	for name, change := range map[string]func(*Tag){
		"strength": func(g *Tag) { g.Strength = 4 },
		"length":   func(g *Tag) { g.Length = MaxLength + 1 },
	} {
		tag := AgainstAccidents().Stamp(o, at, nil)
		change(&tag)
		b := tag.Bytes()
		if _, err := Parse(b[:]); !errors.Is(err, Malformed) {
			t.Errorf("%s: parse: %v, want malformed", name, err)
		}
		if tag.Mark() != (Mark{}) {
			t.Errorf("%s: there is a mark", name)
		}
		if tag.Owns(o, at) == nil {
			t.Errorf("%s: it owns", name)
		}
	}
	claim := Claim(o, at)
	claim.Digest[3] = 1
	b := claim.Bytes()
	if _, err := Parse(b[:]); !errors.Is(err, Malformed) {
		t.Errorf("digest without strength: %v, want malformed", err)
	}
	for _, n := range []int{0, Size - 1, Size + 1} {
		if _, err := Parse(make([]byte, n)); !errors.Is(err, Malformed) {
			t.Errorf("%d bytes: %v, want malformed", n, err)
		}
	}
	if _, err := ParseMark(make([]byte, MarkSize+1)); !errors.Is(err, Malformed) {
		t.Errorf("mark of another length: %v", err)
	}
	m := claim.Mark()
	mb := m.Bytes()
	if back, err := ParseMark(mb[:]); back != m || err != nil {
		t.Errorf("mark %v came back as %v, %v", m, back, err)
	}
}

// Refusals are one line, lower case, and give away no number of an owner.
func TestRefusalsRead(t *testing.T) {
	seen := map[string]bool{}
	for c := Class(1); c < classes; c++ {
		r := &Refusal{Class: c, Page: 4, Got: 11, Want: 12}
		text := r.Error()
		if c.String() == "" || strings.Contains(text, "%!") || strings.ContainsAny(text, "\n") || text != strings.ToLower(text) || !strings.HasPrefix(text, "page 3 of the table: ") {
			t.Errorf("%v: %q", c, text)
		}
		if seen[c.String()] || seen[text] {
			t.Errorf("%v: not the only one", c)
		}
		seen[c.String()], seen[text] = true, true
	}
	o := Owner{Epoch: 1e15 + 1, Tenant: 1e15 + 2, Request: 1e15 + 3}
	for _, foreign := range []Owner{{Epoch: 5}, {Epoch: o.Epoch, Tenant: 5}, {Epoch: o.Epoch, Tenant: o.Tenant, Request: 5}} {
		tag := Claim(foreign, Place{Length: 1})
		if text := tag.Owns(o, Place{Length: 1}).Error(); strings.ContainsAny(text, "0123456789") {
			t.Errorf("%q gives away a number", text)
		}
	}
}

func TestKeysAreNotShown(t *testing.T) {
	key := Key{0xab, 0xcd, 0xef}
	all := fmt.Sprintf("%v %+v %#v %x %s %d", key, key, key, key, key, key)
	s := AgainstAdversaries(key)
	all += fmt.Sprintf("%v %+v %#v %x", s, s, s, &s)
	j, err := json.Marshal(struct{ K Key }{key})
	all += string(j)
	for _, secret := range []string{"abcdef", "171", "0xab", "q83v"} {
		if strings.Contains(all, secret) || err != nil {
			t.Errorf("%q shows the key (%v)", all, err)
		}
	}
	if s.Strength() != ByAdversary {
		t.Errorf("strength %d", s.Strength())
	}
}

// What runs at every step allocates nothing, nor does a digest by accident.
func TestChecksDoNotAllocate(t *testing.T) {
	e := Expected{Owner: Owner{Tenant: 1}, Tokens: 1000, PageTokens: 64}
	n, _ := e.Pages()
	page := make([]byte, 4096)
	s := AgainstAccidents()
	var tags []Tag
	for i := range n {
		tags = append(tags, s.Stamp(e.Owner, e.Place(i), page))
	}
	marks := marksOf(tags)
	content := func(int) []byte { return page }
	for name, f := range map[string]func() error{
		"marks":  func() error { return CheckMarks(marks, e) },
		"table":  func() error { return CheckTable(tags, e) },
		"verify": func() error { return s.VerifyTable(tags, e, content) },
	} {
		if err := f(); err != nil {
			t.Fatal(err)
		}
		if got := testing.AllocsPerRun(100, func() { f() }); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}
