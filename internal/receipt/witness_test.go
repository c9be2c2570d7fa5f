package receipt

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// cosigner is a witness's private key with its public one.
type cosigner struct {
	name    string
	private ed25519.PrivateKey
	public  *Witness
}

func newCosigner(t testing.TB, name string) cosigner {
	t.Helper()
	sum := sha256.Sum256([]byte(name))
	c := cosigner{name: name, private: ed25519.NewKeyFromSeed(sum[:])}
	var err error
	if c.public, err = ParseWitness(c.line() + "\n"); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c cosigner) line() string { return FormatWitness(c.name, c.private.Public().(ed25519.PublicKey)) }

// witnessed has a sealer's log cosigned by some, at a time.
func witnessed(t testing.TB, s *Sealer, at func() time.Time, all ...cosigner) {
	t.Helper()
	var asked []PolicyWitness
	for _, c := range all {
		asked = append(asked, PolicyWitness{Key: c.public})
	}
	p, err := PolicyOf(asked...)
	if err != nil {
		t.Fatal(err)
	}
	s.Policy = p
	s.Cosign = func() (*Checkpoint, error) {
		c, err := s.Log.Checkpoint(nil)
		if err != nil {
			return nil, err
		}
		for _, w := range all {
			line := Cosign(w.name, w.private, c.body, at())
			with, err := c.With(w.public, line)
			if err != nil {
				return nil, err
			}
			if err := s.Log.Keep(c, w.public, line); err != nil {
				return nil, err
			}
			c = with
		}
		return c, nil
	}
}

func noon() time.Time { return time.Date(2026, 11, 30, 12, 0, 30, 0, time.UTC) }

func TestWitnessKeys(t *testing.T) {
	good := newCosigner(t, "witness.example/w1").line()
	f := strings.Split(good, "+")
	of := func(kind byte, size int) string {
		return f[0] + "+" + f[1] + "+" + base64.StdEncoding.EncodeToString(append([]byte{kind}, make([]byte, size)...))
	}
	for _, c := range []struct{ line, want string }{
		{"", "no public key of a witness"},
		{"x", "no public key of a witness"},
		{f[0] + "+" + f[1], "no public key of a witness"},
		{"a b+" + f[1] + "+" + f[2], "no public key of a witness"},
		{"\x1b[31m+" + f[1] + "+" + f[2], "no public key of a witness"},
		{"other.example+" + f[1] + "+" + f[2], "another hash"},
		{f[0] + "+00000000+" + f[2], "another hash"},
		{of(1, 32), "none that cosigns (type 4)"},
		{of(6, 1312), "ML-DSA-44"},
		{of(4, 31), "of type 4 and 31 bytes"},
		{of(9, 32), "of type 9"},
		{key(t, "one").Public(), "none that cosigns (type 4)"},
		{"PRIVATE+KEY+secretsecret", "this is a private key"},
	} {
		if _, err := ParseWitness(c.line); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secretsecret") {
			t.Errorf("%q: %v, want %q", c.line, err, c.want)
		}
	}
	if w, err := ParseWitness(good); err != nil || w.Name() != f[0] || fmt.Sprintf("%08x", w.KeyHash()) != f[1] {
		t.Errorf("%+v, %v", w, err)
	}
	if _, err := ParseVerifier(good); err == nil || !strings.Contains(err.Error(), "key of a witness") {
		t.Errorf("a witness's key is taken for a log's: %v", err)
	}
}

