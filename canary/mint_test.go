package canary

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// slowWords mints by the definition, a word at a time.
func slowWords(c *Coder, id ID, n int) (out []string) {
	l, r := c.chain.id.seal(id)
	tail := l<<30 | r
	w := []uint64{c.chain.f.sum(tail) >> 12 & 4095}
	for shift := 48; shift >= 0; shift -= 12 {
		w = append(w, tail>>shift&4095)
	}
	for len(w) < n {
		last := w[len(w)-6:]
		w = append(w, last[0]^c.chain.f.sum(last[1]<<48|last[2]<<36|last[3]<<24|last[4]<<12|last[5])&4095)
	}
	for _, x := range w[:n] {
		out = append(out, strings.Fields(wordList)[x])
	}
	return out
}

// TestMintTwin (C4): the stream is what the definition says, whatever the
// reads, and any piece of it can be had alone.
func TestMintTwin(t *testing.T) {
	c := New(testKey(1))
	all := map[ID][]string{}
	for _, id := range twinIDs {
		all[id] = slowWords(c, id, twinLength)
	}
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.SampledFrom(twinIDs).Draw(t, "id")
		from := rapid.IntRange(0, twinLength).Draw(t, "from")
		n := rapid.IntRange(0, twinLength-from).Draw(t, "n")
		want := strings.Join(all[id][from:from+n], " ")
		var got strings.Builder
		r := c.Words(id, from, n)
		for {
			buf := make([]byte, rapid.IntRange(1, 40).Draw(t, "read"))
			k, err := r.Read(buf)
			got.Write(buf[:k])
			if err == io.EOF {
				break
			}
			if err != nil || k == 0 {
				t.Fatalf("read %d bytes: %v", k, err)
			}
		}
		if got.String() != want {
			t.Fatalf("got %q\nwant %q", got.String(), want)
		}
		if size := c.WordsSize(id, from, n); size != int64(len(want)) {
			t.Fatalf("size %d, want %d", size, len(want))
		}
	})
}

func TestMintReader(t *testing.T) {
	c := New(testKey(1))
	if err := iotest.TestReader(c.Words(7, 3, 200), []byte(mint(c, 7, 3, 200))); err != nil {
		t.Error(err)
	}
	if k, err := c.Words(7, 3, 5).Read(nil); k != 0 || err != nil {
		t.Errorf("reading nothing: %d, %v", k, err)
	}
}

// TestMintPure (C4): the text depends on key and id alone. The words are
// written down here because a change of them makes all canaries that are out
// unreadable.
func TestMintPure(t *testing.T) {
	c := New(testKey(1))
	if got := mint(c, MakeID(77, 3, 1234), 0, 12) + " " + c.Token(MakeID(77, 3, 1234)) + " " + c.Nonce(MakeID(77, 3, 1234), 2); got != mintGolden {
		t.Errorf("got  %s\nwant %s", got, mintGolden)
	}
	if mint(New(testKey(1)), 5, 0, 100) != mint(c, 5, 0, 100) {
		t.Error("two coders of one key differ")
	}
	if mint(New(testKey(2)), 5, 0, 100) == mint(c, 5, 0, 100) || mint(c, 6, 0, 100) == mint(c, 5, 0, 100) {
		t.Error("another key or id makes the same text")
	}
}

// TestMintConstantMemory (C4): a longer canary takes no more memory.
func TestMintConstantMemory(t *testing.T) {
	c := New(testKey(1))
	buf := make([]byte, 4096)
	for _, n := range []int{100, 100_000} {
		allocs := testing.AllocsPerRun(3, func() {
			for r, err := c.Words(9, 0, n), error(nil); err == nil; {
				_, err = r.Read(buf)
			}
		})
		if allocs > 1 {
			t.Errorf("%d words took %v allocations", n, allocs)
		}
	}
}

func TestMintRange(t *testing.T) {
	c := New(testKey(1))
	if got := mint(c, 1, 0, 0); got != "" || c.WordsSize(1, 0, 0) != 0 {
		t.Errorf("no words are %q", got)
	}
	for _, p := range [][2]int{{-1, 1}, {0, -1}, {0, MaxWords + 1}, {MaxWords, 1}, {1 << 62, 1 << 62}} {
		wantPanic(t, func() { c.Words(1, p[0], p[1]) })
	}
}

func TestNonce(t *testing.T) {
	c := New(testKey(1))
	seen := map[string]bool{}
	for id := ID(0); id < 200; id++ {
		for place := range 3 {
			n := c.Nonce(id, place)
			if seen[n] || len(n) != 11 || n[5] != '-' || strings.Trim(n, digits32+"-") != "" {
				t.Fatalf("nonce %q of %v at %d", n, id, place)
			}
			seen[n] = true
		}
	}
	if c.Nonce(1, 0) == New(testKey(2)).Nonce(1, 0) {
		t.Error("two keys have one nonce")
	}
}

const mintGolden = "bugs matrix guess salad paste sister ware rock assemble whisper stealth populace CANARY-55z6wm4yz3bk2kz7 em6q2-6w4id"
