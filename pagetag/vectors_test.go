package pagetag

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
)

var update = flag.Bool("update", false, "write testdata/vectors.json anew")

// The file is for other implementations, so 64-bit numbers are hexadecimal
// strings: many JSON readers round them.
type (
	vectors struct {
		Format   int           `json:"format"`
		PageRule string        `json:"page_rule"`
		Tags     []tagVector   `json:"tags"`
		Tables   []tableVector `json:"tables"`
	}
	ownerVector struct {
		Epoch      string `json:"epoch"`
		Tenant     string `json:"tenant"`
		Request    string `json:"request"`
		Generation string `json:"generation"`
		Space      uint32 `json:"space"`
	}
	pageVector struct {
		Bytes int `json:"bytes"`
		Seed  int `json:"seed"`
	}
	tagVector struct {
		Name     string      `json:"name"`
		Strength string      `json:"strength"`
		Key      string      `json:"key,omitempty"`
		Owner    ownerVector `json:"owner"`
		Index    uint32      `json:"index"`
		Length   uint32      `json:"length"`
		Complete bool        `json:"complete"`
		Page     *pageVector `json:"page,omitempty"`
		Hash     string      `json:"hash,omitempty"` // XXH3-128 or GMAC of the page
		Tag      string      `json:"tag"`
		Mark     string      `json:"mark"`
	}
	expectedVector struct {
		Owner      ownerVector `json:"owner"`
		First      uint32      `json:"first"`
		Tokens     string      `json:"tokens"`
		PageTokens uint32      `json:"page_tokens"`
	}
	outcome struct {
		Class string `json:"class"` // "accept" or why not
		Page  int    `json:"page"`  // the first that is refused, -1 if none is in particular
	}
	tableVector struct {
		Name     string         `json:"name"`
		Strength string         `json:"strength"` // of the reader
		Key      string         `json:"key,omitempty"`
		Expected expectedVector `json:"expected"`
		Tags     []string       `json:"tags"`
		Marks    []string       `json:"marks"`
		Pages    []pageVector   `json:"pages"`
		Table    outcome        `json:"check_table"`
		Mark     outcome        `json:"check_marks"`
		Verify   outcome        `json:"verify_table"`
	}
)

const pageRule = "byte i of a page with seed s is ((i + s) * 167 + floor(i / 256)) mod 256"

func (p pageVector) bytes() []byte {
	b := make([]byte, p.Bytes)
	for i := range b {
		b[i] = byte((i+p.Seed)*167 + i/256)
	}
	return b
}

var strengths = map[Strength]string{OwnerOnly: "owner_only", ByAccident: "by_accident", ByAdversary: "by_adversary"}

func word(v uint64) string { return fmt.Sprintf("0x%016x", v) }

func ownerOut(o Owner) ownerVector {
	return ownerVector{word(o.Epoch), word(o.Tenant), word(o.Request), word(o.Generation), o.Space}
}

func number(t *testing.T, s string) (v uint64) {
	t.Helper()
	if _, err := fmt.Sscanf(s, "0x%016x", &v); err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return v
}

func (o ownerVector) in(t *testing.T) Owner {
	return Owner{number(t, o.Epoch), number(t, o.Tenant), number(t, o.Request), number(t, o.Generation), o.Space}
}

