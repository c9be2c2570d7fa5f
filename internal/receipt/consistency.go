package receipt

import (
	"fmt"
	"iter"

	"golang.org/x/mod/sumdb/tlog"
)

// Check reads all of the log: every tile leads to the checkpoint and every
// entry to its tile. It returns how many entries there are.
func (l *Log) Check() (int64, error) {
	tree, err := l.Tree()
	if err != nil {
		return 0, err
	}
	for n, entry := range l.entries(tree, 0, &err) {
		if _, err := ParseEntry(entry); err != nil {
			return n, fmt.Errorf("entry %d: %w", n, err)
		}
	}
	return tree.N, err
}

// entries yields the entries of a tree from one on, each of them the one that
// the tree holds, and stops at the first of which that cannot be said.
func (l *Log) entries(tree tlog.Tree, from int64, failed *error) iter.Seq2[int64, []byte] {
	reader := l.reader(tree)
	return func(yield func(int64, []byte) bool) {
		for n := from - from%bundle; n < tree.N; n += bundle {
			all, err := l.bundleOf(tree, n)
			if err != nil {
				*failed = err
				return
			}
			indexes := make([]int64, len(all))
			for i := range all {
				indexes[i] = tlog.StoredHashIndex(0, n+int64(i))
			}
			hashes, err := reader.ReadHashes(indexes)
			if err != nil {
				*failed = fmt.Errorf("entries from %d: %w", n, err)
				return
			}
			for i, entry := range all {
				at := n + int64(i)
				if tlog.RecordHash(entry) != hashes[i] {
					*failed = fmt.Errorf("entry %d is not the one that was logged", at)
					return
				}
				if at >= from && !yield(at, entry) {
					return
				}
			}
		}
	}
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
