package canary

import (
	"io"
	"strings"
	"testing"
)

func testKey(b byte) (k Key) {
	for i := range k {
		k[i] = b + byte(i)
	}
	return k
}

func mint(t testing.TB, c *Coder, id ID, from, n int) string {
	b, err := io.ReadAll(c.Words(id, from, n))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRoundTrip(t *testing.T) {
	c := New(testKey(1))
	id := MakeID(77, 3, 1234)
	s := mint(t, c, id, 0, 1000)
	t.Log(s[:200], c.Token(id), c.Nonce(id, 0))
	if int64(len(s)) != c.WordsSize(id, 0, 1000) {
		t.Fatal("size")
	}
	for from := 0; from < 900; from += 13 {
		for _, n := range []int{8, 9, 50} {
			text := "prefix table " + mint(t, c, id, from, n) + " and so on"
			hits := c.Scan([]byte(text))
			if len(hits) != 1 || hits[0].ID != id || hits[0].Word != from || hits[0].Words != n {
				t.Fatalf("from %d n %d: %+v", from, n, hits)
			}
			if got := text[hits[0].Start:hits[0].End]; got != mint(t, c, id, from, n) {
				t.Fatalf("range %q", got)
			}
		}
	}
	hits := c.Scan([]byte(strings.ToLower(" x " + c.Token(id)[1:] + "yy")))
	if len(hits) != 1 || hits[0].ID != id {
		t.Fatal(hits)
	}
}
