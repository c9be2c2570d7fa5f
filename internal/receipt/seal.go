package receipt

import (
	"bufio"
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
	index, err := s.Log.appendMade(s.Key, func() ([]byte, time.Time) {
		now := s.Now().UTC()
		return Entry{kind, Digest(envelope), now, words}.format(), now
	})
	if err != nil {
		return err
	}
	proof, err := s.Log.Prove(index)
	if err != nil {
		return err
	}
	if err := keep(folder, kind+".tlog-proof", proof); err != nil {
		return fmt.Errorf("keep the receipt's proof: %w", err)
	}
	if err := keep(folder, "key.pub", []byte(s.Key.Public()+"\n")); err != nil {
		return fmt.Errorf("keep the receipt's public key: %w", err)
	}
	return nil
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
