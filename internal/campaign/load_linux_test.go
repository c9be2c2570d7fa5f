package campaign

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A run directory may come from a stranger, or from another version.
func TestLoadRefuses(t *testing.T) {
	const plan = `{"schema":"` + PlanSchema + `"}`
	result := func(more string) string { return `{"schema":"` + Schema + `",` + more + `}` }
	for name, c := range map[string]struct{ result, want string }{
		"a newer version":   {`{"schema":"kvcanary.run/v9","verdict":"clean"}`, "use the version that wrote it"},
		"no verdict":        {result(`"verdict":"cleanish"`), "something else"},
		"a hostile name":    {result(`"verdict":"clean","protocols":[{"name":"x\n::set-output","verdict":"clean"}]`), "something else"},
		"a hostile kind":    {result(`"verdict":"leak","findings":[{"kind":"leak\u001b[2J","protocol":"smoke"}]`), "something else"},
		"half written":      {`{"schema":`, "unexpected end"},
		"a link out of it":  {"link", "escapes"},
		"a pipe":            {"pipe", "is no plain file"},
		"a pipe of answers": {"answers", "is no plain file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			at := filepath.Join(dir, resultFile)
			err := os.WriteFile(filepath.Join(dir, planFile), []byte(plan), 0o600)
			switch {
			case err != nil:
			case c.result == "link":
				err = os.Symlink("/etc/hostname", at)
			case c.result == "pipe":
				err = syscall.Mkfifo(at, 0o600)
			case c.result == "answers":
				err = syscall.Mkfifo(filepath.Join(dir, exchangesFile), 0o600)
			default:
				err = os.WriteFile(at, []byte(c.result), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