func TestPolicyFiles(t *testing.T) {
	a, b, c := newCosigner(t, "a.example"), newCosigner(t, "b.example"), newCosigner(t, "c.example")
	three := "witness a " + a.line() + " https://a.example/\nwitness b " + b.line() + "\n\twitness c " + c.line() + " \n"
	by := func(all ...cosigner) (out []Cosignature) {
		for _, x := range all {
			out = append(out, Cosignature{Witness: x.name, hash: x.public.hash})
		}
		return out
	}
	for name, c := range map[string]struct {
		text    string
		met     [][]Cosignature
		missing [][]Cosignature
	}{
		"none":   {three + "quorum none", [][]Cosignature{nil}, nil},
		"one":    {three + "# only b\nquorum b\n", [][]Cosignature{by(b), by(a, b)}, [][]Cosignature{nil, by(a, c)}},
		"any":    {three + "group g any a b c\nquorum g", [][]Cosignature{by(a), by(c)}, [][]Cosignature{nil}},
		"all":    {three + "group g all a b\nquorum g", [][]Cosignature{by(a, b)}, [][]Cosignature{by(a), by(b, c), by(b, b)}},
		"two":    {three + "group g 2 a b c\nquorum g", [][]Cosignature{by(a, c)}, [][]Cosignature{by(c), by(c, c)}},
		"nested": {three + "group g any a b\ngroup h all g c\nquorum h", [][]Cosignature{by(a, c), by(b, c)}, [][]Cosignature{by(a, b), by(c)}},
	} {
		p, err := ParsePolicy(c.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, x := range c.met {
			if err := p.Met(x); err != nil {
				t.Errorf("%s: %v is not enough: %v", name, x, err)
			}
		}
		for _, x := range c.missing {
			if err := p.Met(x); !errors.Is(err, ErrQuorum) {
				t.Errorf("%s: %v is enough", name, x)
			}
		}
	}
	other := FormatWitness("a2.example", a.private.Public().(ed25519.PublicKey))
	for _, c := range []struct{ text, want string }{
		{"", "has no quorum line"},
		{three, "has no quorum line"},
		{three + "quorum d", `line 4: no witness or group "d"`},
		{three + "quorum a\nquorum b", "line 5: is none of"},
		{three + "group g 4 a b c\nquorum g", "a number from 1 to 3"},
		{three + "group g 0 a\nquorum g", "a number from 1 to 1"},
		{three + "group g 01 a\nquorum g", "a number from 1 to 1"},
		{three + "group g any\nquorum g", "is none of"},
		{three + "group g 2 a a\nquorum g", "would count twice"},
		{three + "group g any a\ngroup h all g a\nquorum h", "would count twice"},
		{three + "group g any h\ngroup h any a\nquorum g", `no witness or group "h"`},
		{three + "group a any b\nquorum a", `the name "a" is taken`},
		{three + "group none any b\nquorum none", `the name "none" is taken`},
		{three + "witness d " + other + "\nquorum d", "it would count twice"},
		{"log " + a.line() + "\nquorum none", "key of a witness"},
		{"log " + key(t, "one").Public() + "\nlog " + key(t, "one").Public() + "\nquorum none", "there already"},
		{"witness a " + key(t, "one").Public() + "\nquorum a", "none that cosigns"},
		{"witness a " + a.line() + " ftp://x/\nquorum a", "no http or https URL"},
		{"witness a " + a.line() + " https://user:secret@x/\nquorum a", "no http or https URL"},
		{"quorum none\r\n", "line 1: has a control character"},
		{"quorum none # why", "line 1: is none of"},
		{"allow everything\nquorum none", "line 1: is none of"},
	} {
		if _, err := ParsePolicy(c.text); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

// A log that is its own witness, and a policy for another log, are refused.
func TestPolicyIsForTheLog(t *testing.T) {
	s := sealer(t, t.TempDir())
	dir := sealedRun(t, s)
	own, err := base64.StdEncoding.DecodeString(keyOf(s.Key.Public()))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"witness w " + FormatWitness("friend.example", own[1:]) + "\nquorum w": "nobody is a witness for himself",
		"log " + key(t, "two").Public() + "\nquorum none":                      "the policy is for other logs",
	} {
		p, err := ParsePolicy(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := VerifyDir(dir, Against{Key: s.Key.Verifier(), Policy: p}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func problemsAgainst(t testing.TB, dir string, a Against) string {
	t.Helper()
	all, err := VerifyDir(dir, a)
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, x := range all {
		out = append(out, x.Problems...)
	}
	return strings.Join(out, "; ")
}

func TestCosignedRunVerifies(t *testing.T) {
	s := sealer(t, t.TempDir())
	a, b := newCosigner(t, "a.example"), newCosigner(t, "b.example")
	witnessed(t, s, noon, a, b)
	dir := sealedRun(t, s)
	all, err := VerifyDir(dir, Against{Key: s.Key.Verifier(), Policy: s.Policy, Log: s.Log})
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, x := range all {
		if len(x.Problems) > 0 || len(x.Cosigned) != 2 || x.Cosigned[1].Witness != "b.example" || !x.Cosigned[1].Time.Equal(noon()) || len(x.Unchecked) > 0 {
			t.Errorf("%+v", x)
		}
	}
	// Whoever does not know the witnesses is told that nobody vouches for them.
	all, err = VerifyDir(dir, Against{Key: s.Key.Verifier()})
	if err != nil || len(all[0].Unchecked) != 2 || len(all[0].Cosigned) != 0 || len(all[0].Problems) > 0 {
		t.Errorf("%+v, %v", all, err)
	}
	// A witness that has cosigned nothing is missed.
	other, err := PolicyOf(PolicyWitness{Key: newCosigner(t, "c.example").public})
	if err != nil {
		t.Fatal(err)
	}
	if got := problemsAgainst(t, dir, Against{Key: s.Key.Verifier(), Policy: other}); !strings.Contains(got, "too few witnesses have cosigned: 0 of 1 have, not c.example") {
		t.Errorf("%q", got)
	}
}

// Whatever byte of a cosigned proof is changed is found by whoever knows the
// witnesses, and a signature that was taken from elsewhere is none.
func TestCosignedProofsCannotBeChanged(t *testing.T) {
	s := sealer(t, t.TempDir())
	a, b := newCosigner(t, "a.example"), newCosigner(t, "b.example")
	witnessed(t, s, noon, a, b)
	dir := sealedRun(t, s)
	read := func(name string) []byte {
		p, err := os.ReadFile(filepath.Join(dir, "receipt", name))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	proof, earlier := read("result.tlog-proof"), read("plan.tlog-proof")
	v := s.Key.Verifier()
	check := func(p []byte) error {
		got, err := CheckProof(v, s.Policy, p)
		if err == nil {
			err = s.Policy.Met(got.Cosigned)
		}
		return err
	}
	if err := check(proof); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		p := bytes.Clone(proof)
		i := rapid.IntRange(0, len(p)-1).Draw(t, "at")
		switch rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			p[i] ^= byte(rapid.IntRange(1, 255).Draw(t, "xor"))
		case 1:
			p = append(p[:i], p[i+1:]...)
		case 2:
			p = p[:i]
		}
		if check(p) == nil {
			t.Fatalf("%q is taken", p)
		}
	})
	lines := func(p []byte) []string { return strings.SplitAfter(strings.TrimSuffix(string(p), "\n")+"\n", "\n") }
	now, was := lines(proof), lines(earlier)
	last := len(now) - 2 // b's; a's before it
	for what, p := range map[string]string{
		"replayed":          strings.Join(now[:last], "") + was[len(was)-2],
		"twice":             strings.Join(now[:last], "") + now[last-1],
		"and twice":         string(proof) + now[last],
		"under a's name":    strings.Join(now[:last-1], "") + strings.Replace(now[last], "b.example", "a.example", 1) + now[last],
		"without":           strings.Join(now[:last], ""),
		"the log's is gone": strings.Join(now[:last-2], "") + now[last-1] + now[last],
	} {
		if check([]byte(p)) == nil {
			t.Errorf("%s: it is taken", what)
		}
	}
}

// A cosignature from before the receipt says that it was sealed shows that one
// of the clocks was wrong.
func TestCosignedBeforeItWasSealed(t *testing.T) {
	s := sealer(t, t.TempDir())
	witnessed(t, s, func() time.Time { return noon().Add(-time.Hour) }, newCosigner(t, "a.example"))
	dir := sealedRun(t, s)
	if got := problemsAgainst(t, dir, Against{Key: s.Key.Verifier(), Policy: s.Policy}); !strings.Contains(got, `witness "a.example" had seen this at 2026-11-30T11:00:30Z, and it says that it was sealed at 2026-11-30T12:00:`) {
		t.Errorf("%q", got)
	}
}

// Too few cosignatures are an error, and all is kept and can be cosigned later.
func TestTooFewWitnesses(t *testing.T) {
	s := sealer(t, t.TempDir())
	a := newCosigner(t, "a.example")
	witnessed(t, s, noon, a)
	ask := s.Cosign
	away := func() (*Checkpoint, error) {
		c, err := s.Log.Checkpoint(nil)
		return c, errors.Join(err, s.Policy.Met(nil))
	}
	s.Cosign = away
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plan.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Plan(dir, "", "1.0"); !errors.Is(err, ErrQuorum) {
		t.Errorf("%v", err)
	}
	alone, with := Against{Key: s.Key.Verifier()}, Against{Key: s.Key.Verifier(), Policy: s.Policy}
	if got := problemsAgainst(t, dir, alone); got != "" {
		t.Errorf("what was sealed without witnesses: %s", got)
	}
	if n, err := s.Renew(dir); n != 0 || !errors.Is(err, ErrQuorum) {
		t.Errorf("%d, %v", n, err)
	}
	s.Cosign = ask
	if n, err := s.Renew(dir); n != 1 || err != nil || problemsAgainst(t, dir, with) != "" {
		t.Errorf("%d, %v, %s", n, err, problemsAgainst(t, dir, with))
	}
	s.Cosign = away // nothing is missing any more
	if n, err := s.Renew(dir); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	// The plan's proof is made up for when the result is sealed.
	s.Cosign = away
	other := t.TempDir()
	os.WriteFile(filepath.Join(other, "plan.json"), []byte("{}"), 0o600)
	s.Plan(other, "", "1.0")
	s.Cosign = ask
	for _, name := range []string{"exchanges.jsonl", "result.json"} {
		os.WriteFile(filepath.Join(other, name), nil, 0o600)
	}
	if err := s.Result(other, TestResult{}); err != nil || problemsAgainst(t, other, with) != "" {
		t.Errorf("%v, %s", err, problemsAgainst(t, other, with))
	}
}

// What was taken out of a directory is in the log.
func TestLogKnowsOfResults(t *testing.T) {
	for name, c := range map[string]struct {
		change func(dir string, s *Sealer) error
		want   string
	}{
		"nothing": {func(string, *Sealer) error { return nil }, ""},
		"result and receipt": {func(d string, _ *Sealer) error {
			return errors.Join(os.Remove(d+"/result.json"), os.Remove(d+"/receipt/result.dsse.json"), os.Remove(d+"/receipt/result.tlog-proof"))
		}, `the log has a result of this run, which is not here: entry 1, "verdict clean"`},
		"older result": {func(d string, s *Sealer) error {
			was := t.TempDir()
			return errors.Join(os.CopyFS(was, os.DirFS(d)), s.Result(d, TestResult{Verdict: "leak"}), os.RemoveAll(d+"/receipt"), os.CopyFS(d+"/receipt", os.DirFS(was+"/receipt")))
		}, `the log has another result of this run, which is newer: entry 2, "verdict leak"`},
		"newer result": {func(d string, s *Sealer) error { return s.Result(d, TestResult{Verdict: "leak"}) }, ""},
		"log cut": {func(_ string, s *Sealer) error {
			return errors.Join(os.RemoveAll(s.Log.dir), func() error {
				now := s.Now()
				_, err := s.Log.Append(s.Key, Entry{Kind: "plan", SHA256: Digest(nil), Time: now}.format(), now)
				return err
			}())
		}, "the log that plan.tlog-proof is of: its 1 entries are not those that the log here begins with: there are two logs"},
		"old log": {func(_ string, s *Sealer) error {
			return errors.Join(os.RemoveAll(s.Log.dir+"/tile"), os.Remove(s.Log.dir+"/checkpoint"))
		}, "the log that plan.tlog-proof is of: it has 1 entries, and the log here has only 0"},
		"entry changed": {func(_ string, s *Sealer) error { return flip(s.Log.dir + "/tile/entries/000.p/2") }, "the log: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := sealer(t, t.TempDir())
			dir := sealedRun(t, s)
			if err := c.change(dir, s); err != nil {
				t.Fatal(err)
			}
			got := problemsAgainst(t, dir, Against{Key: s.Key.Verifier(), Log: s.Log})
			if lax := problemsAgainst(t, dir, Against{Key: s.Key.Verifier(), Log: s.Log, OtherLog: true}); strings.Contains(c.want, "tlog-proof is of") && lax != "" {
				t.Errorf("another log that may be another is a problem: %s", lax)
			}
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func FuzzParsePolicy(f *testing.F) {
	a := newCosigner(f, "a.example")
	f.Add("witness a " + a.line() + " https://x/\ngroup g any a\nquorum g\n")
	f.Add("quorum none")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePolicy(text)
		if err != nil {
			return
		}
		if p.quorum != "" && p.Met(nil) == nil {
			t.Errorf("%q: nobody is enough", text)
		}
		var all []Cosignature
		for _, w := range p.Witnesses {
			all = append(all, Cosignature{Witness: w.Key.name, hash: w.Key.hash})
		}
		if err := p.Met(all); err != nil {
			t.Errorf("%q: everybody is not enough: %v", text, err)
		}
	})
}
