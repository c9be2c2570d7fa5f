package receipt

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

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
	checkpoint, err := os.ReadFile(filepath.Join(l.dir, checkpointFile))
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	tree, err := openCheckpoint(l.v, checkpoint)
	if err != nil {
		return nil, err
	}
	entry, err := l.entry(tree, n)
	if err != nil {
		return nil, err
	}
	hashes, err := tlog.ProveRecord(tree.N, n, l.reader(tree))
	if err != nil {
		return nil, fmt.Errorf("prove entry %d: %w", n, err)
	}
	return formatProof(n, entry, hashes, checkpoint), nil
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

// Proven is what a proof proves: an entry, its index and the tree it is in.
type Proven struct {
	Entry Entry
	Index int64
	Tree  tlog.Tree
}

// CheckProof checks a proof against the log's public key, offline.
func CheckProof(v *Verifier, proof []byte) (Proven, error) {
	var out Proven
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
	if out.Tree, err = openCheckpoint(v, []byte(checkpoint)); err != nil {
		return out, err
	}
	if err := tlog.CheckRecord(hashes, out.Tree.N, out.Tree.Hash, n, tlog.RecordHash(entry)); err != nil {
		return out, errors.New("the proof does not lead from the entry to the checkpoint: one of the two was changed")
	}
	out.Index = n
	out.Entry, err = ParseEntry(entry)
	return out, err
}
