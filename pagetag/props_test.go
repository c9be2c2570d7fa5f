package pagetag

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

var testKey = Key{1, 2, 3, 4, 5}

func schemes() []Scheme { return []Scheme{AgainstAccidents(), AgainstAdversaries(testKey)} }

func drawOwner(t *rapid.T) Owner {
	word := rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Uint64())
	return Owner{
		Epoch: word.Draw(t, "epoch"), Tenant: word.Draw(t, "tenant"), Request: word.Draw(t, "request"),
		Generation: word.Draw(t, "generation"), Space: rapid.Uint32().Draw(t, "space"),
	}
}

func drawExpected(t *rapid.T) Expected {
	pages := rapid.IntRange(1, 6).Draw(t, "pages")
	size := rapid.OneOf(rapid.Uint32Range(1, 64), rapid.Just(uint32(MaxLength))).Draw(t, "page tokens")
	last := rapid.Uint32Range(1, size).Draw(t, "last")
	return Expected{
		Owner: drawOwner(t), PageTokens: size, Tokens: uint64(pages-1)*uint64(size) + uint64(last),
		First: rapid.OneOf(rapid.Just(uint32(0)), rapid.Uint32Range(0, 1<<32-6)).Draw(t, "first"),
	}
}

// drawTable stamps a table of small random pages.
func drawTable(t *rapid.T, s Scheme, e Expected) (tags []Tag, pages [][]byte) {
	n, err := e.Pages()
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		pages = append(pages, rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "page"))
		tags = append(tags, s.Stamp(e.Owner, e.Place(i), pages[i]))
	}
	return tags, pages
}

func marksOf(tags []Tag) (marks []Mark) {
	for i := range tags {
		marks = append(marks, tags[i].Mark())
	}
	return marks
}

func encoded(tags []Tag) (all []byte) {
	for i := range tags {
		one := tags[i].Bytes()
		all = append(all, one[:]...)
	}
	return all
}

// want fails unless err is a refusal of this class; class 0 is acceptance.
func want(t *rapid.T, what string, err error, class Class) {
	t.Helper()
	if class == 0 && err != nil || class != 0 && !errors.Is(err, class) {
		t.Fatalf("%s: got %v, want %v", what, err, class)
	}
}

// change makes one field of one tag differ and tells which check sees what.
type change struct {
	name         string
	apply        func(t *rapid.T, tag *Tag)
	table, marks Class
}

func other[T comparable](t *rapid.T, g *rapid.Generator[T], than T) T {
	return g.Filter(func(v T) bool { return v != than }).Draw(t, "other")
}

var changes = []change{
	{"epoch", func(t *rapid.T, g *Tag) { g.Epoch = other(t, rapid.Uint64(), g.Epoch) }, WrongEpoch, WrongOwner},
	{"tenant", func(t *rapid.T, g *Tag) { g.Tenant = other(t, rapid.Uint64(), g.Tenant) }, WrongTenant, WrongOwner},
	{"request", func(t *rapid.T, g *Tag) { g.Request = other(t, rapid.Uint64(), g.Request) }, WrongOwner, WrongOwner},
	{"generation", func(t *rapid.T, g *Tag) { g.Generation = other(t, rapid.Uint64(), g.Generation) }, StaleGeneration, WrongOwner},
	{"space", func(t *rapid.T, g *Tag) { g.Space = other(t, rapid.Uint32(), g.Space) }, WrongSpace, WrongOwner},
	{"index", func(t *rapid.T, g *Tag) { g.Index = other(t, rapid.Uint32(), g.Index) }, WrongIndex, WrongIndex},
	{"shorter", func(t *rapid.T, g *Tag) { g.Length = rapid.Uint32Range(0, g.Length-1).Draw(t, "length") }, Incomplete, Incomplete},
	{"not complete", func(t *rapid.T, g *Tag) { g.Complete = false }, Incomplete, Incomplete},
	{"absent", func(t *rapid.T, g *Tag) { *g = Tag{} }, Absent, Absent},
	{"reserved only", func(t *rapid.T, g *Tag) { *g = Reserve(g.Owner, g.Place) }, Incomplete, Incomplete},
}

func TestAnyFieldChangedIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawExpected(t)
		s := rapid.SampledFrom(schemes()).Draw(t, "scheme")
		tags, pages := drawTable(t, s, e)
		content := func(i int) []byte { return pages[i] }
		want(t, "table", CheckTable(tags, e), 0)
		want(t, "marks", CheckMarks(marksOf(tags), e), 0)
		want(t, "verify", s.VerifyTable(tags, e, content), 0)

		c := rapid.SampledFrom(changes).Draw(t, "change")
		i := rapid.IntRange(0, len(tags)-1).Draw(t, "victim")
		c.apply(t, &tags[i])
		for _, err := range []error{CheckTable(tags, e), s.VerifyTable(tags, e, content)} {
			want(t, c.name, err, c.table)
			if r := err.(*Refusal); r.Page != i+1 {
				t.Fatalf("%s: refused page %d, want %d", c.name, r.Page-1, i)
			}
		}
		want(t, c.name, CheckMarks(marksOf(tags), e), c.marks)
		_, err := ParseTable(encoded(tags), e)
		want(t, c.name, err, c.table)
	})
}

// The digest alone refuses a header that was changed together with what the
// reader expects: it binds every field.
func TestDigestBindsEveryField(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawExpected(t)
		s := rapid.SampledFrom(schemes()).Draw(t, "scheme")
		page := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "page")
		tag := s.Stamp(e.Owner, e.Place(0), page)
		c := rapid.SampledFrom(changes[:7]).Draw(t, "change")
		c.apply(t, &tag)
		want(t, c.name, s.Verify(&tag, tag.Owner, tag.Place, page), BadDigest)
	})
}

func TestAnyByteChangedIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawExpected(t)
		s := rapid.SampledFrom(schemes()).Draw(t, "scheme")
		page := rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "page")
		tag := s.Stamp(e.Owner, e.Place(0), page)
		by := byte(rapid.IntRange(1, 255).Draw(t, "by"))

		b := tag.Bytes()
		at := rapid.IntRange(0, Size-1).Draw(t, "byte of the tag")
		b[at] ^= by
		changed, err := Parse(b[:])
		if err == nil {
			err = s.Verify(&changed, e.Owner, e.Place(0), page)
		}
		if err == nil {
			t.Fatalf("byte %d of the tag may be changed", at)
		}

		torn := bytes.Clone(page)
		torn[rapid.IntRange(0, len(page)-1).Draw(t, "byte of the page")] ^= by
		want(t, "changed page", s.Verify(&tag, e.Owner, e.Place(0), torn), BadDigest)
		want(t, "cut page", s.Verify(&tag, e.Owner, e.Place(0), page[:len(page)-1]), BadDigest)
		want(t, "longer page", s.Verify(&tag, e.Owner, e.Place(0), append(page, 0)), BadDigest)
	})
}

func TestAnyBitOfAMarkChangedIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawExpected(t)
		tags, _ := drawTable(t, AgainstAccidents(), e)
		marks := marksOf(tags)
		i, bit := rapid.IntRange(0, len(marks)-1).Draw(t, "mark"), rapid.IntRange(0, 127).Draw(t, "bit")
		if bit < 64 {
			marks[i].Owner ^= 1 << bit
		} else {
			marks[i].Place ^= 1 << (bit - 64)
		}
		if CheckMarks(marks, e) == nil {
			t.Fatalf("bit %d may be changed", bit)
		}
	})
}

// Both ends hold the same page at unrelated slots; a table that mixes its pages
// up is refused.
func TestPagesMayMoveBetweenSlotsAndNotWithinTheTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawExpected(t)
		s := rapid.SampledFrom(schemes()).Draw(t, "scheme")
		tags, pages := drawTable(t, s, e)
		const slot = 300
		pool := make([]byte, 8*slot+7)
		slots := rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7}).Draw(t, "slots")
		shift := rapid.IntRange(0, 7).Draw(t, "alignment")
		received := func(i int) []byte {
			at := slots[i]*slot + shift
			return pool[at : at+copy(pool[at:], pages[i])]
		}
		want(t, "moved", s.VerifyTable(slices.Clone(tags), e, received), 0)

		if len(tags) < 2 {
			return
		}
		i := rapid.IntRange(1, len(tags)-1).Draw(t, "swap")
		tags[0], tags[i] = tags[i], tags[0]
		want(t, "tags swapped", CheckTable(tags, e), WrongIndex)
		want(t, "marks swapped", CheckMarks(marksOf(tags), e), WrongIndex)
		tags[0], tags[i] = tags[i], tags[0]
		if !bytes.Equal(pages[0], pages[i]) {
			pages[0], pages[i] = pages[i], pages[0]
			want(t, "pages swapped", s.VerifyTable(tags, e, received), BadDigest)
		}
	})
}

func TestTagsOfAnotherRunAreRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawExpected(t)
		s := rapid.SampledFrom(schemes()).Draw(t, "scheme")
		tags, pages := drawTable(t, s, e)
		content := func(i int) []byte { return pages[i] }
		later := e
		later.Owner.Epoch = other(t, rapid.Uint64(), e.Owner.Epoch)
		want(t, "epoch", s.VerifyTable(tags, later, content), WrongEpoch)

		key := testKey
		key[rapid.IntRange(0, KeySize-1).Draw(t, "byte of the key")] ^= 0x80
		tags, pages = drawTable(t, AgainstAdversaries(key), e)
		want(t, "key", AgainstAdversaries(testKey).VerifyTable(tags, e, content), BadDigest)
	})
}

func TestCoverageIsChecked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawExpected(t)
		tags, _ := drawTable(t, AgainstAccidents(), e)
		fewer := rapid.IntRange(0, len(tags)-1).Draw(t, "fewer")
		more := append(slices.Clone(tags), tags[0])
		for _, c := range []struct {
			tags  []Tag
			class Class
		}{{tags[:fewer], ShortTable}, {nil, ShortTable}, {more, LongTable}} {
			want(t, "tags", CheckTable(c.tags, e), c.class)
			want(t, "marks", CheckMarks(marksOf(c.tags), e), c.class)
			_, err := ParseTable(encoded(c.tags), e)
			want(t, "bytes", err, c.class)
		}
		_, err := ParseTable(encoded(tags)[1:], e)
		want(t, "cut", err, Malformed)
	})
}

func TestMarksAgreeWithTheirTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawExpected(t)
		tags, _ := drawTable(t, AgainstAccidents(), e)
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			i := rapid.IntRange(0, len(tags)-1).Draw(t, "victim")
			if tags[i].Length > 0 {
				rapid.SampledFrom(changes).Draw(t, "change").apply(t, &tags[i])
			}
		}
		marks := marksOf(tags)
		if rapid.Bool().Draw(t, "wild") {
			marks[0].Place = rapid.Uint64().Draw(t, "place")
		}
		marks = marks[:rapid.IntRange(max(0, len(marks)-1), len(marks)).Draw(t, "count")]
		class, page := slowMarks(marks, e)
		err := CheckMarks(marks, e)
		want(t, "marks", err, class)
		if class != 0 && err.(*Refusal).Page != page+1 {
			t.Fatalf("refused page %d, want %d", err.(*Refusal).Page-1, page)
		}
	})
}

func TestDigestsAgreeWithTheirTwins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOwner(t)
		at := Place{Index: rapid.Uint32().Draw(t, "index"), Length: rapid.Uint32Range(0, MaxLength).Draw(t, "length")}
		page := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "page")
		accident := AgainstAccidents().Stamp(o, at, page)
		h := xxh3.Hash128(page)
		if slow := slowAccident(accident, h.Lo, h.Hi); !bytes.Equal(accident.Digest[:], slow) {
			t.Fatalf("by accident: %x, twin %x", accident.Digest, slow)
		}
		var key Key
		copy(key[:], rapid.SliceOfN(rapid.Byte(), KeySize, KeySize).Draw(t, "key"))
		adversary := AgainstAdversaries(key).Stamp(o, at, page)
		if slow := slowAdversary(adversary, page, key); !bytes.Equal(adversary.Digest[:], slow) {
			t.Fatalf("by adversary: %x, twin %x", adversary.Digest, slow)
		}
	})
}
