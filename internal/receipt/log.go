package receipt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/kvcanary/kvcanary/internal/wholefile"
)

// Log is a transparency log in a directory. Its files never change, but for
// checkpoint: a new one replaces it once all that it speaks of is on disk.
type Log struct {
	dir string
	v   *Verifier
}

const (
	tileHeight     = 8
	bundle         = 1 << tileHeight // entries in a full bundle
	checkpointFile = "checkpoint"
	lockFile       = "lock"
	// MaxEntry is the longest entry that a bundle can hold, bytes.
	MaxEntry = 1<<16 - 1
)

// Open reads the log in a directory, which need not exist. The checkpoint has
// to be signed by v.
func Open(dir string, v *Verifier) (*Log, error) {
	l := &Log{dir, v}
	if _, err := l.Tree(); err != nil {
		return nil, err
	}
	return l, nil
}

// Tree is what the checkpoint says; a log without one is empty.
func (l *Log) Tree() (tlog.Tree, error) {
	c, err := l.checkpoint(nil)
	if err != nil || c == nil {
		return l.empty(err)
	}
	return c.Tree, nil
}

// Size is how many entries the log has.
func (l *Log) Size() (int64, error) {
	tree, err := l.Tree()
	return tree.N, err
}

// checkpoint reads the checkpoint; nil if there is none.
func (l *Log) checkpoint(known []*Witness) (*Checkpoint, error) {
	p, err := l.read(checkpointFile, maxCheckpoint)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	c, err := openCheckpoint(l.v, known, p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(l.dir, checkpointFile), err)
	}
	return c, nil
}

// empty is a log without a checkpoint. A log that has ever been written to has
// one, so where there are tiles it was taken away.
func (l *Log) empty(err error) (tlog.Tree, error) {
	if err != nil {
		return tlog.Tree{}, err
	}
	if _, err := os.Stat(filepath.Join(l.dir, "tile")); err == nil {
		return tlog.Tree{}, fmt.Errorf("%s: the checkpoint is gone, and tiles are there: put it back from a copy", l.dir)
	}
	hash, err := tlog.TreeHash(0, nil)
	return tlog.Tree{N: 0, Hash: hash}, err
}

// begin writes the checkpoint of an empty log, so that one without is none.
func (l *Log) begin(s *Signer, tree tlog.Tree) error {
	if _, err := os.Stat(filepath.Join(l.dir, checkpointFile)); err == nil {
		return nil
	}
	signed, err := signCheckpoint(s, tree)
	if err != nil {
		return err
	}
	return l.replace(checkpointFile, signed)
}

// Append adds an entry and returns its index once it is safe on disk. Only one
// process appends at a time; the clock must not be before the last entry's.
func (l *Log) Append(s *Signer, entry []byte, now time.Time) (index int64, err error) {
	return l.appendMade(s, func() ([]byte, time.Time) { return entry, now })
}

// appendMade is Append of an entry that is made, and its clock read, once
// nobody else appends: otherwise who waits longer would seem to be too early.
func (l *Log) appendMade(s *Signer, made func() ([]byte, time.Time)) (index int64, err error) {
	if s.Public() != l.v.text {
		return 0, errors.New("this key is not the log's: give the log's own")
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return 0, fmt.Errorf("make the log: %w", err)
	}
	unlock, err := lockedfile.MutexAt(filepath.Join(l.dir, lockFile)).Lock()
	if err != nil {
		return 0, fmt.Errorf("lock the log: %w", err)
	}
	defer unlock()
	entry, now := made()
	if len(entry) > MaxEntry {
		return 0, fmt.Errorf("an entry of %d bytes is longer than the %d that a log can hold", len(entry), MaxEntry)
	}
	tree, err := l.Tree()
	if err != nil {
		return 0, err
	}
	if err := l.inOrder(tree, now); err != nil {
		return 0, err
	}
	if err := l.begin(s, tree); err != nil {
		return 0, fmt.Errorf("begin the log: %w", err)
	}
	next, err := l.write(tree, entry)
	if err != nil {
		return 0, fmt.Errorf("write the log: %w", err)
	}
	signed, err := signCheckpoint(s, next)
	if err != nil {
		return 0, err
	}
	return tree.N, l.replace(checkpointFile, signed)
}

// inOrder refuses a clock that is before the last entry.
func (l *Log) inOrder(tree tlog.Tree, now time.Time) error {
	if tree.N == 0 {
		return nil
	}
	p, err := l.entry(tree, tree.N-1)
	if err != nil {
		return err
	}
	last, err := ParseEntry(p)
	if err != nil {
		return err
	}
	if now.Before(last.Time) {
		return fmt.Errorf("the clock says %s, and the last receipt was sealed at %s: set the clock",
			now.UTC().Format(time.RFC3339), last.Time.Format(time.RFC3339))
	}
	return nil
}

