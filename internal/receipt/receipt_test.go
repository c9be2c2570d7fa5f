package receipt

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"
)

// random is a source of bytes that depends on a seed alone.
func random(seed string) *rand.ChaCha8 { return rand.NewChaCha8(sha256.Sum256([]byte(seed))) }

func key(t testing.TB, seed string) *Signer {
	t.Helper()
	private, public, err := NewKey(random(seed), "log.example/"+seed)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseSigner(private + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if s.Public() != public {
		t.Fatalf("public key %q, want %q", s.Public(), public)
	}
	return s
}

// clock goes on a second with each look.
type clock struct{ at time.Time }

func (c *clock) now() time.Time {
	c.at = c.at.Add(time.Second)
	return c.at
}

func sealer(t testing.TB, dir string) *Sealer {
	t.Helper()
	k := key(t, "one")
	l, err := Open(dir, k.Verifier())
	if err != nil {
		t.Fatal(err)
	}
	return &Sealer{Log: l, Key: k, Now: (&clock{time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}).now}
}

// sealedRun makes a run directory and seals it.
func sealedRun(t testing.TB, s *Sealer) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(path), 0o700)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("plan.json", `{"schema":"kvcanary.plan/v1"}`)
	if err := s.Plan(dir, "asked by ops\nafter an incident", "1.0"); err != nil {
		t.Fatal(err)
	}
	write("exchanges.jsonl", "{\"seq\":0}\n{\"seq\":1}\n")
	write("raw/000000", "an answer")
	write("raw/000001", "another answer")
	write("result.json", `{"verdict":"clean"}`)
	if err := s.Result(dir, TestResult{Result: "PASSED", Verdict: "clean", PassedTests: []string{"straddle"}}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// problems are all that verification finds, "" for none.
func problems(dir string, v *Verifier) string {
	all, err := VerifyDir(dir, Against{Key: v})
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, x := range all {
		out = append(out, x.Problems...)
	}
	return strings.Join(out, "; ")
}

func TestSealedRunVerifiesWithThePublicKeyAlone(t *testing.T) {
	s := sealer(t, t.TempDir())
	dir := sealedRun(t, s)
	v, err := ParseVerifier(s.Key.Public())
	if err != nil {
		t.Fatal(err)
	}
	all, err := VerifyDir(dir, Against{Key: v})
	if err != nil || len(all) != 2 || all[0].Name != "plan" || all[1].Name != "result" || problems(dir, v) != "" {
		t.Fatalf("%+v, %v", all, err)
	}
	if all[0].Entry.Words != "asked by ops after an incident" || all[1].Index != 1 || all[1].Size != 2 {
		t.Errorf("%+v", all)
	}
	if got := problems(dir, key(t, "two").Verifier()); !strings.Contains(got, "plan.dsse.json: the signature is not of this key") {
		t.Errorf("with another key: %s", got)
	}
}

// Whatever byte of whatever file is changed, verification names a file.
func TestAnyByteChangedIsFound(t *testing.T) {
	s := sealer(t, t.TempDir())
	dir := sealedRun(t, s)
	v := s.Key.Verifier()
	var names []string
	filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if !e.IsDir() && filepath.Base(path) != "key.pub" {
			names = append(names, path)
		}
		return nil
	})
	if len(names) != 10 {
		t.Fatalf("%d files: %v", len(names), names)
	}
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SampledFrom(names).Draw(t, "file")
		was, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		defer os.WriteFile(path, was, 0o600)
		is := bytes.Clone(was)
		switch i := rapid.IntRange(0, len(is)-1).Draw(t, "at"); rapid.IntRange(0, 3).Draw(t, "how") {
		case 0:
			is[i] ^= byte(rapid.IntRange(1, 255).Draw(t, "xor"))
		case 1:
			is = is[:i]
		case 2:
			is = append(is[:i], is[i+1:]...)
		case 3:
			is = append(is[:i], append([]byte{' '}, is[i:]...)...)
		}
		if err := os.WriteFile(path, is, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := problems(dir, v); got == "" {
			t.Fatalf("%s: %q is taken for %q", path, is, was)
		} else if base := filepath.Base(path); !strings.Contains(got, base) {
			t.Fatalf("%s was changed, and verification says: %s", base, got)
		}
	})
}

