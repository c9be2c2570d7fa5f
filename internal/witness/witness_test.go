package witness

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/mod/sumdb/note"

	"github.com/kvcanary/kvcanary/internal/receipt"
	"github.com/kvcanary/kvcanary/internal/witness/stub"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func now() time.Time { return start }

// seedKey is a witness's key.
func seedKey(seed string) ed25519.PrivateKey {
	sum := sha256.Sum256([]byte(seed))
	return ed25519.NewKeyFromSeed(sum[:])
}

func logKey(t testing.TB, name string) *receipt.Signer {
	t.Helper()
	private, _, err := receipt.NewKey(rand.NewChaCha8(sha256.Sum256([]byte(name))), name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := receipt.ParseSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openLog(t testing.TB, dir string, k *receipt.Signer) *receipt.Log {
	t.Helper()
	l, err := receipt.Open(dir, k.Verifier())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func grow(t testing.TB, l *receipt.Log, k *receipt.Signer, words string) {
	t.Helper()
	entry := fmt.Appendf(nil, `{"kind":"plan","sha256":"%s","time":"2026-11-30T12:00:00Z","words":"%s"}`, receipt.Digest(nil), words)
	if _, err := l.Append(k, entry, start); err != nil {
		t.Fatal(err)
	}
}

// honest starts a witness that knows the log.
func honest(t testing.TB, name string, log *receipt.Signer) (*stub.Witness, receipt.PolicyWitness) {
	t.Helper()
	w := &stub.Witness{Name: name, Key: seedKey(name), Now: now}
	if err := w.Know(log.Public()); err != nil {
		t.Fatal(err)
	}
	return w, at(t, name, w)
}

// at serves what is said to be a witness.
func at(t testing.TB, name string, h http.Handler) receipt.PolicyWitness {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	key, err := receipt.ParseWitness(receipt.FormatWitness(name, seedKey(name).Public().(ed25519.PublicKey)))
	if err != nil {
		t.Fatal(err)
	}
	return receipt.PolicyWitness{Key: key, URL: s.URL + "/witness/"}
}

func client(t testing.TB, all ...receipt.PolicyWitness) *Client {
	t.Helper()
	p, err := receipt.PolicyOf(all...)
	if err != nil {
		t.Fatal(err)
	}
	return &Client{HTTP: &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, Policy: p, Patience: 10 * time.Second, Now: now}
}

func TestWitnessesCosignAsTheLogGrows(t *testing.T) {
	k := logKey(t, "log.example")
	dir := t.TempDir()
	l := openLog(t, dir, k)
	one, w1 := honest(t, "one.example", k)
	_, w2 := honest(t, "two.example", k)
	c := client(t, w1, w2)
	for n := range int64(5) {
		grow(t, l, k, fmt.Sprint(n))
		got, all, err := c.Cosign(t.Context(), l)
		if err != nil || len(got.Cosigned) != 2 || got.Tree.N != n+1 || len(all) != 2 {
			t.Fatalf("%+v, %+v, %v", got, all, err)
		}
		kept, err := l.Checkpoint(c.Policy)
		if err != nil || len(kept.Cosigned) != 2 || kept.Cosigned[0].Time != start {
			t.Fatalf("%+v, %v", kept, err)
		}
	}
	if one.Seen("log.example") != 5 {
		t.Errorf("the witness has seen %d entries", one.Seen("log.example"))
	}
	// A log that has forgotten what the witness saw is told by it.
	if err := os.RemoveAll(filepath.Join(dir, "witness")); err != nil {
		t.Fatal(err)
	}
	grow(t, l, k, "more")
	if got, _, err := c.Cosign(t.Context(), l); err != nil || got.Tree.N != 6 || len(got.Cosigned) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	if seen, err := l.CheckSeen(w1.Key); err != nil || seen.Tree.N != 6 {
		t.Errorf("%+v, %v", seen, err)
	}
}

// One that is away, lies or is broken has not cosigned; the others have, and
// nothing of it gets into the log.
func TestBadWitnesses(t *testing.T) {
	const name = "bad.example"
	k := logKey(t, "log.example")
	other := openLog(t, t.TempDir(), logKey(t, "other.example"))
	grow(t, other, logKey(t, "other.example"), "x")
	foreign, err := other.Checkpoint(nil)
	if err != nil {
		t.Fatal(err)
	}
	body := func(signed []byte) string { b, _, _ := strings.Cut(string(signed), "\n\n"); return b + "\n" }
	said := func(status int, answer func(body string) string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			p, _ := io.ReadAll(r.Body)
			_, checkpoint, _ := strings.Cut(string(p), "\n\n")
			w.WriteHeader(status)
			io.WriteString(w, answer(body([]byte(checkpoint))))
		}
	}
	says := func(status int, text string) http.HandlerFunc {
		return said(status, func(string) string { return text })
	}
	plainKey := func(b string) string { // signs as a log does, type 1
		private, _, err := note.GenerateKey(rand.NewChaCha8([32]byte{9}), name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := note.NewSigner(private)
		if err != nil {
			t.Fatal(err)
		}
		p, err := note.Sign(&note.Note{Text: b}, s)
		if err != nil {
			t.Fatal(err)
		}
		_, line, _ := strings.Cut(string(p), "\n\n")
		return line
	}
	ahead := 0
	for what, c := range map[string]struct {
		h    http.Handler
		want string
	}{
		"forged":        {said(200, func(b string) string { return receipt.Cosign(name, seedKey("forger"), b, start) }), "no cosignature with the key"},
		"replayed":      {said(200, func(string) string { return receipt.Cosign(name, seedKey(name), "log.example\n1\nx\n", start) }), "no cosignature with the key"},
		"other log":     {said(200, func(string) string { return receipt.Cosign(name, seedKey(name), body(foreign.Signed()), start) }), "no cosignature with the key"},
		"too old":       {said(200, func(b string) string { return receipt.Cosign(name, seedKey(name), b, start.Add(-time.Hour)) }), "answered with an old cosignature"},
		"from tomorrow": {said(200, func(b string) string { return receipt.Cosign(name, seedKey(name), b, start.Add(time.Hour)) }), "one is wrong"},
		"no time":       {said(200, func(b string) string { return receipt.Cosign(name, seedKey(name), b, time.Unix(0, 0)) }), "no cosignature with the key"},
		"other type":    {said(200, plainKey), "no cosignature with the key"},
		"other name":    {said(200, func(b string) string { return receipt.Cosign("nice.example", seedKey(name), b, start) }), "no cosignature with the key"},
		"nothing":       {says(200, ""), "no cosignature with the key"},
		"no line end":   {said(200, func(b string) string { return strings.TrimSpace(receipt.Cosign(name, seedKey(name), b, start)) }), "no cosignature with the key"},
		"a note":        {said(200, func(b string) string { return b + "\n" }), "no cosignature with the key"},
		"escapes":       {says(200, "— bad.example \x1b[31m\n"), "no cosignature with the key"},
		"flood":         {says(200, strings.Repeat("— x AAAAAAAA\n", 10_000)), "longer than"},
		"unknown":       {says(404, "\x1b[2J"), "does not know this log (HTTP 404)"},
		"other key":     {says(403, ""), "by another key (HTTP 403)"},
		"broken":        {says(500, "<html>"), "it answered HTTP 500"},
		"redirect":      {http.RedirectHandler("http://127.0.0.1:1/", http.StatusTemporaryRedirect), "it answered HTTP 307"},
		"ahead":         {says(409, "900\n"), "it has seen 900 entries and the log here has 3"},
		"contradicts":   {says(409, "0\n"), "it contradicts itself"},
		"wavers":        {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { ahead++; says(409, fmt.Sprintln(1+ahead%2))(w, r) }), "another size each time"},
		"fork":          {says(422, ""), "another log of this name"},
		"same size":     {says(409, ""), "another log of this name"},
		"negative":      {says(409, "-3\n"), "another log of this name"},
		"hangs up":      {http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), "it cannot be reached"},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			l := openLog(t, dir, k)
			for n := range 3 {
				grow(t, l, k, fmt.Sprint(n))
			}
			_, good := honest(t, "good.example", k)
			bad := at(t, name, c.h)
			got, all, err := client(t, bad, good).Cosign(t.Context(), l)
			if len(all) != 2 || all[0].Err == nil || !strings.Contains(all[0].Err.Error(), c.want) || all[1].Err != nil {
				t.Fatalf("%+v, want %q", all, c.want)
			}
			if strings.Contains(all[0].Err.Error(), "\x1b") {
				t.Error("what the witness wrote is shown")
			}
			grave := errors.Is(err, ErrFork) || errors.Is(err, ErrCut)
			if !grave && !errors.Is(err, receipt.ErrQuorum) {
				t.Errorf("error %v", err)
			}
			if len(got.Cosigned) != 1 || got.Cosigned[0].Witness != "good.example" {
				t.Errorf("%+v", got.Cosigned)
			}
			p, err := os.ReadFile(filepath.Join(dir, "checkpoint"))
			if err != nil || strings.Contains(string(p), name) || !strings.Contains(string(p), "good.example") {
				t.Errorf("%q, %v", p, err)
			}
			if seen, err := l.Seen(bad.Key); seen != nil || err != nil {
				t.Errorf("%+v, %v", seen, err)
			}
		})
	}
}

