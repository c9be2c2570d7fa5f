package campaign

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// redactor blots the keys of all tenants out of what came back, character for
// character. The client has done so for the key of the request itself; this is
// for a target that shows one tenant the key of another.
type redactor struct{ blot *wire.Blotter }

func newRedactor(tenants []Tenant) *redactor {
	var keys []string
	for _, t := range tenants {
		keys = append(keys, t.Key)
	}
	return &redactor{wire.NewBlotter(keys...)}
}

// answer blots an answer in place, its spilled bytes included.
func (r *redactor) answer(a *wire.Answer) error {
	r.blot.Answer(a)
	return r.raw(&a.Raw)
}

func (r *redactor) raw(b *wire.Blob) error {
	if r.blot.Idle() {
		return nil
	}
	kept := b.Bytes
	if b.Path != "" {
		var err error
		if kept, err = os.ReadFile(b.Path); err != nil {
			return fmt.Errorf("read a raw answer: %w", err)
		}
	}
	if !r.blot.Bytes(kept) {
		return nil
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
