package receipt

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Check reads all of the log: every tile leads to the checkpoint and every
// entry to its tile. It returns how many entries there are.
func (l *Log) Check() (int64, error) {
	tree, err := l.Tree()
	if err != nil {
		return 0, err
	}
	reader := l.reader(tree)
	for n := range tree.N {
		h, err := reader.ReadHashes([]int64{tlog.StoredHashIndex(0, n)})
		if err != nil {
			return n, fmt.Errorf("entry %d: %w", n, err)
		}
		entry, err := l.entry(tree, n)
		if err != nil {
			return n, err
		}
		if tlog.RecordHash(entry) != h[0] {
			return n, fmt.Errorf("entry %d is not the one that was logged", n)
		}
		if _, err := ParseEntry(entry); err != nil {
			return n, fmt.Errorf("entry %d: %w", n, err)
		}
	}
	return tree.N, nil
}

// Consistent proves that the log of size newer begins with the log of size
// older, and returns the roots of both.
func (l *Log) Consistent(older, newer int64) (a, b tlog.Hash, err error) {
	tree, err := l.Tree()
	if err != nil {
		return a, b, err
	}
	if older < 1 || older > newer || newer > tree.N {
		return a, b, fmt.Errorf("sizes %d and %d: the first from 1 to the second, the second to %d", older, newer, tree.N)
	}
	reader := l.reader(tree)
	if a, err = tlog.TreeHash(older, reader); err != nil {
		return a, b, fmt.Errorf("the log of size %d: %w", older, err)
	}
	if b, err = tlog.TreeHash(newer, reader); err != nil {
		return a, b, fmt.Errorf("the log of size %d: %w", newer, err)
	}
	proof, err := tlog.ProveTree(newer, older, reader)
	if err != nil {
		return a, b, fmt.Errorf("prove that %d begins with %d: %w", newer, older, err)
	}
	if err := tlog.CheckTree(proof, newer, b, older, a); err != nil {
		return a, b, fmt.Errorf("the log of size %d does not begin with that of size %d", newer, older)
	}
	return a, b, nil
}
