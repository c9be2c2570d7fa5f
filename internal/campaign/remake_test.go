package campaign

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/probe"
)

// The prompts of a whole run of real protocols are made again from its plan and
// key, and one that was recorded otherwise is found.
func TestRemake(t *testing.T) {
	f := &fakeTarget{}
	var protocols []probe.Protocol
	for _, p := range probe.All() {
		if p.Name == "smoke" || p.Name == "straddle" || p.Name == "prefix" {
			protocols = append(protocols, p)
		}
	}
	cfg := config(f, protocols...)
	cfg.Tenants = []Tenant{{Name: "a", Key: "sk-a"}, {Name: "b", Key: "sk-b"}}
	cfg.Facts = Facts{Context: 2000, Pool: 1000, PageSize: 16}
	cfg.OutDir = filepath.Join(t.TempDir(), "run")
	r := mustRun(t, cfg)
	n, err := Remake(t.Context(), cfg.OutDir, cfg.Key)
	if err != nil || n != r.Spent.Exchanges || n < 10 {
		t.Fatalf("%d of %d exchanges, %v", n, r.Spent.Exchanges, err)
	}
	other := cfg.Key
	other[0] ^= 1
	if _, err := Remake(t.Context(), cfg.OutDir, other); !errors.Is(err, ErrConfig) {
		t.Errorf("with another key: %v", err)
	}

	name := filepath.Join(cfg.OutDir, exchangesFile)
	was, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func([]byte) []byte{
		"sent_sha256": func(p []byte) []byte {
			return regexp.MustCompile(`"sent_sha256":"[0-9a-f]{4}`).ReplaceAll(p, []byte(`"sent_sha256":"xxxx`))
		},
		"sent_tokens": func(p []byte) []byte { return bytes.Replace(p, []byte(`"sent_tokens":`), []byte(`"sent_tokens":1`), 1) },
	} {
		if err := os.WriteFile(name, change(was), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Remake(t.Context(), cfg.OutDir, cfg.Key); !errors.Is(err, ErrRemade) || !strings.Contains(err.Error(), field+" differs") {
			t.Errorf("%s: %v", field, err)
		}
	}
}
