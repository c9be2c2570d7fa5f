package campaign

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// maxRaw is how much of a raw answer is read back, bytes.
const maxRaw = 64 << 20

// Loaded is a run directory read back.
type Loaded struct {
	Path      string
	Plan      Record
	Exchanges []wire.Exchange // in the order of sending; what their channels carried is not kept, only raw bytes are
	Result    *Result         // nil if the run was killed before its end
	Cut       bool            // the last line of the exchanges is not whole and was left out

	kept []kept // Exchanges, with what it takes to go on
}

// Load reads a run directory, also one whose run was killed.
func Load(dir string) (*Loaded, error) {
	l := &Loaded{Path: dir}
	if err := readJSON(dir, planFile, &l.Plan); err != nil {
		return nil, fmt.Errorf("%s is no run directory: %w", dir, err)
	}
	if l.Plan.Schema != PlanSchema {
		return nil, fmt.Errorf("%s: schema %q is not %s: use the version that wrote it", filepath.Join(dir, planFile), l.Plan.Schema, PlanSchema)
	}
	if err := l.readExchanges(); err != nil {
		return nil, err
	}
	var r Result
	switch err := readJSON(dir, resultFile, &r); {
	case err == nil && r.Schema != Schema:
		return nil, fmt.Errorf("%s: schema %q is not %s: use the version that wrote it", filepath.Join(dir, resultFile), r.Schema, Schema)
	case err == nil && !r.wellFormed():
		return nil, fmt.Errorf("%s: a verdict, a protocol or a kind of finding is none of kvcanary's: this was written by something else", filepath.Join(dir, resultFile))
	case err == nil:
		l.Result = &r
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return l, nil
}

func (l *Loaded) readExchanges() error {
	name := filepath.Join(l.Path, exchangesFile)
	f, err := openPlain(l.Path, exchangesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // killed before anything was sent
	}
	if err != nil {
		return fmt.Errorf("read the exchanges: %w", err)
	}
	defer f.Close()
	for in, n := bufio.NewReader(f), 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			l.Cut = len(line) > 0
			break
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		var k kept
		if err := json.Unmarshal(line, &k); err != nil {
			return fmt.Errorf("%s, line %d: %w", name, n, err)
		}
		l.kept = append(l.kept, k)
	}
	slices.SortStableFunc(l.kept, func(a, b kept) int { return a.Seq - b.Seq })
	if len(l.kept) == 0 {
		return nil
	}
	l.Exchanges = make([]wire.Exchange, len(l.kept)) // at once: there may be very many
	for i := range l.kept {
		l.Exchanges[i] = l.kept[i].Exchange
	}
	return nil
}

// Raw reads the raw bytes of an exchange's answer, nil if there are none.
func (l *Loaded) Raw(e *wire.Exchange) ([]byte, error) { return readRaw(l.Path, e) }

func readRaw(dir string, e *wire.Exchange) ([]byte, error) {
	if e.Answer == nil {
		return nil, nil
	}
	if e.Answer.Raw.Path == "" || dir == "" {
		return e.Answer.Raw.Bytes, nil
	}
	// The path is read from a file: it must not lead out of the directory.
	f, err := openPlain(dir, e.Answer.Raw.Path)
	if err != nil {
		return nil, fmt.Errorf("read the raw answer of exchange %d: %w", e.Seq, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRaw))
	if err != nil {
		return nil, fmt.Errorf("read the raw answer of exchange %d: %w", e.Seq, err)
	}
	return b, nil
}

func readJSON(dir, name string, v any) error {
	f, err := openPlain(dir, name)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return fmt.Errorf("read %s: %w", filepath.Join(dir, name), err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
	}
	return nil
}

// ownWord is a name that kvcanary gives: of a protocol, a verdict, a kind.
var ownWord = regexp.MustCompile(`^[a-z][a-z0-9_:.-]{0,63}$`)

// wellFormed reports whether a verdict is one, so that an odd one is not taken
// for clean, and whether names are names, so that no report has to doubt them.
func (r *Result) wellFormed() bool {
	words := []string{}
	ok := slices.Contains([]Verdict{Leak, Violation, Inconclusive, Clean}, r.Verdict)
	for _, p := range r.Protocols {
		words = append(words, p.Name, string(p.Verdict))
	}
	for _, c := range r.Choices {
		words = append(words, c.Protocol)
	}
	for _, f := range r.Findings {
		words = append(words, string(f.Kind), f.Protocol)
	}
	return ok && !slices.ContainsFunc(words, func(w string) bool { return !ownWord.MatchString(w) })
}

// openPlain opens a plain file of a run directory. A run directory may come
// from a stranger: nothing is read through a link that leads out of it, and
// nobody waits at a pipe.
func openPlain(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	st, err := root.Stat(filepath.FromSlash(name))
	var where *fs.PathError
	if errors.As(err, &where) {
		return nil, fmt.Errorf("open %s: %w", filepath.Join(dir, name), where.Err)
	}
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no plain file", filepath.Join(dir, name))
	}
	return root.Open(filepath.FromSlash(name))
}
