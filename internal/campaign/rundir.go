package campaign

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/kvcanary/kvcanary/internal/wholefile"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// The files of a run directory.
const (
	planFile      = "plan.json"       // what was decided, written before anything is sent
	exchangesFile = "exchanges.jsonl" // a line for each finished exchange, in the order of finishing
	rawFolder     = "raw"             // the bytes that came back, a file for each answer
	heardFolder   = "heard"           // what was read in them, a file for each answer
	resultFile    = "result.json"     // written whole, at the end
)

// PlanSchema names the JSON of a Record.
const PlanSchema = "kvcanary.plan/v1"

// Record is what was decided before anything was sent. Keys are not in it.
type Record struct {
	Schema      string    `json:"schema"`
	Target      Target    `json:"target"`
	Tenants     []string  `json:"tenants"`
	Protocols   []string  `json:"protocols"`
	Oracles     []string  `json:"oracles"`
	Choices     []Choice  `json:"choices,omitempty"` // why these protocols, if nobody has named them
	Facts       Facts     `json:"facts"`
	Budget      Budget    `json:"budget"`
	Before      Before    `json:"before,omitzero"` // spent before the first exchange
	Concurrency int       `json:"concurrency"`
	Seed        uint64    `json:"seed"`
	Run         int       `json:"run"`
	KeyID       string    `json:"key_id"`
	Controls    []uint64  `json:"controls"` // canary ids that are never sent
	Started     time.Time `json:"started"`
	Version     string    `json:"version"`
}

// MakeDir makes a new run directory and returns the folder in it where a
// client may spill long answers. It is for callers that need that folder
// before [Run] does the same. A directory that already holds anything is an
// error: no run is ever overwritten.
func MakeDir(path string) (spill string, err error) {
	d, err := createDir(path)
	if err != nil {
		return "", err
	}
	return Spill(d.path), nil
}

// runDir is a run directory that is being written.
type runDir struct {
	path   string
	locked *os.File // the directory itself, held so that no other run goes on in it

	mu        sync.Mutex
	exchanges *os.File
	size      int64 // of the exchanges, bytes
	err       error // the first thing that could not be written
}

// createDir makes a new run directory. It never touches one that is there
// already, unless that is empty or as MakeDir leaves it.
func createDir(path string) (*runDir, error) {
	blank, err := isBlank(path)
	if err == nil && !blank {
		err = fmt.Errorf("%w: run directory %s is not empty: name a new one", ErrConfig, path)
	}
	if err != nil {
		return nil, err
	}
	for _, folder := range []string{rawFolder, heardFolder} {
		if err := os.MkdirAll(filepath.Join(path, folder), 0o700); err != nil {
			return nil, fmt.Errorf("make the run directory: %w", err)
		}
	}
	return &runDir{path: path}, nil
}

