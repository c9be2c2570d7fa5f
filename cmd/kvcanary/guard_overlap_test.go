package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/canary"
)

// A guard that knows no canary key takes the customers' prompts for what they
// are, text of its tenants, and reports an engine that leaks them; one that
// does not leak it does not accuse.
func TestGuardSuspectsALeakOfCustomersText(t *testing.T) {
	for _, leaks := range []bool{true, false} {
		flags := smallLab
		if leaks {
			flags = append(flags, "--fault", "stale_reserve")
		}
		dir := t.TempDir()
		findings := filepath.Join(dir, "findings.jsonl")
		lab := startLabProcess(t, nil, flags...)
		url := startGuardProcess(t, dir, lab.url, "admission: {policy: \"off\"}\noverlap: {memory_bytes: 1048576, letters: 80}\nfindings_file: "+findings+"\n")
		seen, over := 0, 0
		for i, stream := range []bool{false, true} {
			all := customers(t, url, canary.New(canary.Key{7}), i, stream)
			seen, over = seen+all.leaks, over+all.over
		}
		b, err := os.ReadFile(findings)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		reported := 0 // answers, each of which may have several findings
		for line := range strings.Lines(string(b)) {
			if strings.Contains(line, `"kind":"overlap"`) {
				reported++
			}
		}
		t.Logf("fault %v: %d answers leak, %d of the %d to prompts over the limit are reported", leaks, seen, reported, over)
		if (seen > 0) != leaks || (reported > 0) != leaks || reported > over {
			t.Errorf("with a fault %v: %d answers leak, %d are reported:\n%s", leaks, seen, reported, b)
		}
	}
}
