package canary

import (
	"io"
	"testing"

	"pgregory.net/rapid"
)

func TestPlacesYieldWhatWordsYields(t *testing.T) {
	c := New(Key{1, 2, 3})
	rapid.Check(t, func(t *rapid.T) {
		id := MakeID(rapid.IntRange(0, 8191).Draw(t, "run"), 0, rapid.IntRange(0, 1000).Draw(t, "seq"))
		at := rapid.IntRange(0, 300).Draw(t, "at")
		p := c.Place(id, at)
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 40), 1, 6).Draw(t, "pieces") {
			want, err := io.ReadAll(c.Words(id, at, n))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(p.Words(n))
			if err != nil || string(got) != string(want) {
				t.Fatalf("words %d to %d: %q, %v, want %q", at, at+n, got, err, want)
			}
			var size int64
			if p, size = p.Skip(n); size != c.WordsSize(id, at, n) {
				t.Fatalf("size %d, want %d", size, c.WordsSize(id, at, n))
			}
			at += n
		}
	})
}

func TestPlacesEndWithTheCanary(t *testing.T) {
	last := New(Key{}).Place(MakeID(0, 0, 0), MaxWords-2)
	if b, err := io.ReadAll(last.Words(2)); err != nil || len(b) < 9 {
		t.Errorf("last two words: %q, %v", b, err)
	}
	for name, f := range map[string]func(){
		"beyond the end": func() { last.Words(3) },
		"backwards":      func() { last.Skip(-1) },
		"no place":       func() { Place{}.Words(1) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}
