package report

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// rewrite changes the result of a run directory.
func rewrite(t *testing.T, dir string, change func(result map[string]any)) {
	t.Helper()
	path := filepath.Join(dir, "result.json")
	p, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r map[string]any
	if err := json.Unmarshal(p, &r); err != nil {
		t.Fatal(err)
	}
	change(r)
	if p, err = json.Marshal(r); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, p, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A text of 100 MB on one line makes no report long.
func TestLongLinesAreCut(t *testing.T) {
	dir := hostileRun(t, 3)
	long := strings.Repeat("\x1b[31m<b>", 10_000)
	rewrite(t, dir, func(r map[string]any) {
		finding := r["findings"].([]any)[0].(map[string]any)
		finding["explain"], finding["tenant"] = long, long
		finding["evidence"].(map[string]any)["text"] = long
	})
	path := filepath.Join(dir, "result.json")
	p, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	endless := `{"reason":"` + strings.Repeat(`\u001b[31m<b>`, 1000) + strings.Repeat("x", 100<<20) + `",`
	if err := os.WriteFile(path, append([]byte(endless), p[1:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	run, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Formats {
		var b bytes.Buffer
		if err := f.Write(&b, run); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		if b.Len() > 300_000 {
			t.Errorf("%s has %d bytes", f.Name, b.Len())
		}
		if f.Name != "disclosure" && (strings.Contains(b.String(), "\x1b") || strings.Contains(b.String(), "<b><b>")) {
			t.Errorf("%s lets the text through", f.Name)
		}
	}
}

// An archive of a stranger's run is made of plain files in it alone.
func TestDisclosureReadsNoPipesAndLinks(t *testing.T) {
	for name, c := range map[string]struct {
		make func(path string) error
		want string
	}{
		"pipe": {func(path string) error { return syscall.Mkfifo(path, 0o600) }, "is no plain file"},
		"link": {func(path string) error { return os.Symlink("/etc/hostname", path) }, "escapes"},
	} {
		dir := hostileRun(t, 3)
		if err := os.Mkdir(filepath.Join(dir, "receipt"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := c.make(filepath.Join(dir, "receipt", "plan.dsse.json")); err != nil {
			t.Fatal(err)
		}
		run, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := Disclosure(io.Discard, run); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// What answers carried is read from plain files in the run directory alone.
func TestForeignTextIsNotReadFromElsewhere(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link": func(path string) error { return os.Symlink("/etc/hostname", path) },
	} {
		dir := hostileRun(t, 3)
		if err := os.Mkdir(filepath.Join(dir, "heard"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := make(filepath.Join(dir, "heard", "000000.json")); err != nil {
			t.Fatal(err)
		}
		run, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		run.ShowForeign = true
		if a := run.aroundOf(run.Result.Findings[0]); a != nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
}
