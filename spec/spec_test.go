// Package spec_test runs the Promela model of the handoff through Spin.
package spec_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestModelAsExpected runs the short form of run.sh: each of its sets of
// switches keeps and breaks the invariants that expected.tsv says.
func TestModelAsExpected(t *testing.T) {
	t.Parallel()
	needTools(t)
	out, log := run(t)
	t.Logf("%s", log)
	verdicts := map[string]int{}
	for line := range strings.Lines(out) {
		if cells := strings.Split(line, "\t"); len(cells) == 6 {
			verdicts[cells[3]]++
		}
	}
	// A table without a single broken invariant would show that nothing is checked.
	if verdicts["holds"] < 300 || verdicts["violated"] < 60 || verdicts["fires"] < 10 {
		t.Errorf("the table is too small to mean anything: %v", verdicts)
	}
}

// TestIncidentIsFound wants the incident's shortest run as text, ending in a
// page that another tenant has written.
func TestIncidentIsFound(t *testing.T) {
	t.Parallel()
	needTools(t)
	got, _ := run(t, "--trace", "incident", "stale_reserve", "I6")
	want, err := os.ReadFile("incident.txt")
	if err != nil {
		t.Fatal(err)
	}
	// Which of the shortest runs Spin meets first is its own affair.
	if steps := regexp.MustCompile(`I6 is violated after \d+ steps`); steps.FindString(got) != steps.FindString(string(want)) {
		t.Errorf("the shortest run has changed:\n%s\nincident.txt has:\n%s", got, want)
	}
	for _, part := range []string{"P: refuses request 1", "request 1 reads page 1, which holds what request 0 wrote", "R: request 1 has its answer"} {
		if !strings.Contains(got, part) {
			t.Errorf("the run does not say %q:\n%s", part, got)
		}
	}
}

// TestSafeEngineHasNoTrace shows that a trace is not printed for just anything.
func TestSafeEngineHasNoTrace(t *testing.T) {
	t.Parallel()
	needTools(t)
	out, err := exec.Command("bash", "run.sh", "--trace", "incident", "base", "I1").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "nothing breaks I1") {
		t.Errorf("error %v for a run that does not exist:\n%s", err, out)
	}
}

// TestUnexpectedVerdictFails shows that run.sh looks at what it is told to expect.
func TestUnexpectedVerdictFails(t *testing.T) {
	t.Parallel()
	needTools(t)
	cells := strings.Fields(". x . . . . . . .") // I1 of the safe engine, broken
	out, err := exec.Command("bash", append([]string{"run.sh", "--row", "short", "incident", "base"}, cells...)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "I1 holds, which expected.tsv does not say") {
		t.Errorf("error %v for a verdict that was not expected:\n%s", err, out)
	}
}

// TestBesideTakesTurns runs beside.sh with something in the explorer's place
// that says how many states it has seen.
func TestBesideTakesTurns(t *testing.T) {
	t.Parallel()
	needTools(t)
	exe := filepath.Join(t.TempDir(), "kvcanary")
	said := "#!/bin/sh\necho '{\"results\": [{\n \"states\": 5,\n}],\n \"states\": 1234,\n \"verdict\": \"holds\"}'\n"
	if err := os.WriteFile(exe, []byte(said), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "beside.sh", "pair", "some", "1")
	cmd.Env = append(os.Environ(), "KVCANARY="+exe)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for what, want := range map[string]int{
		`(?m)^pair\texhaustive\t\d+\t[\d.]+\t\d+$`: 1, `(?m)^pair\tbitstate\t\d+\t[\d.]+\t\d+$`: 1, `(?m)^some\tmachines\t1234\t[\d.]+\t\d+$`: 1,
		`(?m)^median\t(exhaustive|bitstate|machines)\t\t\t[1-9]\d*$`: 3,
	} {
		if got := regexp.MustCompile(what).FindAll(out, -1); len(got) != want {
			t.Errorf("%d lines like %s, want %d:\n%s", len(got), what, want, out)
		}
	}
}

// TestReadmeHasTheTable keeps the table of README.md what run.sh makes of expected.tsv.
func TestReadmeHasTheTable(t *testing.T) {
	t.Parallel()
	needTools(t)
	table, _ := run(t, "--table")
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), table) || strings.Contains(table, "?") || strings.Count(table, "\n") < 12 {
		t.Errorf("README.md does not have the table that run.sh --table prints:\n%s", table)
	}
}

func needTools(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"bash", "spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%v: install it (apt-get install spin gcc libc6-dev)", err)
		}
	}
}

func run(t *testing.T, args ...string) (out, log string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command("bash", append([]string{"run.sh"}, args...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("run.sh %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), stderr.String()
}
