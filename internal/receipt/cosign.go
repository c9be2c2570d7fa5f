package receipt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/lockedfile"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// witnessFolder keeps, for each witness, the newest checkpoint that it has
// cosigned: that of the log loses its cosignatures when the log grows.
const witnessFolder = "witness"

// Key is the log's public key.
func (l *Log) Key() *Verifier { return l.v }

// Checkpoint is the log's newest one, nil if the log is empty. Cosignatures of
// witnesses that the policy knows are checked.
func (l *Log) Checkpoint(policy *Policy) (*Checkpoint, error) { return l.checkpoint(policy.keys()) }

// Bare is a checkpoint with the log's own signature alone, as a witness is
// asked to cosign it.
func (c *Checkpoint) Bare() *Checkpoint {
	return &Checkpoint{Tree: c.Tree, body: c.body, own: c.own, signed: []byte(c.body + "\n" + c.own), by: c.by, known: c.known}
}

// Signed is the checkpoint with all signatures, as a file.
func (c *Checkpoint) Signed() []byte { return c.signed }

// Proof proves to whoever has seen the log of size old that it is the
// beginning of what the checkpoint is of; empty for nothing and for all of it.
func (l *Log) Proof(c *Checkpoint, old int64) ([]tlog.Hash, error) {
	if old == 0 || old >= c.Tree.N {
		return nil, nil
	}
	proof, err := tlog.ProveTree(c.Tree.N, old, l.reader(c.Tree))
	if err != nil {
		return nil, fmt.Errorf("prove that the log begins with its first %d entries: %w", old, err)
	}
	return proof, nil
}

// With adds a witness's signature line to a checkpoint. It is an error unless
// the line is that witness's cosignature of this very checkpoint.
func (c *Checkpoint) With(w *Witness, line string) (*Checkpoint, error) {
	n, err := note.Open([]byte(c.body+"\n"+line), note.VerifierList(w))
	if err != nil || len(n.Sigs) != 1 || strings.Count(line, "\n") != 1 {
		return nil, fmt.Errorf("this is no cosignature of %q with its key under this checkpoint", w.name)
	}
	known := c.known
	if !slices.Contains(known, w) {
		known = append(known[:len(known):len(known)], w)
	}
	return openCheckpoint(c.by, known, append(c.signed[:len(c.signed):len(c.signed)], line...))
}

// Keep adds a cosignature of checkpoint c to the log, if c is still its
// checkpoint, and remembers what the witness has seen. Only signatures are
// added: no two checkpoints of one size come to differ in what is signed.
func (l *Log) Keep(c *Checkpoint, w *Witness, line string) error {
	if _, err := c.With(w, line); err != nil {
		return err
	}
	unlock, err := lockedfile.MutexAt(filepath.Join(l.dir, lockFile)).Lock()
	if err != nil {
		return fmt.Errorf("lock the log: %w", err)
	}
	defer unlock()
	now, err := l.checkpoint([]*Witness{w})
	if err != nil {
		return err
	}
	if now == nil {
		return fmt.Errorf("%s: the checkpoint is gone", l.dir)
	}
	if now.body == c.body && len(now.Cosigned) == 0 {
		if err := l.replace(checkpointFile, append(now.signed, line...)); err != nil {
			return fmt.Errorf("keep the cosignature: %w", err)
		}
	}
	if seen, err := l.Seen(w); err == nil && seen != nil && seen.Tree.N > c.Tree.N {
		return nil
	}
	if err := l.replace(witnessPath(w), []byte(c.body+"\n"+c.own+line)); err != nil {
		return fmt.Errorf("keep the cosignature: %w", err)
	}
	return nil
}

// Seen is the newest checkpoint of the log that a witness is known to have
// cosigned, nil if none is. The witness itself may know of a newer one.
func (l *Log) Seen(w *Witness) (*Checkpoint, error) {
	p, err := l.read(witnessPath(w), maxCheckpoint)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what %q has seen: %w", w.name, err)
	}
	c, err := openCheckpoint(l.v, []*Witness{w}, p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", witnessPath(w), err)
	}
	return c, nil
}

func witnessPath(w *Witness) string { return fmt.Sprintf("%s/%08x", witnessFolder, w.hash) }

// CheckSeen compares the log with what a witness has cosigned of it, which it
// returns, nil if there is nothing: the log must begin with it.
func (l *Log) CheckSeen(w *Witness) (*Checkpoint, error) {
	seen, err := l.Seen(w)
	if err != nil || seen == nil {
		return nil, err
	}
	if err := l.Begins(seen.Tree); err != nil {
		return nil, fmt.Errorf("what %q has cosigned: %w", w.name, err)
	}
	return seen, nil
}

// Begins is an error unless the log begins with a tree: it was cut, written
// anew, or is another one.
func (l *Log) Begins(with tlog.Tree) error {
	tree, err := l.Tree()
	if err != nil {
		return err
	}
	if with.N > tree.N {
		return fmt.Errorf("it has %d entries, and the log here has only %d: entries were lost, or an old copy was put back", with.N, tree.N)
	}
	root, err := tlog.TreeHash(with.N, l.reader(tree))
	if err != nil {
		return fmt.Errorf("the log of size %d: %w", with.N, err)
	}
	if root != with.Hash {
		return fmt.Errorf("its %d entries are not those that the log here begins with: there are two logs", with.N)
	}
	return nil
}
