package campaign

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// minSecret is the length from which a tenant's key is taken for a secret,
// bytes: the placeholders that local servers are given stand in ordinary answers.
const minSecret = 8

// redactor blots the keys of all tenants out of what came back, character for
// character. The client has done so for the key of the request itself; this is
// for a target that shows one tenant the key of another.
type redactor struct {
	keys  []string
	stars *strings.Replacer
}

func newRedactor(tenants []Tenant) *redactor {
	r := &redactor{}
	var pairs []string
	for _, t := range tenants {
		if len(t.Key) >= minSecret {
			r.keys = append(r.keys, t.Key)
			pairs = append(pairs, t.Key, strings.Repeat("*", len(t.Key)))
		}
	}
	r.stars = strings.NewReplacer(pairs...)
	return r
}

// answer blots an answer in place, its spilled bytes included.
func (r *redactor) answer(a *wire.Answer) error {
	if len(r.keys) == 0 {
		return nil
	}
	for i := range a.Pieces {
		a.Pieces[i].Text = r.stars.Replace(a.Pieces[i].Text)
	}
	for _, values := range a.Header {
		for i := range values {
			values[i] = r.stars.Replace(values[i])
		}
	}
	for _, s := range []*string{&a.Finish, &a.ID, &a.Model} {
		*s = r.stars.Replace(*s)
	}
	if a.Refusal != nil {
		a.Refusal.Message = r.stars.Replace(a.Refusal.Message)
	}
	if a.Failure != nil {
		a.Failure.Message = r.stars.Replace(a.Failure.Message)
	}
	return r.raw(&a.Raw)
}

func (r *redactor) raw(b *wire.Blob) error {
	kept := b.Bytes
	if b.Path != "" {
		var err error
		if kept, err = os.ReadFile(b.Path); err != nil {
			return fmt.Errorf("read a raw answer: %w", err)
		}
	}
	if !r.in(kept) {
		return nil
	}
	for _, k := range r.keys {
		kept = bytes.ReplaceAll(kept, []byte(k), bytes.Repeat([]byte("*"), len(k)))
	}
	sum := sha256.Sum256(kept)
	b.SHA256 = hex.EncodeToString(sum[:])
	if b.Path == "" {
		b.Bytes = kept
		return nil
	}
	if err := os.WriteFile(b.Path, kept, 0o600); err != nil {
		return fmt.Errorf("take a key out of a raw answer: %w", err)
	}
	return nil
}

func (r *redactor) in(p []byte) bool {
	for _, k := range r.keys {
		if bytes.Contains(p, []byte(k)) {
			return true
		}
	}
	return false
}