// write adds an entry to the tiles of a tree and returns the tree with it.
// Nothing that tree speaks of is touched.
func (l *Log) write(tree tlog.Tree, entry []byte) (tlog.Tree, error) {
	old := l.reader(tree)
	hashes, err := tlog.StoredHashes(tree.N, entry, old)
	if err != nil {
		return tree, err
	}
	first := tlog.StoredHashIndex(0, tree.N)
	with := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(indexes))
		for i, x := range indexes {
			if x >= first {
				out[i] = hashes[x-first]
				continue
			}
			h, err := old.ReadHashes([]int64{x})
			if err != nil {
				return nil, err
			}
			out[i] = h[0]
		}
		return out, nil
	})
	next := tlog.Tree{N: tree.N + 1}
	if next.Hash, err = tlog.TreeHash(next.N, with); err != nil {
		return tree, err
	}
	for _, t := range tlog.NewTiles(tileHeight, tree.N, next.N) {
		data, err := tlog.ReadTileData(t, with)
		if err != nil {
			return tree, err
		}
		if err := l.replace(tilePath(t), data); err != nil {
			return tree, err
		}
	}
	return next, l.writeBundle(tree.N, entry)
}

// writeBundle writes the bundle that ends with entry n.
func (l *Log) writeBundle(n int64, entry []byte) error {
	var data []byte
	if n%bundle > 0 {
		var err error
		if data, err = l.readBundle(n - 1); err != nil {
			return err
		}
	}
	data = binary.BigEndian.AppendUint16(data, uint16(len(entry)))
	return l.replace(bundlePath(n), append(data, entry...))
}

// readBundle reads a bundle that holds entry n, as one of a log of n+1 entries.
func (l *Log) readBundle(n int64) ([]byte, error) {
	return l.read(bundlePath(n), bundle*(MaxEntry+2))
}

// Entry returns entry n, as it stands in the newest bundle that has it.
func (l *Log) Entry(n int64) ([]byte, error) {
	tree, err := l.Tree()
	if err != nil {
		return nil, err
	}
	return l.entry(tree, n)
}

func (l *Log) entry(tree tlog.Tree, n int64) ([]byte, error) {
	if n < 0 || n >= tree.N {
		return nil, fmt.Errorf("the log has %d entries, and none of index %d", tree.N, n)
	}
	all, err := l.bundleOf(tree, n)
	if err != nil {
		return nil, err
	}
	return all[n%bundle], nil
}

// bundleOf is all entries of the bundle that entry n stands in, as far as a
// tree has them.
func (l *Log) bundleOf(tree tlog.Tree, n int64) ([][]byte, error) {
	first := n - n%bundle
	last := min(first+bundle, tree.N) - 1
	data, err := l.readBundle(last)
	if err != nil {
		return nil, fmt.Errorf("entry %d: %s is not there", n, bundlePath(last))
	}
	var all [][]byte
	for i := first; i <= last; i++ {
		if len(data) < 2 {
			return nil, fmt.Errorf("entry %d: its bundle ends before it", i)
		}
		size := int(binary.BigEndian.Uint16(data))
		if len(data) < 2+size {
			return nil, fmt.Errorf("entry %d: its bundle is cut", i)
		}
		all = append(all, data[2:2+size])
		data = data[2+size:]
	}
	if len(data) > 0 {
		return nil, fmt.Errorf("%s holds more than its entries", bundlePath(last))
	}
	return all, nil
}

// reader reads hashes of a tree and checks every tile against its root.
func (l *Log) reader(tree tlog.Tree) tlog.HashReader {
	if tree.N == 0 { // there is nothing to read, and no tile
		return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) { return make([]tlog.Hash, len(indexes)), nil })
	}
	return tlog.TileHashReader(tree, tiles{l})
}

// tiles reads tiles from the log's directory.
type tiles struct{ l *Log }

func (tiles) Height() int { return tileHeight }

func (t tiles) ReadTiles(want []tlog.Tile) ([][]byte, error) {
	out := make([][]byte, len(want))
	for i, x := range want {
		p, err := t.l.read(tilePath(x), bundle*tlog.HashSize)
		if err != nil {
			return nil, fmt.Errorf("tile %s is not there", tilePath(x))
		}
		if len(p) != x.W*tlog.HashSize {
			return nil, fmt.Errorf("tile %s has %d bytes, not %d", tilePath(x), len(p), x.W*tlog.HashSize)
		}
		out[i] = p
	}
	return out, nil
}

func (tiles) SaveTiles([]tlog.Tile, [][]byte) {}

// tilePath is where tlog-tiles keeps a tile: as x/mod, without the height.
func tilePath(t tlog.Tile) string {
	return strings.Replace(t.Path(), fmt.Sprintf("tile/%d/", t.H), "tile/", 1)
}

// bundlePath is where the bundle stands whose last entry is n.
func bundlePath(n int64) string {
	t := tlog.Tile{H: tileHeight, L: 0, N: n / bundle, W: int(n%bundle) + 1}
	return strings.Replace(tilePath(t), "tile/0/", "tile/entries/", 1)
}

// read reads a file of the log, which may be a stranger's: nobody waits at a
// pipe or follows a link out of it.
func (l *Log) read(name string, limit int64) ([]byte, error) { return readIn(l.dir, name, limit) }

// replace writes a file of the log, whole or not at all.
func (l *Log) replace(name string, data []byte) error { return keep(l.dir, name, data) }

// keep writes a file below a directory, whole or not at all.
func keep(dir, name string, data []byte) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return wholefile.WriteBytes(path, 0o600, data)
}
