package receipt

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Folder is where a run directory keeps its receipts.
const Folder = "receipt"

// filesName lists every file of a run with its digest, as sha256sum does.
const filesName = Folder + "/files.sha256"

// Sealer seals run directories, preflights, decisions and findings into one log.
type Sealer struct {
	Log *Log
	Key *Signer
	Now func() time.Time
	// Cosign has witnesses cosign the log as it is, and returns its checkpoint
	// with what they signed; with an error if they are too few. nil asks nobody.
	Cosign func() (*Checkpoint, error)
	Policy *Policy // the witnesses that Cosign asks
}

// Plan seals a run's plan, before its first request.
func (s *Sealer) Plan(dir, reason, version string) error {
	subject, err := digests(dir, "plan.json")
	if err != nil {
		return err
	}
	return s.seal(dir, "plan", subject, PlanPredicate, Plan{reason, s.Now().UTC(), version}, reason)
}

// Result seals all that a run has left: every file of its directory.
func (s *Sealer) Result(dir string, r TestResult) error {
	if err := writeFiles(dir); err != nil {
		return err
	}
	subject, err := digests(dir, "plan.json", "exchanges.jsonl", "result.json", filesName)
	if err != nil {
		return err
	}
	r.Ended, r.Configuration = s.Now().UTC(), subject[:1]
	return s.seal(dir, "result", subject, RunPredicate, r, "verdict "+r.Verdict)
}

// Decide seals a decision with its basis: files by digest. The files may be
// anywhere; the receipt goes into dir.
func (s *Sealer) Decide(dir string, d Decision, basis []string) error {
	var subject []Resource
	for _, name := range basis {
		sum, err := digestFile(os.DirFS(filepath.Dir(name)), filepath.Base(name))
		if err != nil {
			return err
		}
		subject = append(subject, Resource{filepath.ToSlash(name), sum})
	}
	d.Sealed = s.Now().UTC()
	if len(subject) == 0 { // a decision is about itself
		subject = []Resource{{"decision", map[string]string{"sha256": Digest([]byte(d.Decision + "\n" + d.Because))}}}
	}
	return s.seal(dir, "decision", subject, DecisionPredicate, d, d.Decision)
}

// Preflight seals what a preflight has come to. report is a file in dir.
func (s *Sealer) Preflight(dir, report, verifier string, properties []string) error {
	subject, err := digests(dir, report)
	if err != nil {
		return err
	}
	v := Verification{map[string]string{"id": verifier}, s.Now().UTC(), properties}
	return s.seal(dir, "preflight", subject, SVRPredicate, v, strings.Join(properties, " "))
}

// Finding seals what a guard saw in an answer. report is a file in dir.
func (s *Sealer) Finding(dir, report string, f Finding) error {
	subject, err := digests(dir, report)
	if err != nil {
		return err
	}
	f.Sealed = s.Now().UTC()
	return s.seal(dir, "finding", subject, FindingPredicate, f, strings.Join(f.Kinds, " ")+" in request "+f.Request)
}

// maxWords bounds the line for people in an entry, bytes.
const maxWords = 512

// seal writes envelope and proof of one receipt. The log comes between the
// two: a receipt that is in the log and has lost its proof is proven again.
func (s *Sealer) seal(dir, kind string, subject []Resource, predicateType string, predicate any, words string) error {
	payload, err := statement(predicateType, subject, predicate)
	if err != nil {
		return err
	}
	envelope, err := seal(s.Key, payload)
	if err != nil {
		return err
	}
	folder := filepath.Join(dir, Folder)
	if err := keep(folder, kind+".dsse.json", envelope); err != nil {
		return fmt.Errorf("keep the receipt: %w", err)
	}
	words = strings.Map(printable, words)
	words = strings.ToValidUTF8(words[:min(len(words), maxWords)], "")
	of, err := planOf(folder, kind)
	if err != nil {
		return err
	}
	index, err := s.Log.appendMade(s.Key, func() ([]byte, time.Time) {
		now := s.Now().UTC()
		return Entry{kind, Digest(envelope), now, words, of}.format(), now
	})
	if err != nil {
		return err
	}
	checkpoint, cosigned := s.cosign()
	if checkpoint == nil {
		return cosigned
	}
	proof, err := s.Log.proveIn(checkpoint, index)
	if err != nil {
		return err
	}
	if err := keep(folder, kind+".tlog-proof", proof); err != nil {
		return fmt.Errorf("keep the receipt's proof: %w", err)
	}
	if err := keep(folder, "key.pub", []byte(s.Key.Public()+"\n")); err != nil {
		return fmt.Errorf("keep the receipt's public key: %w", err)
	}
	if s.Policy != nil && cosigned == nil {
		s.renewAll(dir, checkpoint) // the plan's, if witnesses were away then; they need not be back
	}
	return cosigned
}

// planOf is the digest of the plan that a result is of, "" if none is there.
func planOf(folder, kind string) (string, error) {
	if kind != "result" {
		return "", nil
	}
	p, err := readIn(folder, "plan.dsse.json", maxEnvelope)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the plan's receipt: %w", err)
	}
	return Digest(p), nil
}

