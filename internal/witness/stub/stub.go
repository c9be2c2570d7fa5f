// Package stub is a witness for tests: it keeps nothing on disk, and checks what
// a witness has to check before it cosigns.
package stub

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/kvcanary/kvcanary/internal/receipt"
)

// Witness cosigns checkpoints of logs that it knows.
type Witness struct {
	Name string
	Key  ed25519.PrivateKey
	Now  func() time.Time

	mu   sync.Mutex
	logs map[string]*state // by origin
}

type state struct {
	key  note.Verifier
	tree tlog.Tree
}

// Public is the line that the witness is known by.
func (w *Witness) Public() string {
	return receipt.FormatWitness(w.Name, w.Key.Public().(ed25519.PublicKey))
}

// Know makes a log known by its public key, a line name+hash+key, and forgets
// what was seen of it.
func (w *Witness) Know(log string) error {
	v, err := note.NewVerifier(strings.TrimSpace(log))
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.logs == nil {
		w.logs = map[string]*state{}
	}
	w.logs[v.Name()] = &state{key: v}
	return nil
}

// Seen is the size of the newest checkpoint that was cosigned of a log.
func (w *Witness) Seen(origin string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.logs[origin]; s != nil {
		return s.tree.N
	}
	return 0
}

// ServeHTTP answers add-checkpoint.
func (w *Witness) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	p, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/add-checkpoint") {
		out.WriteHeader(http.StatusNotFound)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	status, body := w.add(p)
	if status == http.StatusConflict && body != "" {
		out.Header().Set("Content-Type", "text/x.tlog.size")
	}
	out.WriteHeader(status)
	io.WriteString(out, body)
}

func (w *Witness) add(p []byte) (status int, body string) {
	head, checkpoint, ok := bytes.Cut(p, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	size, isOld := strings.CutPrefix(lines[0], "old ")
	old, err := strconv.ParseInt(size, 10, 64)
	if !ok || !isOld || err != nil || len(lines) > 64 {
		return http.StatusBadRequest, ""
	}
	var proof tlog.TreeProof
	for _, line := range lines[1:] {
		h, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(h) != tlog.HashSize {
			return http.StatusBadRequest, ""
		}
		proof = append(proof, tlog.Hash(h))
	}
	origin, _, _ := strings.Cut(string(checkpoint), "\n")
	log := w.logs[origin]
	if log == nil {
		return http.StatusNotFound, ""
	}
	n, err := note.Open(checkpoint, note.VerifierList(log.key))
	if err != nil {
		return http.StatusForbidden, ""
	}
	_, rest, _ := strings.Cut(n.Text, "\n")
	tree, err := tlog.ParseTree([]byte("go.sum database tree\n" + rest))
	if err != nil || old > tree.N {
		return http.StatusBadRequest, ""
	}
	return w.cosign(log, old, tree, proof, n.Text)
}

func (w *Witness) cosign(log *state, old int64, tree tlog.Tree, proof tlog.TreeProof, text string) (status int, body string) {
	switch {
	case old != log.tree.N:
		return http.StatusConflict, fmt.Sprintf("%d\n", log.tree.N)
	case old == tree.N && old > 0 && tree.Hash != log.tree.Hash:
		return http.StatusConflict, ""
	case old == tree.N || old == 0:
		if len(proof) > 0 {
			return http.StatusUnprocessableEntity, ""
		}
	case tlog.CheckTree(proof, tree.N, tree.Hash, old, log.tree.Hash) != nil:
		return http.StatusUnprocessableEntity, ""
	}
	log.tree = tree
	return http.StatusOK, receipt.Cosign(w.Name, w.Key, text, w.Now())
}
