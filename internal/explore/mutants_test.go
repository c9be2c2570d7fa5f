package explore

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

var (
	mutants = flag.Int("mutants", 2, "how many mutants to explore, spread over all; a negative number explores all")
	named   = flag.String("mutant", "", "explore only mutants with this in their names")
	engine  = flag.String("engine", "", "what TestUnmutated explores: the Engine line of a mutant")
)

// mutant is a patch of one line that weakens the machines of package handoff.
// Its file says what it does and on which engines it has to be found.
type mutant struct {
	path, name, does, engine string
}

func readMutants(t *testing.T) []mutant {
	t.Helper()
	paths, err := filepath.Glob("testdata/mutants/*.patch")
	if err != nil || len(paths) < 25 {
		t.Fatalf("%d mutants: %v", len(paths), err)
	}
	var all []mutant
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitN(string(text), "\n", 4)
		on, ok := strings.CutPrefix(lines[1], "Engine: ")
		if !ok || lines[2] != "" {
			t.Fatalf("%s: the second line says Engine:, the third is empty", path)
		}
		added, removed := strings.Count(lines[3], "\n+")-1, strings.Count(lines[3], "\n-")
		if max(added, removed) != 1 {
			t.Errorf("%s: %d lines added, %d removed: a mutant changes one line", path, added, removed)
		}
		all = append(all, mutant{path, strings.TrimSuffix(filepath.Base(path), ".patch"), lines[0], on})
	}
	return all
}

// trial is one exploration that may find a mutant.
type trial struct {
	setup  Setup
	engine string
	only   []Invariant
}

// allOf are all invariants, and that no check finds anything, where that holds:
// a mutant that another check makes harmless shows by what that check finds.
var allOf = []Invariant{Books, I1, I2, I3, I4, I5, I6, I7, I8, Noticed}

// trials are the explorations of an Engine line. "default" is an engine without
// faults, and one that has its orderings only; "messages" are engines that send
// pages as messages, with one check each. All others name a fault, a defence
// against it, and a setup.
func trials(t *testing.T, on string) []trial {
	t.Helper()
	bare := handoff.Switches{Without: handoff.TagsByWriter | handoff.Generations | handoff.Coverage}
	var out []trial
	switch on {
	case "default":
		for _, name := range []string{ // the quickest first
			"too-long-for-decode", "tight", "tight-prefill", "tight-growth", "tight-crash", "tight-lossy", "pair", "too-long", "pair-crash",
			"waiting", "pair-lossy", "pair-aborts", "tight-boundless", "tight-crashes",
		} {
			s := setup(t, name)
			out = append(out, trial{s, "", allOf}, trial{s.With(bare), "orderings only", nil})
		}
		return append(out, trial{setup(t, "pair-messages"), "", nil}, trial{setup(t, "three"), "", nil})
	case "messages":
		coverage := handoff.Switches{Without: handoff.TagsByWriter | handoff.Generations}
		return append(out, trial{setup(t, "pair-messages").With(coverage), "coverage only", nil})
	}
	var sw handoff.Switches
	only := []Invariant{Books, I5, I6, Spoilt}
	var s Setup
	for word := range strings.FieldsSeq(on) {
		key, value, _ := strings.Cut(word, "=")
		var err error
		switch key {
		case "fault":
			err = sw.Faults.UnmarshalText([]byte(value))
		case "defence":
			err = sw.Defences.UnmarshalText([]byte(value))
		case "setup":
			s = setup(t, value)
		default:
			t.Fatalf("engine %q: what is %q?", on, key)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return []trial{{s.With(sw), sw.Faults.String() + " with " + sw.Defences.String(), only}}
}

// TestUnmutated explores the engines on which mutants must be found. As they
// are, nothing is found. TestMutants runs this test with a mutant in the code.
func TestUnmutated(t *testing.T) {
	engines := []string{*engine}
	if *engine == "" {
		engines = nil
		for _, m := range readMutants(t) {
			if m.engine != "default" && m.engine != "messages" { // they are other tests' matter
				engines = append(engines, m.engine)
			}
		}
	}
	for _, on := range engines {
		for _, x := range trials(t, on) {
			r := explore(t, x.setup, Options{Workers: 2, Only: x.only, Limit: 3e6})
			switch c := r.Counterexample; {
			case c != nil:
				t.Fatalf("\nbroken: %v\t%d\t%s\n%s", c.Broken[0].Invariant, len(c.Steps), strings.TrimSuffix(x.setup.Name+", "+x.engine, ", "), c.Story())
			case r.Endless != "":
				t.Fatalf("\nbroken: %v\t%s\t%s\n", I5, "-", x.setup.Name)
			}
		}
	}
}

// Each mutant is found. The short form applies all of them and explores a few;
// -mutants -1 explores all and takes some minutes.
func TestMutants(t *testing.T) {
	all := readMutants(t)
	n := *mutants
	if n < 0 || n > len(all) {
		n = len(all)
	}
	dir := copyModule(t)
	table := map[string]string{}
	for i, m := range all {
		patch(t, dir, m)
		if *named != "" && strings.Contains(m.name, *named) || *named == "" && i*n/len(all) != (i+1)*n/len(all) { // spread evenly
			table[m.name] = hunt(t, dir, m)
		}
		patch(t, dir, m, "--reverse")
	}
	if n == len(all) && *named == "" {
		var b strings.Builder
		for _, m := range all {
			fmt.Fprintf(&b, "%s\t%s\t%s\n", m.name, table[m.name], m.does)
		}
		golden(t, "mutants.tsv", b.String())
		return
	}
	want, err := os.ReadFile("testdata/mutants.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for name, found := range table {
		if !strings.Contains("\n"+string(want), "\n"+name+"\t"+found+"\t") {
			t.Errorf("%s: found as %q, testdata/mutants.tsv says otherwise", name, found)
		}
	}
}

// An invariant that nothing breaks might not be looked at: each is the one by
// which some mutant is found.
func TestEachInvariantIsBroken(t *testing.T) {
	found, err := os.ReadFile("testdata/mutants.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for i := Books; i <= I8; i++ {
		if !strings.Contains(string(found), "\t"+i.String()+"\t") {
			t.Errorf("no mutant is found by %v: %s", i, Invariants[i])
		}
	}
}

// copyModule copies what the explorer is made of.
func copyModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, tree := range []string{"go.mod", "go.sum", "internal/lab/handoff", "internal/explore", "pagetag"} {
		from, to := filepath.Join("../..", tree), filepath.Join(dir, tree)
		info, err := os.Stat(from)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			if err := os.CopyFS(to, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func patch(t *testing.T, dir string, m mutant, flags ...string) {
	t.Helper()
	path, err := filepath.Abs(m.path)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("git", append(append([]string{"apply"}, flags...), path)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s does not apply: %v\n%s", m.name, err, out)
	}
}

// hunt explores a mutant and returns the invariant that finds it, the length of
// the trace, and the setup.
func hunt(t *testing.T, dir string, m mutant) string {
	t.Helper()
	cmd := exec.Command("go", "test", "-vet=off", "-count=1", "-run", "^TestUnmutated$", "./internal/explore", "-engine", m.engine)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	_, after, found := bytes.Cut(out, []byte(" broken: "))
	if err == nil || !found {
		t.Errorf("%s (%s) is not found: %v\n%s", m.name, m.does, err, out)
		return "not found"
	}
	line, _, _ := strings.Cut(string(after), "\n")
	t.Logf("%s: %s", m.name, line)
	return line
}