// cosign is the log's checkpoint, cosigned where witnesses are asked. A
// checkpoint with an error is good, and cosigned by too few.
func (s *Sealer) cosign() (*Checkpoint, error) {
	if s.Cosign == nil {
		return s.Log.checkpoint(nil)
	}
	c, err := s.Cosign()
	if c == nil && err == nil {
		panic("kvcanary: internal error: a cosigner returned no checkpoint")
	}
	if c == nil {
		if c, err2 := s.Log.checkpoint(nil); err2 == nil {
			return c, err
		}
	}
	return c, err
}

// Renew asks witnesses again and proves the receipts of a directory by what
// they signed, where fewer than the policy wants have cosigned so far: a witness
// may have been away. It returns how many proofs were renewed, and an error if
// one is not cosigned by enough even now. A proof that is is left alone, since
// an older cosignature says more.
func (s *Sealer) Renew(dir string) (int, error) {
	c, err := s.cosign()
	if c == nil {
		return 0, err
	}
	n, missing := s.renewAll(dir, c)
	if missing == nil && errors.Is(err, ErrQuorum) {
		err = nil // nothing was missing
	}
	return n, cmp.Or(err, missing)
}

func (s *Sealer) renewAll(dir string, c *Checkpoint) (n int, missing error) {
	names, err := fs.Glob(os.DirFS(dir), Folder+"/*.tlog-proof")
	if err != nil || len(names) == 0 {
		return 0, fmt.Errorf("%s has no receipts", dir)
	}
	for _, name := range names {
		renewed, err := s.renew(dir, name, c)
		if err != nil {
			missing = fmt.Errorf("%s: %w", name, err)
		}
		if renewed {
			n++
		}
	}
	return n, missing
}

// renew proves one receipt by a checkpoint, if that is better than what it has.
// The error says that too few have cosigned even so.
func (s *Sealer) renew(dir, name string, c *Checkpoint) (bool, error) {
	p, err := readIn(dir, name, maxProof)
	if err != nil {
		return false, err
	}
	was, err := CheckProof(s.Log.v, s.Policy, p)
	if err != nil {
		return false, err
	}
	if err := s.Log.Begins(was.Tree); err != nil {
		return false, fmt.Errorf("the log that it is of: %w", err)
	}
	short := s.Policy.Met(was.Cosigned)
	better := s.Policy.Met(c.Cosigned) == nil || len(was.Cosigned) == 0 && len(c.Cosigned) > 0
	if short == nil || !better {
		return false, short
	}
	proof, err := s.Log.proveIn(c, was.Index)
	if err != nil {
		return false, err
	}
	if err := keep(dir, name, proof); err != nil {
		return false, err
	}
	return true, s.Policy.Met(c.Cosigned)
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}

// digests are those of files of a directory, by the names given.
func digests(dir string, names ...string) ([]Resource, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	defer root.Close()
	var out []Resource
	for _, name := range names {
		sum, err := digestFile(root.FS(), name)
		if err != nil {
			return nil, err
		}
		out = append(out, Resource{name, sum})
	}
	return out, nil
}

func digestFile(in fs.FS, name string) (map[string]string, error) {
	f, err := openPlain(in, name)
	if err != nil {
		return nil, fmt.Errorf("read what is sealed: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, fmt.Errorf("read what is sealed: %w", err)
	}
	return map[string]string{"sha256": hex.EncodeToString(h.Sum(nil))}, nil
}

// openPlain opens a file, and nothing that a reader could wait at for ever.
func openPlain(in fs.FS, name string) (fs.File, error) {
	st, err := fs.Stat(in, name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("is no plain file")}
	}
	return in.Open(name)
}

// writeFiles lists the files of a run, receipts excepted.
func writeFiles(dir string) error {
	names, err := filesOf(dir)
	if err != nil {
		return err
	}
	sums, err := digests(dir, names...)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, s := range sums {
		fmt.Fprintf(&b, "%s  %s\n", s.Digest["sha256"], s.Name)
	}
	return keep(dir, filesName, []byte(b.String()))
}

// filesOf names every file of a run in order. Links are not followed, and no
// file of a run is one.
func filesOf(dir string) ([]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	defer root.Close()
	var out []string
	err = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && name == Folder:
			return fs.SkipDir
		case e.IsDir():
			return nil
		case !e.Type().IsRegular():
			return fmt.Errorf("%s is no plain file", path.Join(dir, name))
		}
		out = append(out, name)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the files of the run: %w", err)
	}
	slices.Sort(out)
	return out, nil
}

// parseFiles reads the list that writeFiles makes.
func parseFiles(r io.Reader) (map[string]string, error) {
	out := map[string]string{}
	in := bufio.NewScanner(r)
	for in.Scan() {
		sum, name, ok := strings.Cut(in.Text(), "  ")
		if !ok || len(sum) != 64 || !fs.ValidPath(name) || out[name] != "" {
			return nil, errors.New(filesName + " is malformed")
		}
		out[name] = sum
	}
	return out, in.Err()
}