// isBlank reports whether a directory is as a run that was killed before it
// wrote its plan leaves it, empty, or not there.
func isBlank(path string) (bool, error) {
	for _, folder := range []string{"", rawFolder, heardFolder} {
		entries, err := os.ReadDir(filepath.Join(path, folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("read the run directory: %w", err)
		}
		for _, e := range entries {
			if folder != "" || e.Name() != rawFolder && e.Name() != heardFolder {
				return false, nil
			}
		}
	}
	return true, nil
}

// take locks the directory.
func (d *runDir) take() error {
	f, err := os.Open(d.path)
	if err != nil {
		return fmt.Errorf("open the run directory: %w", err)
	}
	mine, err := lock(f)
	if err == nil && !mine {
		err = fmt.Errorf("%w: another run is under way in %s: let it end, or name a new directory", ErrConfig, d.path)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	d.locked = f
	return nil
}

// reopen takes the directory of an interrupted run: the file of exchanges is
// made anew of those that are done, and what was left half written is removed.
func reopen(path string) (*runDir, *past, error) {
	d := &runDir{path: path}
	if err := d.take(); err != nil {
		return nil, nil, err
	}
	p, err := readPast(path)
	if err == nil {
		err = d.rewrite(p)
	}
	if err != nil {
		d.close()
		return nil, nil, err
	}
	return d, p, nil
}

func (d *runDir) rewrite(p *past) error {
	if err := os.MkdirAll(filepath.Join(d.path, heardFolder), 0o700); err != nil {
		return fmt.Errorf("make the run directory: %w", err)
	}
	for _, pattern := range []string{filepath.Join(rawFolder, "answer-*.raw"), ".*.json-*", ".exchanges.jsonl-*"} {
		left, err := filepath.Glob(filepath.Join(d.path, pattern))
		if err != nil {
			panic("kvcanary: internal error: " + err.Error())
		}
		for _, name := range left {
			if err := os.Remove(name); err != nil {
				return fmt.Errorf("clear the run directory: %w", err)
			}
		}
	}
	f, err := os.CreateTemp(d.path, "."+exchangesFile+"-*")
	if err != nil {
		return fmt.Errorf("make the file of exchanges: %w", err)
	}
	d.exchanges = f
	for _, seq := range slices.Sorted(maps.Keys(p.done)) {
		if err := d.line(p.done[seq]); err != nil {
			return fmt.Errorf("make the file of exchanges: %w", errors.Join(err, os.Remove(f.Name())))
		}
	}
	name := filepath.Join(d.path, exchangesFile)
	err = errors.Join(f.Sync(), f.Close(), os.Rename(f.Name(), name))
	if d.exchanges = nil; err == nil {
		d.exchanges, err = os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0o600)
	}
	if err != nil {
		return fmt.Errorf("make the file of exchanges: %w", err)
	}
	return nil
}

// Spill returns the folder of a run directory where a client may spill long
// answers, for one that MakeDir does not make: that of a run that goes on.
func Spill(dir string) string { return filepath.Join(dir, rawFolder) }

// writePlan writes the plan and opens the file of exchanges.
func (d *runDir) writePlan(r Record) error {
	if err := d.take(); err != nil {
		return err
	}
	if err := d.writeJSON(planFile, r); err != nil {
		return err
	}
	// O_EXCL: of two campaigns that were given the same empty directory one ends here.
	f, err := os.OpenFile(filepath.Join(d.path, exchangesFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("make the file of exchanges: %w", err)
	}
	d.exchanges = f
	return nil
}

// keep stores a finished exchange: its raw answer and what was read in it as
// files of their own, then its line, in one write so that a killed process
// leaves whole lines. Raw bytes leave memory. Safe for concurrent use.
func (d *runDir) keep(k *kept) {
	err := d.keepRaw(&k.Exchange)
	if err == nil {
		err = d.keepHeard(k)
	}
	if err == nil {
		d.mu.Lock()
		err = d.line(k)
		d.mu.Unlock()
	}
	if err != nil {
		d.fail(fmt.Errorf("keep exchange %d in the run directory: %w", k.Seq, err))
	}
}

// line appends the line of an exchange, whole or not at all.
func (d *runDir) line(k *kept) error {
	line, err := json.Marshal(k)
	if err != nil {
		return err
	}
	n, err := d.exchanges.Write(append(line, '\n'))
	if err != nil {
		return cmp.Or(err, d.takeBack(n))
	}
	d.size += int64(n)
	return nil
}

// takeBack removes the n bytes of a line that was not written whole.
func (d *runDir) takeBack(n int) error {
	if n == 0 {
		return nil
	}
	return d.exchanges.Truncate(d.size)
}

func (d *runDir) keepHeard(k *kept) error {
	b, err := json.Marshal(heardOf(k.Answer))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.path, heardFile(k.Seq)), b, 0o600)
}

// discard removes what a client has spilled of an answer that is not kept.
func discard(a *wire.Answer) {
	if a.Raw.Path != "" {
		// A file that stays behind is one of many in the folder of raw answers.
		_ = os.Remove(a.Raw.Path)
	}
}

// fail notes that something could not be kept. The first error stays.
func (d *runDir) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = err
	}
}

func (d *runDir) keepRaw(e *wire.Exchange) error {
	raw := &e.Answer.Raw
	name := filepath.Join(rawFolder, fmt.Sprintf("%06d", e.Seq))
	switch {
	case raw.Path != "":
		// The client has spilled it into the folder of raw answers, under a name of its own.
		if err := os.Rename(raw.Path, filepath.Join(d.path, name)); err != nil {
			return err
		}
	case len(raw.Bytes) > 0:
		if err := os.WriteFile(filepath.Join(d.path, name), raw.Bytes, 0o600); err != nil {
			return err
		}
	default:
		return nil
	}
	raw.Path, raw.Bytes = filepath.ToSlash(name), nil
	return nil
}

// sync makes what was kept so far survive a crash of the machine.
func (d *runDir) sync() {
	if err := d.exchanges.Sync(); err != nil {
		d.fail(fmt.Errorf("sync the file of exchanges: %w", err))
	}
}

func (d *runDir) failed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

func (d *runDir) writeResult(r *Result) error { return d.writeJSON(resultFile, r) }

func (d *runDir) close() {
	for _, f := range []*os.File{d.exchanges, d.locked} {
		if f != nil {
			// Every line was written without buffering; closing can lose nothing.
			_ = f.Close()
		}
	}
}

// writeJSON writes a file whole or not at all.
func (d *runDir) writeJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic("kvcanary: internal error: " + err.Error())
	}
	return wholefile.WriteBytes(filepath.Join(d.path, name), 0o600, append(b, '\n'))
}
