package receipt

import (
	"fmt"
	"slices"
)

// inLog compares receipts with the log, where it is at hand: it has to begin
// with what their proofs are for, and to have no result of the run that is
// newer than what is here.
func inLog(all []Verified, l *Log, mayBeOther bool) {
	if l == nil {
		return
	}
	for i := range all {
		x := &all[i]
		if x.tree.N == 0 {
			continue // without a proof
		}
		err := l.Begins(x.tree)
		x.InLog = err == nil
		if err != nil && !mayBeOther {
			x.Problems = append(x.Problems, fmt.Sprintf("the log that %s.tlog-proof is of: %v", x.Name, err))
		}
		if err != nil {
			return
		}
	}
	plan := slices.IndexFunc(all, func(x Verified) bool { return x.Name == "plan" && x.tree.N > 0 })
	if plan < 0 {
		return
	}
	newest, index, err := l.resultOf(all[plan].digest, all[plan].Index)
	if err != nil {
		all[plan].Problems = append(all[plan].Problems, fmt.Sprintf("the log: %v", err))
		return
	}
	here := slices.IndexFunc(all, func(x Verified) bool { return x.Name == "result" })
	switch {
	case newest == nil:
	case here < 0:
		all[plan].Problems = append(all[plan].Problems, fmt.Sprintf("the log has a result of this run, which is not here: entry %d, %q, sealed %s",
			index, newest.Words, newest.Time.Format("2006-01-02 15:04:05 UTC")))
	case all[here].digest != newest.SHA256:
		all[here].Problems = append(all[here].Problems, fmt.Sprintf("the log has another result of this run, which is newer: entry %d, %q, sealed %s",
			index, newest.Words, newest.Time.Format("2006-01-02 15:04:05 UTC")))
	}
}

// resultOf is the newest result in the log of the run whose plan has that
// digest and stands at an index; nil if there is none.
func (l *Log) resultOf(plan string, after int64) (newest *Entry, index int64, err error) {
	tree, err := l.Tree()
	if err != nil {
		return nil, 0, err
	}
	for n, p := range l.entries(tree, after+1, &err) {
		e, err := ParseEntry(p)
		if err != nil {
			return nil, 0, fmt.Errorf("entry %d: %w", n, err)
		}
		if e.Kind == "result" && e.Of == plan {
			newest, index = &e, n
		}
	}
	return newest, index, err
}
