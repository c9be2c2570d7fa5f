package wholefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	if err := WriteBytes(path, 0o640, []byte("first")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := Write(path, 0o640, func(w io.Writer) error {
		io.WriteString(w, "half")
		return broken
	})
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "write a.json: ") {
		t.Errorf("error %v", err)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != "first" {
		t.Errorf("%q, %v", got, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v was left behind, %v", left, err)
	}
	if err := WriteBytes(filepath.Join(dir, "none", "a"), 0o600, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	t.Chdir(dir)
	if err := WriteBytes("here", 0o600, []byte("x")); err != nil {
		t.Error(err)
	}
}
