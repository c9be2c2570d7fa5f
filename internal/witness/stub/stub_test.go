package stub

import (
	"crypto/ed25519"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/kvcanary/kvcanary/internal/receipt"
)

// The witness of the tests takes what grows and nothing else: else a test that
// it cosigns would show nothing.
func TestWitnessChecks(t *testing.T) {
	private, public, err := note.GenerateKey(rand.NewChaCha8([32]byte{1}), "log.example")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := note.GenerateKey(rand.NewChaCha8([32]byte{2}), "log.example")
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := note.NewSigner(other)
	if err != nil {
		t.Fatal(err)
	}
	w := &Witness{Name: "w", Key: ed25519.NewKeyFromSeed(make([]byte, 32)), Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
	if err := w.Know(public); err != nil {
		t.Fatal(err)
	}
	at := httptest.NewServer(w)
	defer at.Close()
	var hashes []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		var out []tlog.Hash
		for _, i := range indexes {
			out = append(out, hashes[i])
		}
		return out, nil
	})
	roots := []tlog.Hash{{}}
	for n := range int64(5) {
		h, err := tlog.StoredHashes(n, fmt.Append(nil, n), reader)
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, h...)
		root, err := tlog.TreeHash(n+1, reader)
		if err != nil {
			t.Fatal(err)
		}
		roots = append(roots, root)
	}
	checkpoint := func(s note.Signer, origin string, n int64, root tlog.Hash) string {
		p, err := note.Sign(&note.Note{Text: fmt.Sprintf("%s\n%d\n%v\n", origin, n, root)}, s)
		if err != nil {
			t.Fatal(err)
		}
		return string(p)
	}
	proof := func(from, to int64) string {
		p, err := tlog.ProveTree(to, from, reader)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, h := range p {
			fmt.Fprintln(&b, h)
		}
		return b.String()
	}
	good := func(n int64) string { return checkpoint(signer, "log.example", n, roots[n]) }
	for _, c := range []struct {
		name, body string
		status     int
		answer     string
	}{
		{"first", "old 0\n\n" + good(2), 200, "— w "},
		{"again from nothing", "old 0\n\n" + good(2), 409, "2\n"},
		{"again", "old 2\n\n" + good(2), 200, "— w "},
		{"another root", "old 2\n\n" + checkpoint(signer, "log.example", 2, roots[3]), 409, ""},
		{"smaller", "old 2\n\n" + good(1), 400, ""},
		{"no proof", "old 2\n\n" + good(5), 422, ""},
		{"wrong proof", "old 2\n" + proof(3, 5) + "\n" + good(5), 422, ""},
		{"grows", "old 2\n" + proof(2, 5) + "\n" + good(5), 200, "— w "},
		{"stranger", "old 5\n\n" + checkpoint(stranger, "log.example", 5, roots[5]), 403, ""},
		{"other log", "old 5\n\n" + checkpoint(signer, "other.example", 5, roots[5]), 404, ""},
		{"nothing", "", 400, ""},
	} {
		r, err := http.Post(at.URL+"/add-checkpoint", "text/plain", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		p, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || r.StatusCode != c.status || !strings.HasPrefix(string(p), c.answer) || c.answer == "" && len(p) > 0 {
			t.Errorf("%s: %d %q, %v", c.name, r.StatusCode, p, err)
		}
	}
	if w.Seen("log.example") != 5 || w.Seen("other.example") != 0 {
		t.Error("it remembers another size than it has cosigned")
	}
	if _, err := receipt.ParseWitness(w.Public()); err != nil {
		t.Error(err)
	}
}
