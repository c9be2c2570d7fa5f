package receipt

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Checkpoint is a checkpoint of a log, signed by the log and perhaps by others.
type Checkpoint struct {
	Tree     tlog.Tree
	Cosigned []Cosignature // those that were checked
	// Unchecked are names under signatures whose keys are not known: anybody may
	// have written them.
	Unchecked []string

	body   string // what is signed
	own    string // the log's signature, a line
	signed []byte // with all signatures

	by    *Verifier
	known []*Witness // whose cosignatures are checked
}

// maxCheckpoint bounds a checkpoint that is read, bytes.
const maxCheckpoint = 1 << 16

// openCheckpoint reads a checkpoint that v has signed, and checks the
// cosignatures of the witnesses that are known. One that is false is an error:
// somebody wants it to be believed.
func openCheckpoint(v *Verifier, known []*Witness, p []byte) (*Checkpoint, error) {
	if len(p) > maxCheckpoint {
		return nil, errors.New("the checkpoint is longer than any is")
	}
	verifiers := []note.Verifier{v.note}
	for _, w := range known {
		verifiers = append(verifiers, w)
	}
	n, err := note.Open(p, note.VerifierList(verifiers...))
	var invalid *note.InvalidSignatureError
	switch {
	case errors.As(err, &invalid) && (invalid.Name != v.note.Name() || invalid.Hash != v.note.KeyHash()):
		return nil, fmt.Errorf("the cosignature of %q is not of its key, or what it signs was changed", invalid.Name)
	case err != nil:
		return nil, fmt.Errorf("the checkpoint: %w", ErrSignature)
	case !plain(n, p):
		return nil, errors.New("the checkpoint has a signature twice, or one written otherwise than it is")
	}
	origin, rest, _ := strings.Cut(n.Text, "\n")
	if origin != v.Name() {
		return nil, fmt.Errorf("the checkpoint is of log %q, not %q", origin, v.Name())
	}
	// x/mod's form has another first line, and what follows is the same.
	tree, err := tlog.ParseTree([]byte("go.sum database tree\n" + rest))
	if err != nil || rest != checkpointText(tree) {
		return nil, errors.New("the checkpoint is malformed")
	}
	c := &Checkpoint{Tree: tree, body: n.Text, signed: p, by: v, known: known}
	for _, s := range n.Sigs {
		if s.Name == v.note.Name() && s.Hash == v.note.KeyHash() {
			c.own = "— " + s.Name + " " + s.Base64 + "\n"
		}
	}
	if c.own == "" { // with a witness's signature alone a note opens as well
		return nil, fmt.Errorf("the checkpoint: %w", ErrSignature)
	}
	if c.Cosigned, err = cosignatures(n, known); err != nil {
		return nil, err
	}
	for _, s := range n.UnverifiedSigs {
		c.Unchecked = append(c.Unchecked, s.Name)
	}
	return c, nil
}

// plain reports whether a note's signatures stand there once each, in the one
// way that their bytes are encoded: note.Open takes more.
func plain(n *note.Note, p []byte) bool {
	block := strings.TrimPrefix(string(p), n.Text+"\n")
	all := append(n.Sigs[:len(n.Sigs):len(n.Sigs)], n.UnverifiedSigs...)
	for _, s := range all {
		sig, err := base64.StdEncoding.Strict().DecodeString(s.Base64)
		line := "— " + s.Name + " " + base64.StdEncoding.EncodeToString(sig) + "\n"
		if err != nil || strings.Count("\n"+block, "\n"+line) != 1 {
			return false
		}
	}
	return strings.Count(block, "\n") == len(all)
}

func signCheckpoint(s *Signer, t tlog.Tree) ([]byte, error) {
	p, err := note.Sign(&note.Note{Text: s.note.Name() + "\n" + checkpointText(t)}, s.note)
	if err != nil {
		return nil, fmt.Errorf("sign the checkpoint: %w", err)
	}
	return p, nil
}

func checkpointText(t tlog.Tree) string { return fmt.Sprintf("%d\n%v\n", t.N, t.Hash) }
