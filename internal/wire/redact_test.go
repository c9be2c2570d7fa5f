package wire

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func TestRedactReaderEqualsReplace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[ab]{8,10}`).Draw(t, "key")
		s := rapid.StringMatching(`[ab ]{0,200}`).Draw(t, "text")
		if rapid.Bool().Draw(t, "plant") {
			at := rapid.IntRange(0, len(s)).Draw(t, "at")
			s = s[:at] + key + s[at:]
		}
		for _, r := range []io.Reader{strings.NewReader(s), iotest.OneByteReader(strings.NewReader(s)), iotest.DataErrReader(strings.NewReader(s))} {
			got, err := io.ReadAll(NewBlotter(key).Reader(r))
			if err != nil || string(got) != NewBlotter(key).Text(s) {
				t.Fatalf("got %q\nwant %q\nerror %v", got, NewBlotter(key).Text(s), err)
			}
		}
		if strings.Contains(NewBlotter(key).Text(s), key) {
			t.Fatalf("key left in %q", NewBlotter(key).Text(s))
		}
	})
}

// A stream must not be held back for longer than its tail looks like the key.
func TestRedactReaderDoesNotWait(t *testing.T) {
	pr, pw := io.Pipe()
	r := NewBlotter("sk-secret-key").Reader(pr)
	go pw.Write([]byte("data: x\n\n"))
	buf := make([]byte, 64)
	if n, err := r.Read(buf); err != nil || string(buf[:n]) != "data: x\n\n" {
		t.Fatalf("read %q, %v", buf[:n], err)
	}
	pw.Close()
	if _, err := r.Read(buf); err != io.EOF {
		t.Fatalf("end: %v", err)
	}
}

func TestRedactLeavesPlaceholders(t *testing.T) {
	for _, key := range []string{"", "none", "EMPTY"} {
		if got := NewBlotter(key).Text("none EMPTY"); got != "none EMPTY" {
			t.Errorf("key %q: %q", key, got)
		}
	}
	if got := NewBlotter("********").Text("bad key ********!"); got != "bad key ********!" {
		t.Errorf("stars: %q", got)
	}
	if got, _ := io.ReadAll(NewBlotter("********").Reader(strings.NewReader("x********y"))); string(got) != "x********y" {
		t.Errorf("stars: %q", got)
	}
}
