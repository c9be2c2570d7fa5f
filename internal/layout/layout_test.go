// Package layout holds the test of who may import whom.
package layout

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/kvcanary/kvcanary/"

// mayImport lists, for each package, the packages of this module that its
// non-test code may import. A pattern ending in /... covers a tree. A package
// without a row may not exist.
var mayImport = map[string][]string{
	"canary":             {},
	"pagetag":            {},
	"internal/stats":     {},
	"internal/wire":      {},
	"internal/prose":     {},
	"internal/wholefile": {},
	"internal/config":    {},
	"internal/engine":    {},
	"internal/layout":    {},
	"internal/probe":     {"canary", "internal/stats", "internal/wire"},
	"internal/oracle":    {"canary", "internal/stats", "internal/wire"},
	"internal/diagnose":  {"internal/oracle", "internal/wire"},
	"internal/receipt":   {"internal/wholefile"},
	"internal/witness":   {"internal/receipt"},
	"internal/campaign":  {"canary", "internal/probe", "internal/oracle", "internal/diagnose", "internal/wire", "internal/stats", "internal/receipt", "internal/wholefile"},
	"internal/preflight": {"internal/engine", "internal/prose"},
	"internal/report":    {"canary", "internal/campaign", "internal/diagnose", "internal/oracle", "internal/preflight", "internal/wire", "internal/prose"},
	"internal/guard":     {"canary", "internal/wire", "internal/wholefile", "internal/engine", "internal/receipt", "internal/prose", "internal/guard/..."},
	// What a client sends and is told, without a network.
	"internal/guard/daemon":    {"canary", "internal/config", "internal/wire", "internal/engine", "internal/receipt", "internal/guard", "internal/guard/..."},
	"internal/guard/shape":     {"internal/prose"},
	"internal/guard/request":   {"internal/guard/shape"},
	"internal/guard/watch":     {"canary", "internal/wire"},
	"internal/guard/admit":     {"internal/engine", "internal/wire", "internal/prose", "internal/guard/shape", "internal/guard/request"},
	"internal/guard/synthetic": {"canary"},
	"internal/guard/speed":     {},
	"internal/guard/overlap":   {},
	"internal/explore":         {"internal/lab/handoff"},
	"spec":                     {},
	// A witness for tests.
	"internal/witness/stub": {"internal/receipt"},
	// The lab must not know what a canary is.
	"internal/lab":             {"pagetag", "internal/lab/..."},
	"internal/lab/model":       {"pagetag"},
	"internal/lab/handoff":     {"pagetag"},
	"internal/lab/prefix":      {},
	"internal/lab/node":        {"pagetag", "internal/lab/model", "internal/lab/handoff", "internal/lab/prefix"},
	"internal/lab/api":         {"internal/lab", "internal/lab/model"},
	"internal/lab/api/clients": {},
	"internal/guard/clients":   {"canary", "internal/guard/..."},
	"internal/lab/gateway":     {"internal/lab"},
	// Trials of the instrument against the lab: the one place outside cmd that sees both.
	"internal/matrix": {"canary", "internal/..."},
	"internal/demo":   {"canary", "internal/..."},
	"cmd/kvcanary":    {"canary", "pagetag", "internal/..."},
}

func TestImportsFollowTheDesign(t *testing.T) {
	packages := goList(t)
	if len(packages) < 5 {
		t.Fatalf("go list found %d packages of this module; the check would be empty", len(packages))
	}
	for _, p := range packages {
		name := strings.TrimPrefix(p.ImportPath, module)
		allowed, known := mayImport[name]
		if !known {
			t.Errorf("%s has no row in mayImport: say what it may import", name)
			continue
		}
		for _, imported := range p.Imports {
			in, ours := strings.CutPrefix(imported, module)
			if ours && !slices.ContainsFunc(allowed, func(pattern string) bool { return matches(pattern, in) }) {
				t.Errorf("%s imports %s, which the design does not allow", name, in)
			}
		}
	}
}

func TestPatternsMatchWholePathElements(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"canary", "canary", true},
		{"canary", "canary/x", false},
		{"internal/...", "internal/lab/model", true},
		{"internal/lab/...", "internal/lab", true},
		{"internal/lab/...", "internal/labour", false},
	} {
		if got := matches(c.pattern, c.name); got != c.want {
			t.Errorf("matches(%q, %q) = %v, want %v", c.pattern, c.name, got, c.want)
		}
	}
}

func matches(pattern, name string) bool {
	tree, isTree := strings.CutSuffix(pattern, "/...")
	if !isTree {
		return pattern == name
	}
	return name == tree || strings.HasPrefix(name, tree+"/")
}

type listed struct {
	ImportPath string
	Imports    []string
}

func goList(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", path.Join(module, "..."))
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	var all []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
