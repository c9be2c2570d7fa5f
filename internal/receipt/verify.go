package receipt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// Verified is one receipt and what was found wrong with it.
type Verified struct {
	Name      string    `json:"name"` // "plan", "result", ...
	Statement Statement `json:"statement"`
	Entry     Entry     `json:"entry"`
	Index     int64     `json:"index"` // in the log
	Size      int64     `json:"size"`  // of the log that the proof is for
	// Cosigned are the witnesses of the policy that have seen that log.
	Cosigned []Cosignature `json:"cosigned,omitempty"`
	// Unchecked are names under signatures that nobody's key was given for.
	Unchecked []string `json:"unchecked,omitempty"`
	// InLog says that it was found in the log that was at hand.
	InLog    bool     `json:"in_log,omitempty"`
	Problems []string `json:"problems,omitempty"`

	tree   tlog.Tree
	digest string // of the envelope
}

// Against is what receipts are checked against.
type Against struct {
	Key    *Verifier
	Policy *Policy // witnesses that are known, and how many have to have cosigned; nil for none
	Log    *Log    // the log, where it is at hand; nil if not
	// OtherLog says that Log may be another than the one that the receipts are
	// in, which is then no problem of theirs.
	OtherLog bool
}

// VerifyDir checks every receipt of a directory, and every file that they are
// about, offline. It is an error if there are none, or if they cannot be read
// at all; what is wrong with one stands in its problems.
func VerifyDir(dir string, a Against) ([]Verified, error) {
	if err := a.Policy.For(a.Key); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, bare(err))
	}
	defer root.Close()
	names, err := fs.Glob(root.FS(), Folder+"/*.dsse.json")
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("%s has no receipts: it was not sealed, or they were taken away", dir)
	}
	var out []Verified
	for _, name := range names {
		kind := strings.TrimSuffix(strings.TrimPrefix(name, Folder+"/"), ".dsse.json")
		out = append(out, verify(root.FS(), kind, a))
	}
	slices.SortStableFunc(out, func(a, b Verified) int { return int(a.Index - b.Index) })
	inOrder(out)
	if _, err := fs.Lstat(root.FS(), resultName); err == nil {
		unsealed(out)
	}
	inLog(out, a.Log, a.OtherLog)
	return out, nil
}

// resultName is what a run that has ended leaves.
const resultName = "result.json"

// unsealed looks for a result whose receipt was taken away, or never made.
func unsealed(all []Verified) {
	plan := slices.IndexFunc(all, func(x Verified) bool { return x.Name == "plan" })
	if plan >= 0 && !slices.ContainsFunc(all, func(x Verified) bool { return x.Name == "result" }) {
		all[plan].Problems = append(all[plan].Problems, resultName+" is there, and no receipt of it: the run was never sealed at its end, or the receipt was taken away")
	}
}

// inOrder looks for a result that was sealed before its plan, or has none.
func inOrder(all []Verified) {
	plan := slices.IndexFunc(all, func(x Verified) bool { return x.Name == "plan" })
	result := slices.IndexFunc(all, func(x Verified) bool { return x.Name == "result" })
	switch {
	case result < 0 || len(all[result].Problems) > 0:
	case plan < 0:
		all[result].Problems = append(all[result].Problems, "the plan's receipt is not there: what was decided beforehand is not known")
	case len(all[plan].Problems) == 0 && all[plan].Index >= all[result].Index:
		all[result].Problems = append(all[result].Problems, "the plan was sealed after the result")
	}
}

// verify checks one receipt of a directory.
func verify(in fs.FS, kind string, a Against) Verified {
	out := Verified{Name: kind, Index: -1}
	problem := func(format string, a ...any) { // a subject is in the list of files, too
		if p := fmt.Sprintf(format, a...); !slices.Contains(out.Problems, p) {
			out.Problems = append(out.Problems, p)
		}
	}
	name := Folder + "/" + kind
	envelope, err := read(in, name+".dsse.json", maxEnvelope)
	if err != nil {
		problem("%v", err)
		return out
	}
	payload, err := open(a.Key, envelope)
	if err != nil {
		problem("%s.dsse.json: %v", name, err)
		return out
	}
	if out.Statement, err = parseStatement(payload); err != nil {
		problem("%s.dsse.json: %v", name, err)
		return out
	}
	out.digest = Digest(envelope)
	if err := out.prove(in, a); err != nil {
		problem("%s.tlog-proof: %v", name, err)
	}
	if kind == "decision" {
		return out // its basis may be anywhere
	}
	for _, s := range out.Statement.Subject {
		same(in, s.Name, s.Digest["sha256"], problem)
	}
	if kind == "result" {
		files(in, problem)
	}
	return out
}

// prove checks the proof of a receipt.
func (x *Verified) prove(in fs.FS, a Against) error {
	proof, err := read(in, Folder+"/"+x.Name+".tlog-proof", maxProof)
	if err != nil {
		return err
	}
	p, err := CheckProof(a.Key, a.Policy, proof)
	if err != nil {
		return err
	}
	x.Entry, x.Index, x.Size, x.tree = p.Entry, p.Index, p.Tree.N, p.Tree
	x.Cosigned, x.Unchecked = p.Cosigned, p.Unchecked
	if p.Entry.Kind != x.Name {
		return errors.New("it proves another receipt")
	}
	if p.Entry.SHA256 != x.digest {
		// A signature is of what an envelope holds, not of all of its bytes.
		return fmt.Errorf("it proves another receipt than what %s.dsse.json is: one of the two was changed", x.Name)
	}
	return a.Policy.Met(p.Cosigned)
}

// files compares the files of a run with their list.
func files(in fs.FS, problem func(string, ...any)) {
	f, err := openPlain(in, filesName)
	if err != nil {
		problem("%s: %v", filesName, bare(err))
		return
	}
	defer f.Close()
	list, err := parseFiles(f)
	if err != nil {
		problem("%v", err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		same(in, name, list[name], problem)
	}
	fs.WalkDir(in, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			problem("%s: %v", name, bare(err))
		case e.IsDir() && name == Folder:
			return fs.SkipDir
		case !e.IsDir() && list[name] == "":
			problem("%s was not there when the run was sealed", name)
		}
		return nil
	})
}

// same compares one file with its digest.
func same(in fs.FS, name, want string, problem func(string, ...any)) {
	sum, err := digestFile(in, name)
	switch {
	case err != nil:
		problem("%s: %v", name, bare(err))
	case sum["sha256"] != want:
		problem("%s is not what was sealed", name)
	}
}

// bare is what an error of the file system says, without the path again.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// readIn reads a plain file of a directory, which may be a stranger's.
func readIn(dir, name string, limit int64) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return read(root.FS(), name, limit)
}

func read(in fs.FS, name string, limit int64) ([]byte, error) {
	f, err := openPlain(in, name)
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close()
	p, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(p)) > limit {
		err = errors.New("longer than any that kvcanary writes")
	}
	return p, err
}