// One that says nothing is waited for as long as the patience is.
func TestWitnessThatHangs(t *testing.T) {
	k := logKey(t, "log.example")
	l := openLog(t, t.TempDir(), k)
	grow(t, l, k, "x")
	done := make(chan struct{})
	w := at(t, "slow.example", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	defer close(done)
	c := client(t, w)
	c.Patience = 50 * time.Millisecond
	if _, all, err := c.Cosign(t.Context(), l); !errors.Is(err, receipt.ErrQuorum) || all[0].Err.Error() != "it cannot be reached: no answer in time" {
		t.Errorf("%+v, %v", all, err)
	}
}

// A log that was put back from a copy, or of which there are two, is found out
// by whoever has seen the other.
func TestWitnessFindsCutsAndForks(t *testing.T) {
	for _, c := range []struct {
		name      string
		add, then int // entries after the copy was made: to the log that the witness saw, and to the copy
		want      error
	}{{"cut", 2, 0, ErrCut}, {"cut and grown", 2, 1, ErrCut}, {"fork of one size", 2, 2, ErrFork}, {"fork that is longer", 2, 4, ErrFork}, {"grown", 0, 3, nil}} {
		t.Run(c.name, func(t *testing.T) {
			k := logKey(t, "log.example")
			dir, copied := t.TempDir(), t.TempDir()
			l := openLog(t, dir, k)
			_, w := honest(t, "w.example", k)
			ask := client(t, w)
			for n := range 3 {
				grow(t, l, k, fmt.Sprint(n))
			}
			if _, _, err := ask.Cosign(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			for n := range c.add {
				grow(t, l, k, fmt.Sprint("seen", n))
			}
			if _, _, err := ask.Cosign(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			other := openLog(t, copied, k)
			for n := range c.then {
				grow(t, other, k, fmt.Sprint("hidden", n))
			}
			if c.then == 0 { // what was cosigned before is no news
				p, err := os.ReadFile(filepath.Join(copied, "checkpoint"))
				if err != nil {
					t.Fatal(err)
				}
				cut := strings.LastIndex(string(p), "—")
				if err := os.WriteFile(filepath.Join(copied, "checkpoint"), p[:cut], 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, _, err := ask.Cosign(t.Context(), other); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// A witness that has seen more each time it is asked, since others write to the
// log, is asked for as long as the log is longer than what it has seen.
func TestWitnessIsAskedWhileTheLogGrows(t *testing.T) {
	k := logKey(t, "log.example")
	l := openLog(t, t.TempDir(), k)
	for n := range 8 {
		grow(t, l, k, fmt.Sprint(n))
	}
	stub, _ := honest(t, "w.example", k)
	seen := 0
	asked := at(t, "w.example", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seen++; seen > 6 {
			stub.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusConflict)
		fmt.Fprintln(w, seen)
	}))
	if got, all, err := client(t, asked).Cosign(t.Context(), l); err != nil || len(got.Cosigned) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

// Many who write to one log have all they seal cosigned, and the witness sees
// one log.
func TestManyWritersOneWitness(t *testing.T) {
	k := logKey(t, "log.example")
	dir := t.TempDir()
	w, asked := honest(t, "w.example", k)
	c := client(t, asked)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			l, err := receipt.Open(dir, k.Verifier())
			if err != nil {
				t.Error(err)
				return
			}
			s := &receipt.Sealer{Log: l, Key: k, Now: now, Policy: c.Policy, Cosign: func() (*receipt.Checkpoint, error) {
				got, all, err := c.Cosign(t.Context(), l)
				if err != nil {
					err = fmt.Errorf("%w: %+v", err, all)
				}
				return got, err
			}}
			for n := range 4 {
				out := filepath.Join(dir, "out", fmt.Sprint(i, n))
				if err := s.Decide(out, receipt.Decision{Decision: fmt.Sprint(i, n), Because: "test"}, nil); err != nil {
					t.Error(err)
				}
				all, err := receipt.VerifyDir(out, receipt.Against{Key: k.Verifier(), Policy: c.Policy, Log: l})
				if err != nil || len(all[0].Problems) > 0 || len(all[0].Cosigned) != 1 {
					t.Errorf("%+v, %v", all, err)
				}
			}
		})
	}
	wg.Wait()
	l := openLog(t, dir, k)
	if n, err := l.Check(); n != 24 || err != nil || w.Seen("log.example") > 24 {
		t.Errorf("%d entries, %v; the witness has seen %d", n, err, w.Seen("log.example"))
	}
}
