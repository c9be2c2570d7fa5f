package pagetag

import (
	"bytes"
	"errors"
	"testing"
)

func seeds(f *testing.F) (e Expected, all [][]byte) {
	e = Expected{Owner: Owner{Epoch: 1, Tenant: 2, Request: 3, Generation: 4, Space: 5}, Tokens: 100, PageTokens: 64}
	for _, s := range []Scheme{AgainstAccidents(), AgainstAdversaries(testKey)} {
		tags := []Tag{s.Stamp(e.Owner, e.Place(0), []byte("a")), s.Stamp(e.Owner, e.Place(1), []byte("b"))}
		all = append(all, encoded(tags), encoded(tags[:1]), encoded(tags)[:100])
		future := encoded(tags)
		future[Size] = Version + 1
		flags := encoded(tags)
		flags[3] = 1
		all = append(all, future, flags)
	}
	return e, append(all, nil, make([]byte, Size), make([]byte, 2*Size))
}

// What the decoder accepts has one encoding only, and is never absent.
func FuzzParse(f *testing.F) {
	_, all := seeds(f)
	for _, b := range all {
		f.Add(b[:min(len(b), Size)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		tag, err := Parse(b)
		if err != nil {
			if r := (*Refusal)(nil); !errors.As(err, &r) || tag != (Tag{}) {
				t.Fatalf("refused with %v and %+v", err, tag)
			}
			return
		}
		if again := tag.Bytes(); !bytes.Equal(again[:], b) {
			t.Fatalf("% x is encoded again as % x", b, again)
		}
		if tag.Mark() == (Mark{}) {
			t.Fatal("accepted, and its mark is absent")
		}
	})
}

// A table of bytes that is accepted is the one that was expected, whatever the
// bytes; a check of its marks says the same.
func FuzzParseTable(f *testing.F) {
	e, all := seeds(f)
	for _, b := range all {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		tags, err := ParseTable(b, e)
		if err != nil {
			if r := (*Refusal)(nil); !errors.As(err, &r) || tags != nil {
				t.Fatalf("refused with %v and %d tags", err, len(tags))
			}
			return
		}
		if len(tags) != 2 || !bytes.Equal(encoded(tags), b) {
			t.Fatalf("accepted % x as %+v", b, tags)
		}
		if err := errors.Join(CheckTable(tags, e), CheckMarks(marksOf(tags), e)); err != nil {
			t.Fatalf("accepted, and then %v", err)
		}
	})
}