// What no signature covers is covered by the log: the name of the key, and how
// the envelope is written.
func TestEnvelopeOutsideItsSignatureIsFound(t *testing.T) {
	s := sealer(t, t.TempDir())
	dir := sealedRun(t, s)
	path := filepath.Join(dir, "receipt", "plan.dsse.json")
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, is := range map[string][]byte{
		"key id":      bytes.Replace(was, []byte(`"keyid": "`), []byte(`"keyid": "0`), 1),
		"no key id":   bytes.Replace(was, []byte(`"keyid"`), []byte(`"kid"`), 1),
		"white space": bytes.Replace(was, []byte(",\n"), []byte(", "), 1),
		"no end":      bytes.TrimRight(was, "\n"),
	} {
		if bytes.Equal(is, was) {
			t.Fatalf("%s: nothing was changed in %s", name, was)
		}
		if err := os.WriteFile(path, is, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := problems(dir, s.Key.Verifier()); !strings.Contains(got, "plan.dsse.json") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestFilesThatComeGoOrMoveAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		change func(dir string) error
		want   string
	}{
		"gone":    {func(d string) error { return os.Remove(d + "/raw/000001") }, "raw/000001: no such file"},
		"new":     {func(d string) error { return os.WriteFile(d+"/raw/000002", nil, 0o600) }, "raw/000002 was not there"},
		"swapped": {func(d string) error { return swap(d+"/raw/000000", d+"/raw/000001") }, "raw/000000 is not what was sealed"},
		"line":    {func(d string) error { return os.WriteFile(d+"/exchanges.jsonl", []byte("{\"seq\":0}\n"), 0o600) }, "exchanges.jsonl is not"},
		"lines": {func(d string) error {
			return os.WriteFile(d+"/exchanges.jsonl", []byte("{\"seq\":1}\n{\"seq\":0}\n"), 0o600)
		}, "exchanges.jsonl is not"},
		"result":  {func(d string) error { return os.WriteFile(d+"/result.json", []byte("{}\n"), 0o600) }, "result.json is not what was sealed"},
		"no plan": {func(d string) error { return os.Remove(d + "/receipt/plan.dsse.json") }, "the plan's receipt is not there"},
		"no result": {func(d string) error {
			return errors.Join(os.Remove(d+"/receipt/result.dsse.json"), os.Remove(d+"/receipt/result.tlog-proof"))
		}, "result.json is there, and no receipt of it"},
		"no proof": {func(d string) error { return os.Remove(d + "/receipt/plan.tlog-proof") }, "plan.tlog-proof"},
		"proofs":   {func(d string) error { return swap(d+"/receipt/plan.tlog-proof", d+"/receipt/result.tlog-proof") }, "receipt/plan.tlog-proof: it proves another receipt"},
		"receipts": {func(d string) error { return os.RemoveAll(d + "/receipt") }, "has no receipts"},
		"link": {func(d string) error {
			os.Remove(d + "/raw/000000")
			return os.Symlink("/etc/hostname", d+"/raw/000000")
		}, "raw/000000"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sealer(t, t.TempDir())
			dir := sealedRun(t, s)
			if err := c.change(dir); err != nil {
				t.Fatal(err)
			}
			if got := problems(dir, s.Key.Verifier()); strings.Count(got, c.want) != 1 {
				t.Errorf("%q, want %q, once", got, c.want)
			}
		})
	}
}

func swap(a, b string) error {
	p, err := os.ReadFile(a)
	if err != nil {
		return err
	}
	q, err := os.ReadFile(b)
	if err != nil {
		return err
	}
	if err := os.WriteFile(a, q, 0o600); err != nil {
		return err
	}
	return os.WriteFile(b, p, 0o600)
}

// A log over many entries proves each of them, and each size of itself.
func TestLogAgreesWithATreeThatIsComputedWhole(t *testing.T) {
	s := sealer(t, t.TempDir())
	const n = 300 // more than a tile
	var hashes []tlog.Hash
	whole := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		var out []tlog.Hash
		for _, i := range indexes {
			out = append(out, hashes[i])
		}
		return out, nil
	})
	for i := range int64(n) {
		now := s.Now()
		e := Entry{"plan", Digest(fmt.Append(nil, i)), now, "entry", ""}.format()
		got, err := s.Log.Append(s.Key, e, now)
		if err != nil || got != i {
			t.Fatalf("entry %d: index %d, %v", i, got, err)
		}
		stored, err := tlog.StoredHashes(i, e, whole)
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, stored...)
		want, err := tlog.TreeHash(i+1, whole)
		if tree, err2 := s.Log.Tree(); err != nil || err2 != nil || tree.Hash != want {
			t.Fatalf("size %d: root %v, want %v", i+1, tree.Hash, want)
		}
	}
	if got, err := s.Log.Check(); got != n || err != nil {
		t.Fatalf("%d entries, %v", got, err)
	}
	for _, i := range []int64{0, 1, 254, 255, 256, 257, n - 1} {
		p, err := s.Log.Prove(i)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := CheckProof(s.Key.Verifier(), nil, p); err != nil || got.Index != i || got.Entry.SHA256 != Digest(fmt.Append(nil, i)) {
			t.Errorf("entry %d: %+v, %v", i, got, err)
		}
	}
	for _, sizes := range [][2]int64{{1, n}, {255, 256}, {256, 257}, {n, n}, {100, 299}} {
		if _, _, err := s.Log.Consistent(sizes[0], sizes[1]); err != nil {
			t.Error(err)
		}
	}
}

func TestLogThatWasTamperedWithIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(dir string) error
		want   string
	}{
		"checkpoint gone": {func(d string) error { return os.Remove(d + "/checkpoint") }, "the checkpoint is gone"},
		"checkpoint":      {func(d string) error { return flip(d + "/checkpoint") }, "checkpoint"},
		"tile":            {func(d string) error { return flip(d + "/tile/0/000.p/3") }, "tile"},
		"tile cut":        {func(d string) error { return os.Truncate(d+"/tile/0/000.p/3", 64) }, "tile/0/000.p/3 has 64 bytes"},
		"tile gone":       {func(d string) error { return os.Remove(d + "/tile/0/000.p/3") }, "tile/0/000.p/3 is not there"},
		"entry":           {func(d string) error { return flip(d + "/tile/entries/000.p/3") }, "entry"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := sealer(t, dir)
			for range 3 {
				now := s.Now()
				if _, err := s.Log.Append(s.Key, Entry{"plan", Digest(nil), now, "", ""}.format(), now); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.change(dir); err != nil {
				t.Fatal(err)
			}
			_, err := s.Log.Check()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// flip changes a byte in the middle of a file.
func flip(path string) error {
	p, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	p[len(p)/2] ^= 1
	return os.WriteFile(path, p, 0o600)
}

func TestWhatALogRefuses(t *testing.T) {
	dir := t.TempDir()
	s := sealer(t, dir)
	now := s.Now()
	e := Entry{"plan", Digest(nil), now, "", ""}.format()
	if _, err := s.Log.Append(s.Key, e, now); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Log.Append(s.Key, e, now.Add(-time.Hour)); err == nil || !strings.Contains(err.Error(), "the last receipt was sealed at 2026-11-30T12:00:01Z") {
		t.Errorf("a clock that goes back: %v", err)
	}
	if _, err := s.Log.Append(s.Key, make([]byte, MaxEntry+1), now); err == nil {
		t.Error("an entry that is too long is taken")
	}
	if _, err := s.Log.Append(key(t, "two"), e, now); err == nil {
		t.Error("another key may write")
	}
	if _, err := Open(dir, key(t, "two").Verifier()); err == nil {
		t.Error("another key may read")
	}
	for _, text := range []string{"", "x", "PRIVATE+KEY+x", s.Key.Public()} {
		if _, err := ParseSigner(text); err == nil || text != "" && strings.Contains(err.Error(), text) && len(text) > 1 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Appending processes that are killed at any moment leave a log that opens, in
// which everything is that was acknowledged, and never two checkpoints of one size.
func TestKilledWritersLoseNothing(t *testing.T) {
	if os.Getenv("RECEIPT_WRITER") != "" {
		writer(t)
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	kills := 12
	if n := os.Getenv("KVCANARY_KILLS"); n != "" {
		fmt.Sscan(n, &kills)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	roots := map[int64]tlog.Hash{}
	acknowledged := map[string]bool{}
	for i := range kills {
		cmd := exec.Command(exe, "-test.run", "^TestKilledWritersLoseNothing$")
		cmd.Env = append(os.Environ(), "RECEIPT_WRITER="+dir, fmt.Sprint("RECEIPT_ROUND=", i))
		out := firstWrite{begun: make(chan struct{})}
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if i%4 > 0 { // most are killed while they append, some before
			select {
			case <-out.begun:
			case <-time.After(time.Minute):
				t.Error("a writer says nothing")
			}
		}
		time.Sleep(time.Duration(rng.IntN(40_000)) * time.Microsecond)
		cmd.Process.Kill()
		cmd.Wait()
		for line := range strings.Lines(out.all.String()) {
			f := strings.Fields(line)
			if len(f) != 3 || !strings.HasSuffix(line, "\n") {
				continue
			}
			acknowledged[f[0]] = true
			var n int64
			fmt.Sscan(f[1], &n)
			h, err := tlog.ParseHash(f[2])
			if err != nil {
				continue
			}
			if was, seen := roots[n]; seen && was != h {
				t.Fatalf("two checkpoints of size %d", n)
			}
			roots[n] = h
		}
	}
	l, err := Open(dir, key(t, "one").Verifier())
	if err != nil {
		t.Fatal(err)
	}
	n, err := l.Check()
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		p, err := l.Entry(i)
		if err != nil {
			t.Fatal(err)
		}
		e, err := ParseEntry(p)
		if err != nil {
			t.Fatal(err)
		}
		delete(acknowledged, e.SHA256)
	}
	if len(acknowledged) > 0 || len(roots) == 0 {
		t.Errorf("%d acknowledged entries of %d are lost, %d sizes were seen", len(acknowledged), n, len(roots))
	}
	for size, root := range roots {
		if a, _, err := l.Consistent(size, n); err != nil || a != root {
			t.Errorf("size %d: root %v, was %v, %v", size, a, root, err)
		}
	}
	if seen, err := l.CheckSeen(newCosigner(t, "w.example").public); err != nil || seen == nil || n-seen.Tree.N > int64(kills) {
		t.Errorf("the witness has seen %+v, %v", seen, err)
	}
	t.Logf("%d kills, %d entries, %d acknowledged sizes", kills, n, len(roots))
}

// firstWrite keeps what is written, and says when the first of it comes.
type firstWrite struct {
	all   bytes.Buffer
	begun chan struct{}
}

func (w *firstWrite) Write(p []byte) (int, error) {
	if w.all.Len() == 0 {
		close(w.begun)
	}
	return w.all.Write(p)
}

// writer appends until it is killed, says what is safe and has it cosigned.
func writer(t *testing.T) {
	k, w := key(t, "one"), newCosigner(t, "w.example")
	l, err := Open(os.Getenv("RECEIPT_WRITER"), k.Verifier())
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		now := time.Now().UTC()
		e := Entry{"plan", Digest(fmt.Append(nil, os.Getenv("RECEIPT_ROUND"), i, os.Getpid())), now, "", ""}
		if _, err := l.Append(k, e.format(), now); err != nil {
			t.Fatal(err)
		}
		tree, err := l.Tree()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s %d %v\n", e.SHA256, tree.N, tree.Hash)
		c, err := l.Checkpoint(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Keep(c, w.public, Cosign(w.name, w.private, c.body, now)); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzCheckProof(f *testing.F) {
	s := sealer(f, f.TempDir())
	for range 3 {
		now := s.Now()
		if _, err := s.Log.Append(s.Key, Entry{"plan", Digest(nil), now, "x", ""}.format(), now); err != nil {
			f.Fatal(err)
		}
	}
	good := map[string]bool{}
	for i := range int64(3) {
		p, err := s.Log.Prove(i)
		if err != nil {
			f.Fatal(err)
		}
		good[string(p)] = true
		f.Add(string(p))
	}
	f.Add(proofHeader + "\nextra \nindex 0\n\n")
	v := s.Key.Verifier()
	f.Fuzz(func(t *testing.T, p string) {
		if got, err := CheckProof(v, nil, []byte(p)); err == nil && !good[p] && len(got.Unchecked) == 0 {
			t.Errorf("a proof that nobody made is taken: %q", p)
		}
	})
}

func FuzzOpenEnvelope(f *testing.F) {
	s := key(f, "one")
	payload, err := statement(PlanPredicate, []Resource{{"a", map[string]string{"sha256": Digest(nil)}}}, Plan{})
	if err != nil {
		f.Fatal(err)
	}
	good, err := seal(s, payload)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(good))
	f.Add(`{"payloadType":"","payload":"","signatures":[]}`)
	v := s.Verifier()
	f.Fuzz(func(t *testing.T, p string) {
		if got, err := open(v, []byte(p)); err == nil && !bytes.Equal(got, payload) {
			t.Errorf("%q opens as %q", p, got)
		}
	})
}

// BenchmarkSeal seals a run of a thousand exchanges: plan, result and the
// digests of every file.
func BenchmarkSeal(b *testing.B) {
	dir := b.TempDir()
	os.MkdirAll(filepath.Join(dir, "raw"), 0o700)
	for _, name := range []string{"plan.json", "exchanges.jsonl", "result.json"} {
		os.WriteFile(filepath.Join(dir, name), make([]byte, 800_000), 0o600)
	}
	for i := range 1000 {
		os.WriteFile(filepath.Join(dir, "raw", fmt.Sprintf("%06d", i)), make([]byte, 2000), 0o600)
	}
	s := sealer(b, b.TempDir())
	for b.Loop() {
		if err := s.Plan(dir, "", "1.0"); err != nil {
			b.Fatal(err)
		}
		if err := s.Result(dir, TestResult{Result: "PASSED", Verdict: "clean"}); err != nil {
			b.Fatal(err)
		}
	}
}