func (e expectedVector) in(t *testing.T) Expected {
	return Expected{e.Owner.in(t), e.First, number(t, e.Tokens), e.PageTokens}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func scheme(t *testing.T, strength, key string) Scheme {
	t.Helper()
	switch strength {
	case "by_accident":
		return AgainstAccidents()
	case "by_adversary":
		return AgainstAdversaries(Key(unhex(t, key)))
	}
	t.Fatalf("no scheme of strength %q", strength)
	return Scheme{}
}

func outcomeOf(err error) outcome {
	if err == nil {
		return outcome{"accept", -1}
	}
	r := err.(*Refusal)
	return outcome{r.Class.String(), r.Page - 1}
}

var (
	vectorKey = func() (k Key) {
		for i := range k {
			k[i] = byte(i)
		}
		return k
	}()
	vectorOwner = Owner{Epoch: 0x1122334455667788, Tenant: 7, Request: 42, Generation: 3, Space: 2}
	largest     = Owner{1<<64 - 1, 1<<64 - 1, 1<<64 - 1, 1<<64 - 1, 1<<32 - 1}
)

func tagOut(name string, tag Tag, page *pageVector) tagVector {
	b, m := tag.Bytes(), tag.Mark().Bytes()
	v := tagVector{
		Name: name, Strength: strengths[tag.Strength], Owner: ownerOut(tag.Owner), Index: tag.Index, Length: tag.Length,
		Complete: tag.Complete, Page: page, Tag: hex.EncodeToString(b[:]), Mark: hex.EncodeToString(m[:]),
	}
	switch tag.Strength {
	case ByAccident:
		h := xxh3.Hash128(page.bytes())
		v.Hash = fmt.Sprintf("%016x%016x", h.Hi, h.Lo)
	case ByAdversary:
		v.Key = hex.EncodeToString(vectorKey[:])
		v.Hash = hex.EncodeToString(newKeyed(vectorKey).hash.Seal(nil, make([]byte, 12), nil, page.bytes()))
	}
	return v
}

func makeTags() (all []tagVector) {
	at := Place{Index: 5, Length: 64}
	for name, o := range map[string]Owner{"usual": vectorOwner, "owner of zeros": {}, "owner of ones": largest} {
		all = append(all, tagOut("reserved, "+name, Reserve(o, at), nil), tagOut("claimed, "+name, Claim(o, at), nil))
		all = append(all, tagOut("first page, "+name, Claim(o, Place{}), nil))
		all = append(all, tagOut("last page of all, "+name, Claim(o, Place{1<<32 - 1, MaxLength}), nil))
	}
	// One length on each side of every boundary of XXH3, and some of GCM.
	for i, n := range []int{0, 1, 3, 4, 8, 9, 15, 16, 17, 128, 129, 240, 241, 1024, 1025, 4096, 65536, 65543} {
		page := pageVector{Bytes: n, Seed: i}
		for _, s := range []Scheme{AgainstAccidents(), AgainstAdversaries(vectorKey)} {
			name := fmt.Sprintf("page of %d bytes, %s", n, strengths[s.Strength()])
			all = append(all, tagOut(name, s.Stamp(vectorOwner, at, page.bytes()), &page))
		}
	}
	slices.SortStableFunc(all, func(a, b tagVector) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// table is a table of four pages and 200 tokens that a case spoils.
type table struct {
	expected Expected
	encoded  [][]byte
	marks    []Mark
	pages    []pageVector
}

func (b *table) put(i int, tag Tag) {
	one := tag.Bytes()
	b.encoded[i], b.marks[i] = one[:], tag.Mark()
}

func goodTable(s Scheme) *table {
	b := &table{expected: Expected{Owner: vectorOwner, Tokens: 200, PageTokens: 64}}
	for i := range 4 {
		b.pages = append(b.pages, pageVector{Bytes: 512, Seed: i})
		b.encoded, b.marks = append(b.encoded, nil), append(b.marks, Mark{})
		b.put(i, s.Stamp(vectorOwner, b.expected.Place(i), b.pages[i].bytes()))
	}
	return b
}

// tableCases says by hand what each check has to answer, as class@page.
var tableCases = []struct {
	name                  string
	spoil                 func(b *table, s Scheme)
	check, marked, verify string
}{
	{"good", func(*table, Scheme) {}, "accept@-1", "accept@-1", "accept@-1"},
	{"behind a prefix of another owner", func(b *table, s Scheme) {
		b.expected.First = 1 << 31
		for i := range b.pages {
			b.put(i, s.Stamp(vectorOwner, b.expected.Place(i), b.pages[i].bytes()))
		}
	}, "accept@-1", "accept@-1", "accept@-1"},
	{"reserved and never written", func(b *table, s Scheme) { b.encoded[1], b.marks[1] = make([]byte, Size), Mark{} },
		"absent@1", "absent@1", "absent@1"},
	{"stamped when reserved", func(b *table, s Scheme) { b.put(2, Reserve(vectorOwner, b.expected.Place(2))) },
		"incomplete@2", "incomplete@2", "incomplete@2"},
	{"another run", respoil(0, func(o *Owner, p *Place) { o.Epoch++ }), "wrong_epoch@0", "wrong_owner@0", "wrong_epoch@0"},
	{"another tenant", respoil(3, func(o *Owner, p *Place) { o.Tenant = 8 }), "wrong_tenant@3", "wrong_owner@3", "wrong_tenant@3"},
	{"another request", respoil(1, func(o *Owner, p *Place) { o.Request = 41 }), "wrong_owner@1", "wrong_owner@1", "wrong_owner@1"},
	{"the attempt before", respoil(2, func(o *Owner, p *Place) { o.Generation = 2 }), "stale_generation@2", "wrong_owner@2", "stale_generation@2"},
	{"another layer", respoil(2, func(o *Owner, p *Place) { o.Space = 1 }), "wrong_space@2", "wrong_owner@2", "wrong_space@2"},
	{"another index", respoil(1, func(o *Owner, p *Place) { p.Index = 2 }), "wrong_index@1", "wrong_index@1", "wrong_index@1"},
	{"a token too few", respoil(3, func(o *Owner, p *Place) { p.Length-- }), "incomplete@3", "incomplete@3", "incomplete@3"},
	{"a token too many", respoil(3, func(o *Owner, p *Place) { p.Length++ }), "long_page@3", "long_page@3", "long_page@3"},
	{"sent one page of four", func(b *table, s Scheme) { b.cut(1) }, "short_table@-1", "short_table@-1", "short_table@-1"},
	{"sent nothing", func(b *table, s Scheme) { b.cut(0) }, "short_table@-1", "short_table@-1", "short_table@-1"},
	{"sent a page too many", func(b *table, s Scheme) { b.expected.Tokens = 192 }, "long_table@-1", "long_table@-1", "long_table@-1"},
	{"expects nothing", func(b *table, s Scheme) { b.cut(0); b.expected.Tokens = 0 }, "bad_expectation@-1", "bad_expectation@-1", "bad_expectation@-1"},
	{"expects indexes there are not", func(b *table, s Scheme) { b.expected.First = 1<<32 - 3 }, "bad_expectation@-1", "bad_expectation@-1", "bad_expectation@-1"},
	{"a byte of a page changed", func(b *table, s Scheme) { b.pages[2].Seed++ }, "accept@-1", "accept@-1", "bad_digest@2"},
	{"a byte of a page lost", func(b *table, s Scheme) { b.pages[0].Bytes-- }, "accept@-1", "accept@-1", "bad_digest@0"},
	{"digest of zeros", func(b *table, s Scheme) { clear(b.encoded[1][headerSize:]) }, "accept@-1", "accept@-1", "bad_digest@1"},
	{"claimed and not digested", func(b *table, s Scheme) { b.put(1, Claim(vectorOwner, b.expected.Place(1))) }, "accept@-1", "accept@-1", "no_digest@1"},
	{"digested for another strength", func(b *table, s Scheme) {
		weaker := AgainstAccidents()
		if s.Strength() == ByAccident {
			weaker = AgainstAdversaries(vectorKey)
		}
		b.put(3, weaker.Stamp(vectorOwner, b.expected.Place(3), b.pages[3].bytes()))
	}, "accept@-1", "accept@-1", "wrong_strength@3"},
	{"two pages swapped without their tags", func(b *table, s Scheme) { b.pages[0], b.pages[1] = b.pages[1], b.pages[0] },
		"accept@-1", "accept@-1", "bad_digest@0"},
	{"two pages swapped with their tags", func(b *table, s Scheme) {
		b.pages[0], b.pages[1] = b.pages[1], b.pages[0]
		b.encoded[0], b.encoded[1] = b.encoded[1], b.encoded[0]
		b.marks[0], b.marks[1] = b.marks[1], b.marks[0]
	}, "wrong_index@0", "wrong_index@0", "wrong_index@0"},
	{"a later version", func(b *table, s Scheme) { b.encoded[1][0] = 2; b.marks[1].Place += 1 << versionShift },
		"bad_version@1", "bad_version@1", "bad_version@1"},
	{"a flag there is not", func(b *table, s Scheme) { b.encoded[1][2] |= 2; b.marks[1].Place |= 2 << completeShift },
		"malformed@1", "malformed@1", "malformed@1"},
	{"a strength there is not", func(b *table, s Scheme) { b.encoded[2][1] = 4 }, "malformed@2", "accept@-1", "malformed@2"},
}

func respoil(i int, change func(*Owner, *Place)) func(*table, Scheme) {
	return func(b *table, s Scheme) {
		o, at := vectorOwner, b.expected.Place(i)
		change(&o, &at)
		b.put(i, s.Stamp(o, at, b.pages[i].bytes()))
	}
}

func (b *table) cut(n int) { b.encoded, b.marks, b.pages = b.encoded[:n], b.marks[:n], b.pages[:n] }

func makeTables(t *testing.T) (all []tableVector) {
	for _, s := range []Scheme{AgainstAccidents(), AgainstAdversaries(vectorKey)} {
		for _, c := range tableCases {
			b := goodTable(s)
			c.spoil(b, s)
			e := b.expected
			v := tableVector{
				Name: c.name, Strength: strengths[s.Strength()], Pages: b.pages, Tags: []string{}, Marks: []string{},
				Expected: expectedVector{ownerOut(e.Owner), e.First, word(e.Tokens), e.PageTokens},
				Table:    byHand(t, c.check), Mark: byHand(t, c.marked), Verify: byHand(t, c.verify),
			}
			if s.Strength() == ByAdversary {
				v.Key = hex.EncodeToString(vectorKey[:])
			}
			for i := range b.encoded {
				m := b.marks[i].Bytes()
				v.Tags, v.Marks = append(v.Tags, hex.EncodeToString(b.encoded[i])), append(v.Marks, hex.EncodeToString(m[:]))
			}
			all = append(all, v)
		}
	}
	return all
}

func byHand(t *testing.T, s string) (o outcome) {
	class, page, _ := strings.Cut(s, "@")
	if _, err := fmt.Sscan(page, &o.Page); err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	o.Class = class
	return o
}

func TestVectorsAreUpToDate(t *testing.T) {
	var made bytes.Buffer
	out := json.NewEncoder(&made)
	out.SetIndent("", " ")
	if err := out.Encode(vectors{Format: Version, PageRule: pageRule, Tags: makeTags(), Tables: makeTables(t)}); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("testdata/vectors.json", made.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, made.Bytes()) {
		t.Error("testdata/vectors.json differs from what this test makes: the format has changed, or run it with -update")
	}
}

func readVectors(t *testing.T) (v vectors) {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors.json")
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	if v.Format != Version || len(v.Tags) < 40 || len(v.Tables) < 50 {
		t.Fatalf("format %d, %d tags, %d tables: not the whole file", v.Format, len(v.Tags), len(v.Tables))
	}
	return v
}

// The file is read as another implementation would: nothing of what made it is
// used, and digests come from the slow twins too.
func TestTagVectors(t *testing.T) {
	for _, v := range readVectors(t).Tags {
		tag, err := Parse(unhex(t, v.Tag))
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		again := Tag{Strength: tag.Strength, Complete: v.Complete, Place: Place{v.Index, v.Length}, Owner: v.Owner.in(t), Digest: tag.Digest}
		if v.Page != nil {
			page := v.Page.bytes()
			again = scheme(t, v.Strength, v.Key).Stamp(again.Owner, again.Place, page)
			if twin := twinDigest(t, again, v.Key, page); !bytes.Equal(twin, tag.Digest[:]) {
				t.Errorf("%s: the twin has digest %x", v.Name, twin)
			}
		}
		b, m := again.Bytes(), again.Mark().Bytes()
		if hex.EncodeToString(b[:]) != v.Tag || hex.EncodeToString(m[:]) != v.Mark || strengths[tag.Strength] != v.Strength {
			t.Errorf("%s: made %x and mark %x", v.Name, b, m)
		}
	}
}

func twinDigest(t *testing.T, tag Tag, key string, page []byte) []byte {
	if tag.Strength == ByAdversary {
		return slowAdversary(tag, page, Key(unhex(t, key)))
	}
	h := xxh3.Hash128(page)
	return slowAccident(tag, h.Lo, h.Hi)
}

func TestTableVectors(t *testing.T) {
	classesSeen := map[string]bool{}
	for _, v := range readVectors(t).Tables {
		e, s := v.Expected.in(t), scheme(t, v.Strength, v.Key)
		tags, err := ParseTable(unhex(t, strings.Join(v.Tags, "")), e)
		if got := outcomeOf(err); got != v.Table {
			t.Errorf("%s, %s: table %v, want %v", v.Name, v.Strength, got, v.Table)
		}
		if err == nil {
			err = s.VerifyTable(tags, e, func(i int) []byte { return v.Pages[i].bytes() })
		}
		if got := outcomeOf(err); got != v.Verify {
			t.Errorf("%s, %s: verify %v, want %v", v.Name, v.Strength, got, v.Verify)
		}
		var marks []Mark
		for _, m := range v.Marks {
			one, err := ParseMark(unhex(t, m))
			if err != nil {
				t.Fatal(err)
			}
			marks = append(marks, one)
		}
		if got := outcomeOf(CheckMarks(marks, e)); got != v.Mark {
			t.Errorf("%s, %s: marks %v, want %v", v.Name, v.Strength, got, v.Mark)
		}
		classesSeen[v.Table.Class], classesSeen[v.Verify.Class] = true, true
	}
	for c := Class(1); c < classes; c++ {
		if !classesSeen[c.String()] {
			t.Errorf("no vector is refused as %v", c)
		}
	}
	if !classesSeen["accept"] {
		t.Error("no vector is accepted")
	}
}
