package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/campaign"
)

// Killing any process of a lab, or the demo or run that uses one, leaves no
// process behind and no half-written file.
func TestKilledProcessesLeaveNothing(t *testing.T) {
	exe := program(t)
	for _, victim := range []string{"lab", "prefill or decode", "decode or prefill"} {
		t.Run(victim, func(t *testing.T) {
			lab := startProgram(t, exe, "lab", "--listen", "127.0.0.1:0")
			family := waitFamily(t, lab.cmd.Process.Pid, 3)
			pid := family[map[string]int{"lab": 0, "prefill or decode": 1, "decode or prefill": 2}[victim]]
			kill(t, pid)
			code := lab.wait(t)
			if victim != "lab" && code != exitUnreachable {
				t.Errorf("the lab lost a node and exits with %d, want %d", code, exitUnreachable)
			}
			wantGone(t, family)
		})
	}
	t.Run("demo", func(t *testing.T) {
		demo := startProgram(t, exe, "demo", "--scale", "full")
		family := waitFamily(t, demo.cmd.Process.Pid, 4)
		kill(t, demo.cmd.Process.Pid)
		demo.wait(t)
		wantGone(t, family)
	})
}

func TestKilledRunKeepsWholeLines(t *testing.T) {
	exe := program(t)
	lab := startProgram(t, exe, "lab", "--listen", "127.0.0.1:0")
	url := strings.TrimPrefix(lab.line, "kvcanary lab: listening on ")
	dir := t.TempDir()
	for i := range 4 {
		out := filepath.Join(dir, strconv.Itoa(i))
		cmd := exec.Command(exe, "run", "--base-url", url, "--model", "kvcanary-lab", "--key-file", filepath.Join(dir, "key"), "--out", out)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := filepath.Join(out, "exchanges.jsonl")
		until(t, "the run has made some exchanges", func() bool {
			info, err := os.Stat(lines)
			return err == nil && info.Size() > int64(1000*i)
		})
		kill(t, cmd.Process.Pid)
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

// program is a kvcanary to run: this test binary under that name.
func program(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(t.TempDir(), "kvcanary")
	if err := os.Link(self, exe); err != nil {
		in, err := os.ReadFile(self)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(exe, in, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return exe
}

type running struct {
	cmd  *exec.Cmd
	line string // the first it says
	done chan error
}

// startProgram starts a program and waits for its first line of output.
func startProgram(t *testing.T, exe string, args ...string) *running {
	t.Helper()
	cmd := exec.Command(exe, args...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &running{cmd: cmd, done: make(chan error, 1)}
	in := bufio.NewReader(stdout)
	line, err := in.ReadString('\n')
	if err != nil {
		t.Fatalf("%s %v says nothing: %v", exe, args, err)
	}
	r.line = strings.TrimSpace(line)
	go func() {
		io.Copy(io.Discard, in)
		r.done <- cmd.Wait()
	}()
	t.Cleanup(func() { cmd.Process.Kill() })
	return r
}

// wait waits for the program's end and returns its exit code, -1 if a signal ended it.
func (r *running) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-r.done:
		return r.cmd.ProcessState.ExitCode()
	case <-time.After(30 * time.Second):
		t.Fatal("the program does not end")
		return 0
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// waitFamily waits until a process and its descendants are n, and returns them,
// the process first.
func waitFamily(t *testing.T, pid, n int) []int {
	t.Helper()
	var family []int
	until(t, fmt.Sprintf("there are %d processes", n), func() bool {
		family = descendants(pid)
		return len(family) >= n
	})
	return family
}

// descendants lists a process and those below it.
func descendants(pid int) []int {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", all[i]))
		for _, task := range tasks {
			data, _ := os.ReadFile(task)
			for _, f := range strings.Fields(string(data)) {
				child, _ := strconv.Atoi(f)
				all = append(all, child)
			}
		}
	}
	return all
}

func wantGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		until(t, fmt.Sprintf("process %d is gone", pid), func() bool { return !alive(pid) })
	}
}

// alive reports whether a process runs; one that has ended and waits to be
// collected does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, ok := strings.Cut(string(stat), ") ")
	return ok && !strings.HasPrefix(rest, "Z")
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 3000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("it never came to pass that %s", what)
}
