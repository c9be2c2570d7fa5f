package receipt

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Signer is the private key of a log, which also signs the receipts in it.
type Signer struct {
	note   note.Signer
	public string
}

// Verifier is the public key of a log.
type Verifier struct {
	note note.Verifier
	text string
}

// NewKey makes a key for a log of that name, which is the log's origin in
// checkpoints. Both are single lines of text; private is a secret.
func NewKey(random io.Reader, name string) (private, public string, err error) {
	private, public, err = note.GenerateKey(random, name)
	if err != nil {
		return "", "", fmt.Errorf("make a key for receipts: %w", err)
	}
	return private, public, nil
}

// ParseSigner reads a private key. Errors never hold any of it.
func ParseSigner(private string) (*Signer, error) {
	private = strings.TrimSpace(private)
	s, err := note.NewSigner(private)
	if err != nil {
		return nil, errors.New("this is no private key for receipts: it looks like PRIVATE+KEY+name+hash+key")
	}
	_, encoded, _ := strings.Cut(strings.TrimPrefix(private, "PRIVATE+KEY+"+s.Name()+"+"), "+")
	seed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(seed) != 1+ed25519.SeedSize {
		return nil, errors.New("this is no private key for receipts")
	}
	public, err := note.NewEd25519VerifierKey(s.Name(), ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey))
	if err != nil {
		return nil, fmt.Errorf("read the key for receipts: %w", err)
	}
	return &Signer{s, public}, nil
}

// Public is the public key as a line of text.
func (s *Signer) Public() string { return s.public }

// Verifier is the public key of s.
func (s *Signer) Verifier() *Verifier {
	v, err := ParseVerifier(s.public)
	if err != nil {
		panic("kvcanary: internal error: " + err.Error())
	}
	return v
}

// ParseVerifier reads a public key.
func ParseVerifier(public string) (*Verifier, error) {
	public = strings.TrimSpace(public)
	if strings.HasPrefix(public, "PRIVATE+KEY") {
		return nil, errors.New("this is a private key: give the public one, and keep this one from everybody")
	}
	if w, err := ParseWitness(public); err == nil {
		return nil, fmt.Errorf("this is the key of a witness, %s, and not of who sealed", w.name)
	}
	v, err := note.NewVerifier(public)
	if err != nil {
		return nil, errors.New("this is no public key for receipts: it looks like name+hash+key")
	}
	return &Verifier{v, public}, nil
}

// Name is the log's origin.
func (v *Verifier) Name() string { return v.note.Name() }

// keyID is how an envelope hints at its key.
func (v *Verifier) keyID() string { return fmt.Sprintf("%s+%08x", v.note.Name(), v.note.KeyHash()) }
