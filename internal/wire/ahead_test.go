package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

// What is made ahead is what was made, to the byte and to the error.
func TestAheadEqualsItsSource(t *testing.T) {
	broken := errors.New("the prompt is gone")
	rapid.Check(t, func(t *rapid.T) {
		want := bytes.Repeat([]byte("0123456789abcdef"), rapid.IntRange(0, 3*aheadBlock/16).Draw(t, "size"))
		want = want[:len(want)-rapid.IntRange(0, min(15, len(want))).Draw(t, "less")]
		end := io.EOF
		if rapid.Bool().Draw(t, "breaks") {
			end = broken
		}
		src := io.MultiReader(bytes.NewReader(want), iotest.ErrReader(end))
		if rapid.Bool().Draw(t, "in halves") {
			src = iotest.HalfReader(src)
		}
		a := newAhead(src)
		got, err := io.ReadAll(a)
		a.Close()
		if end == io.EOF {
			end = nil
		}
		if !bytes.Equal(got, want) || err != end {
			t.Fatalf("%d bytes and %v, want %d and %v", len(got), err, len(want), end)
		}
	})
}

// A body that nobody takes to its end leaves nothing running.
func TestAheadEnds(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	a := newAhead(endless("x"))
	io.CopyN(io.Discard, a, 10*aheadBlock+1)
	a.Close()
	a.Close()
	newAhead(endless("x")).Close()

	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(413) }))
	defer srv.Close()
	c := dial(t, srv.URL, Options{})
	r := prompt("")
	r.Messages[0].Text = million{8 << 20}
	wantRefusal(t, c.Do(context.Background(), r), RefusedTooLong, "")
	c.Close()
}

// What a text says of its own size is what is sent.
func TestJSONSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z"\\é€😀 ]{0,300}`), rapid.Just(strings.Repeat("a", 63)+"é\xff\xc3")).Draw(t, "text")
		got, _ := io.ReadAll(&escaper{src: strings.NewReader(s)})
		if n := JSONSize(s); n != int64(len(got)) {
			t.Fatalf("%q: %d, want %d", s, n, len(got))
		}
	})
}
