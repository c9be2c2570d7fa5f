package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"net/http/httptest"
	"os"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kvcanary/kvcanary/internal/witness/stub"
)

// startWitness is the scripts' command witness NAME LOGKEY: it starts a witness
// that knows the log of that public key. Its own is in NAME.pub, its address $NAME.
func startWitness(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: witness NAME LOGKEY")
	}
	seed := sha256.Sum256([]byte(args[0]))
	w := &stub.Witness{Name: args[0] + ".example", Key: ed25519.NewKeyFromSeed(seed[:]), Now: time.Now}
	ts.Check(w.Know(ts.ReadFile(args[1])))
	s := httptest.NewServer(w)
	ts.Defer(s.Close)
	ts.Setenv(args[0], s.URL)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".pub"), []byte(w.Public()+"\n"), 0o644))
}
