package canary

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// long is whether to run the sweeps whole: set KVCANARY_LONG=1.
var long = os.Getenv("KVCANARY_LONG") != ""

// testKey returns a key for tests; different seeds give different keys.
func testKey(seed byte) (k Key) {
	for i := range k {
		k[i] = seed + byte(i)
	}
	return k
}

func readAll(r io.Reader) string {
	b, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func mint(c *Coder, id ID, from, n int) string { return readAll(c.Words(id, from, n)) }

// failer is what a *testing.T and a *rapid.T have in common.
type failer interface {
	Helper()
	Fatalf(string, ...any)
}

// scanCut scans p in pieces of the sizes given, in turn.
func scanCut(c *Coder, o ScanOptions, p []byte, sizes ...int) (hits []Hit) {
	s := c.NewScanner(o, func(h Hit) { hits = append(hits, h) })
	for i := 0; len(p) > 0; i++ {
		n := min(len(p), max(1, sizes[i%len(sizes)]))
		if _, err := s.Write(p[:n:n]); err != nil {
			panic(err)
		}
		p = p[n:]
	}
	s.Close()
	return sortHits(hits)
}

func sameHits(t failer, text []byte, got, want []Hit) {
	t.Helper()
	ok := len(got) == len(want)
	for i := 0; ok && i < len(got); i++ {
		ok = got[i] == want[i]
	}
	if !ok {
		t.Fatalf("text %.4000q\n got %+v\nwant %+v", text, got, want)
	}
}

func wantPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if s := fmt.Sprint(recover()); !strings.HasPrefix(s, "kvcanary: internal error: ") {
			t.Errorf("panicked with %q", s)
		}
	}()
	f()
}
