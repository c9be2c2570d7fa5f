package node

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/pagetag"
)

// Two who map one file see each other's pages and marks.
func TestSharedMemory(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	a, path, err := CreateMemory(5, 4)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	b, err := OpenMemory(path, 5, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	page := bytes.Repeat([]byte{7}, a.cache.PageBytes())
	mark := markOf(owner(1, 2, 3), 0, 4, 4)
	b.store(4, page, mark, true)
	if !bytes.Equal(a.cache.Page(4), page) || a.at(4) != mark {
		t.Error("what is written on one side does not show on the other")
	}
	if !bytes.Equal(a.cache.Page(3), make([]byte, len(page))) || a.at(3) != (pagetag.Mark{}) {
		t.Error("it shows on another page")
	}
	// Who made it may go: who has it mapped keeps it, and nobody else gets it.
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if b.at(4) != mark {
		t.Error("the memory goes with who made it")
	}
	if c, err := OpenMemory(path, 5, 4); err == nil || !strings.Contains(err.Error(), "no such file or directory: decode has gone") {
		t.Errorf("got %v, %v", c, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestSharedMemoryThatDoesNotFit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pool")
	if err := os.WriteFile(path, make([]byte, fileBytes(5, 4)), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, open := range map[string]func() (*Memory, error){
		"has 12096 bytes and 6 pages of 4 tokens take 13696": func() (*Memory, error) { return OpenMemory(path, 6, 4) },
		"has 12096 bytes and 5 pages of 8 tokens take 20096": func() (*Memory, error) { return OpenMemory(path, 5, 8) },
		"no such file or directory: decode has gone":         func() (*Memory, error) { return OpenMemory(path+"s", 5, 4) },
		"shared pool: ": func() (*Memory, error) { return OpenMemory(dir, 5, 4) },
	} {
		if m, err := open(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, %v, want %q", m, err, want)
		}
	}
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	if m, err := OpenMemory(path, 5, 4); err == nil || !strings.Contains(err.Error(), "has 100 bytes and 5 pages of 4 tokens take 12096") {
		t.Errorf("cut: got %v, %v", m, err)
	}
}
