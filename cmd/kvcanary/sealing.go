package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/receipt"
	"github.com/kvcanary/kvcanary/internal/witness"
)

// sealFlags say where receipts are logged and what signs them.
type sealFlags struct {
	Log        string `placeholder:"DIR" help:"Log that receipts are entered into. Default: kvcanary/log in the user's configuration directory."`
	ReceiptKey string `name:"receipt-key" placeholder:"FILE" help:"Key that signs receipts and the log; made on first use. Default: kvcanary/receipt-key in the user's configuration directory."`
	askFlags
}

// place is a flag's path, else one in the user's configuration directory.
func place(flag, name string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", usageErrorf("no place for receipts: %w; name one with --log and --receipt-key", err)
	}
	return filepath.Join(dir, "kvcanary", name), nil
}

// sealer opens the log, and makes key and log on first use.
func (f sealFlags) sealer(s *session) (*receipt.Sealer, error) {
	path, err := place(f.ReceiptKey, "receipt-key")
	if err != nil {
		return nil, err
	}
	key, err := loadReceiptKey(s, path)
	if err != nil {
		return nil, err
	}
	dir, err := place(f.Log, "log")
	if err != nil {
		return nil, err
	}
	log, err := receipt.Open(dir, key.Verifier())
	if err != nil {
		return nil, unreachable(err)
	}
	cosign, policy, err := f.cosigner(s, log)
	if err != nil {
		return nil, err
	}
	return &receipt.Sealer{Log: log, Key: key, Now: time.Now, Cosign: cosign, Policy: policy}, nil
}

// loadReceiptKey reads the key that signs receipts, and makes it on first use,
// readable by its owner alone, with the public one beside it.
func loadReceiptKey(s *session, path string) (*receipt.Signer, error) {
	p, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if p, err = makeReceiptKey(path); err == nil {
			fmt.Fprintf(s.stderr, "kvcanary: made a new key for receipts, %s: whoever checks them needs %s.pub\n", path, path)
		}
	}
	if err != nil {
		return nil, unreachable(fmt.Errorf("key for receipts: %w", err))
	}
	key, err := receipt.ParseSigner(string(p))
	if err != nil {
		return nil, exitError{exitUsage, fmt.Errorf("%s: %w", path, err)}
	}
	return key, nil
}

func makeReceiptKey(path string) ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	id := make([]byte, 4)
	rand.Read(id) // never fails
	private, public, err := receipt.NewKey(rand.Reader, "kvcanary/"+hex.EncodeToString(id))
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // for its owner alone
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(private + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	// A link is whole or not there, and takes no other process's key away.
	if err := os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
		return os.ReadFile(path)
	} else if err != nil {
		return nil, err
	}
	return []byte(private), os.WriteFile(path+".pub", []byte(public+"\n"), 0o644)
}

// sealResult seals what a run has come to.
func sealResult(seal *receipt.Sealer, dir string, r *campaign.Result) error {
	out := receipt.TestResult{Result: map[campaign.Verdict]string{
		campaign.Clean: "PASSED", campaign.Inconclusive: "WARNED", campaign.Leak: "FAILED", campaign.Violation: "FAILED",
	}[r.Verdict], Verdict: string(r.Verdict)}
	for _, p := range r.Protocols {
		to := &out.PassedTests
		switch p.Verdict {
		case campaign.Inconclusive:
			to = &out.WarnedTests
		case campaign.Leak, campaign.Violation:
			to = &out.FailedTests
		}
		*to = append(*to, p.Name)
	}
	err := seal.Result(dir, out)
	switch {
	case errors.Is(err, receipt.ErrQuorum), errors.Is(err, witness.ErrFork), errors.Is(err, witness.ErrCut):
		return fmt.Errorf("the result is sealed, but %w", err)
	case err != nil:
		return fmt.Errorf("the result is not sealed: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}
