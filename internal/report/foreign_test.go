package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/receipt"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// answeredWith has exchange 0 of a run answered with a text, in which the words
// of its first finding stand.
func answeredWith(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "heard"), 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := json.Marshal(map[string]any{"pieces": []map[string]string{{"channel": "content", "text": text}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "heard", "000000.json"), p, 0o600); err != nil {
		t.Fatal(err)
	}
}

// What stands around leaked words is in no report unless it was asked for, and
// then in those that people read, within bounds and as text.
func TestForeignTextIsShownOnRequestOnly(t *testing.T) {
	dir := hostileRun(t, 3)
	text := strings.Repeat("far ", 2000) + "Dear Dr. Somebody, " + hostile + " abandon Ability,\nable about above absent absorb abstract absurd " + hostile + " yours, Somebody"
	answeredWith(t, dir, text)
	for _, f := range Formats {
		for _, show := range []bool{false, true} {
			run, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			run.ShowForeign = show
			var b bytes.Buffer
			if err := f.Write(&b, run); err != nil {
				t.Fatal(err)
			}
			whole := b.String()
			if f.Name == "disclosure" {
				files := unpack(t, whole)
				whole = files["README.md"] + files["findings.json"]
			}
			got := strings.Join(strings.Fields(whole), " ")
			if strings.Contains(got, "Somebody") != (show && f.Foreign) {
				t.Errorf("%s, asked for: %v: the text is shown: %v", f.Name, show, !show)
			}
			if strings.Contains(got, "far far") && strings.Count(got, "far ") > 4*maxForeign {
				t.Errorf("%s shows all of a long text", f.Name)
			}
			if f.Foreign && !show && !strings.Contains(got, receipt.Digest([]byte(text))) {
				t.Errorf("%s has no digest of what it does not show", f.Name)
			}
			if f.Foreign && show && !strings.Contains(strings.ReplaceAll(got, "\\", ""), "of the answer are not shown") {
				t.Errorf("%s does not say that the text is cut", f.Name)
			}
			for _, bad := range []string{"\x1b", "\u202E"} {
				if strings.Contains(got, bad) {
					t.Errorf("%s holds %q", f.Name, bad)
				}
			}
			if f.Name != "text" && f.Name != "github" && strings.Contains(got, "<b>x</b>") {
				t.Errorf("%s lets the text be markup", f.Name)
			}
		}
	}
}

func TestAroundWords(t *testing.T) {
	for _, c := range []struct {
		name, text, words, want string
	}{
		{"in the middle", "one Two three four", "two THREE", `"one " "Two three" " four" 0`},
		{"other signs between", "x two-\n**three** y", "two three", `"x " "two- **three" "** y" 0`},
		{"not to be seen", "encoded", "two three", `"" "" "encoded" 0`},
		{"nothing else", " two three\n", "two three", "nil"},
		{"no text", "", "two three", "nil"},
		{"no words", "text", "", "nil"},
		{"patterns", "a (.*) b", "(.*)", `"a " "(.*)" " b" 0`},
		{"long", strings.Repeat("é", 3000) + " two " + strings.Repeat("z", 1500), "two", `"` + strings.Repeat("é", 999) + ` " "two" " ` + strings.Repeat("z", 999) + `" 2502`},
	} {
		dir := hostileRun(t, 3)
		answeredWith(t, dir, c.text)
		run, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		run.ShowForeign = true
		got := "nil"
		if a := run.aroundOf(oracle.Finding{Exchange: 0, Channel: wire.Content, Evidence: oracle.Evidence{Text: c.words}}); a != nil {
			got = fmt.Sprintf("%q %q %q %d", a.Before, a.Words, a.After, a.Left)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
