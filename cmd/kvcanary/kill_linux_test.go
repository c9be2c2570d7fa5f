package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/campaign"
)

func TestKilledDemoLeavesNothingBehind(t *testing.T) {
	demo := exec.Command("kvcanary", "demo", "--scale", "full")
	demo.Stdout = io.Discard
	temp := t.TempDir()
	demo.Env = append(os.Environ(), "TMPDIR="+temp)
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	var family []int
	until(t, "the demo has started a lab and the lab its nodes", func() bool {
		family = nil
		for _, lab := range children(t, demo.Process.Pid) {
			family = append(append(family, lab), children(t, lab)...)
		}
		return len(family) == 3
	})
	if err := demo.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	demo.Wait()
	awaitGone(t, family)
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("%v was left behind, %v", left, err)
	}
}

// A run that is killed leaves a directory that loads, with whole lines and no result.
func TestKilledRunLeavesWholeLines(t *testing.T) {
	lab := startLabProcess(t, nil)
	dir := t.TempDir()
	for i := range 4 {
		out := filepath.Join(dir, strconv.Itoa(i))
		cmd := exec.Command("kvcanary", "run", "--base-url", lab.url, "--model", "kvcanary-lab", "--key-file", filepath.Join(dir, "key"), "--out", out)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		until(t, "the run has made some exchanges", func() bool {
			info, err := os.Stat(filepath.Join(out, "exchanges.jsonl"))
			return err == nil && info.Size() > int64(1000*i)
		})
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		loaded, err := campaign.Load(out)
		if err != nil {
			t.Fatalf("the directory of a killed run does not load: %v", err)
		}
		if loaded.Result != nil {
			t.Fatal("the run ended before it was killed: there is nothing to see here")
		}
		if _, err := os.Stat(filepath.Join(out, "result.json")); err == nil {
			t.Error("a killed run has a result")
		}
	}
}

// until waits for something that must come to pass, for two minutes on a machine
// however busy.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 12_000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("it never came to pass that %s", what)
}
