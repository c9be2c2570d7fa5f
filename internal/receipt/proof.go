package receipt

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// proofHeader begins a proof: c2sp.org/tlog-proof.
const proofHeader = "c2sp.org/tlog-proof@v1"

// maxProof bounds a proof that is read, bytes.
const maxProof = 1 << 20

// Prove writes the proof that entry n is in the log, with the entry itself as
// its extra data: one text file.
func (l *Log) Prove(n int64) ([]byte, error) {
	// Tree and checkpoint are of one reading: another process may append meanwhile.
	c, err := l.checkpoint(nil)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, fmt.Errorf("the log is empty, and has no entry %d", n)
	}
	return l.proveIn(c, n)
}

// proveIn proves entry n by a checkpoint of the log, which need not be the newest.
func (l *Log) proveIn(c *Checkpoint, n int64) ([]byte, error) {
	entry, err := l.entry(c.Tree, n)
	if err != nil {
		return nil, err
	}
	hashes, err := tlog.ProveRecord(c.Tree.N, n, l.reader(c.Tree))
	if err != nil {
		return nil, fmt.Errorf("prove entry %d: %w", n, err)
	}
	return formatProof(n, entry, hashes, c.signed), nil
}

func formatProof(n int64, entry []byte, hashes tlog.RecordProof, checkpoint []byte) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nextra %s\nindex %d\n", proofHeader, base64.StdEncoding.EncodeToString(entry), n)
	for _, h := range hashes {
		fmt.Fprintf(&b, "%v\n", h)
	}
	b.WriteString("\n")
	b.Write(checkpoint)
	return []byte(b.String())
}

// Proven is what a proof proves: an entry, its index and the tree it is in, and
// who else has seen that tree.
type Proven struct {
	Entry     Entry
	Index     int64
	Tree      tlog.Tree
	Cosigned  []Cosignature
	Unchecked []string // names under signatures whose keys are not known
}

// clockSlack is how far the clocks of a log and a witness may be apart.
const clockSlack = 5 * time.Minute

// CheckProof checks a proof against the log's public key and the witnesses of a
// policy, offline. Whether enough of them have cosigned is for [Policy.Met] to
// say; nil knows no witness.
func CheckProof(v *Verifier, policy *Policy, proof []byte) (Proven, error) {
	var out Proven
	if err := policy.For(v); err != nil {
		return out, err
	}
	if len(proof) > maxProof {
		return out, errors.New("the proof is longer than any is")
	}
	head, checkpoint, ok := strings.Cut(string(proof), "\n\n")
	lines := strings.Split(head, "\n")
	if !ok || len(lines) < 3 || lines[0] != proofHeader {
		return out, errors.New("this is no proof: it begins with " + proofHeader)
	}
	extra, isExtra := strings.CutPrefix(lines[1], "extra ")
	index, isIndex := strings.CutPrefix(lines[2], "index ")
	entry, err := base64.StdEncoding.Strict().DecodeString(extra)
	n, err2 := strconv.ParseInt(index, 10, 64)
	if !isExtra || !isIndex || err != nil || err2 != nil || strconv.FormatInt(n, 10) != index {
		return out, errors.New("the proof's entry or index cannot be read")
	}
	var hashes tlog.RecordProof
	for _, line := range lines[3:] {
		h, err := tlog.ParseHash(line)
		if err != nil || h.String() != line {
			return out, errors.New("a hash of the proof cannot be read")
		}
		hashes = append(hashes, h)
	}
	c, err := openCheckpoint(v, policy.keys(), []byte(checkpoint))
	if err != nil {
		return out, err
	}
	out.Tree, out.Cosigned, out.Unchecked = c.Tree, c.Cosigned, c.Unchecked
	if err := tlog.CheckRecord(hashes, out.Tree.N, out.Tree.Hash, n, tlog.RecordHash(entry)); err != nil {
		return out, errors.New("the proof does not lead from the entry to the checkpoint: one of the two was changed")
	}
	out.Index = n
	if out.Entry, err = ParseEntry(entry); err != nil {
		return out, err
	}
	for _, w := range out.Cosigned {
		if w.Time.Add(clockSlack).Before(out.Entry.Time) {
			return out, fmt.Errorf("witness %q had seen this at %s, and it says that it was sealed at %s: one of the two clocks was wrong, or was turned",
				w.Witness, w.Time.Format(time.RFC3339), out.Entry.Time.Format(time.RFC3339))
		}
	}
	return out, nil
}
