package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// ran is a kvcanary run that has ended.
type ran struct {
	code           int
	stdout, stderr string
}

// runProcess is kvcanary run as a user starts it.
type runProcess struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
}

func startRun(t *testing.T, args ...string) *runProcess {
	t.Helper()
	p := &runProcess{Cmd: exec.Command("kvcanary", append([]string{"run"}, args...)...)}
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.ProcessState == nil {
			p.Process.Kill()
			p.Wait()
		}
	})
	return p
}

func (p *runProcess) end() ran {
	p.Wait()
	return ran{p.ProcessState.ExitCode(), p.stdout.String(), p.stderr.String()}
}

// bare is the result in a run directory without times and without what says
// that it was interrupted.
func bare(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r map[string]any
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"started", "ended", "resumed"} {
		delete(r, name)
	}
	for _, p := range r["protocols"].([]any) {
		delete(p.(map[string]any), "seconds")
	}
	b, err = json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func lines(path string) int {
	b, _ := os.ReadFile(path)
	return bytes.Count(b, []byte("\n"))
}

// A run that is killed again and again and goes on each time comes to the same
// result as one that is left alone.
func TestKilledRunsGoOn(t *testing.T) {
	dir := t.TempDir()
	args := func(lab *labProcess, out string) []string {
		return []string{
			"smoke", "straddle", "--base-url", lab.url, "--model", "kvcanary-lab", "--key-file", filepath.Join(dir, "key"),
			"--seed", "11", "--concurrency", "1", "--out", filepath.Join(dir, out),
		}
	}
	lab := startLabProcess(t, nil)
	whole := startRun(t, args(lab, "whole")...).end()
	if whole.code != exitClean {
		t.Fatalf("exit code %d\n%s%s", whole.code, whole.stdout, whole.stderr)
	}
	all := lines(filepath.Join(dir, "whole", "exchanges.jsonl"))
	for _, at := range []int{1, all / 2, all - 2} {
		p := startRun(t, args(lab, "killed")...)
		until(t, "the run has made some exchanges", func() bool {
			return lines(filepath.Join(dir, "killed", "exchanges.jsonl")) >= at
		})
		p.Process.Kill()
		if p.Wait(); lines(filepath.Join(dir, "killed", "exchanges.jsonl")) == all {
			t.Fatal("the run ended before it was killed: there is nothing to see here")
		}
	}
	// Directory and flag say all that is needed; a key stays where it was.
	last := startRun(t, "--resume", "--out", filepath.Join(dir, "killed"), "--key-file", filepath.Join(dir, "key")).end()
	if last.code != whole.code || !strings.Contains(last.stderr, "going on with the interrupted run") {
		t.Fatalf("exit code %d, want %d\n%s", last.code, whole.code, last.stderr)
	}
	if got, want := bare(t, filepath.Join(dir, "killed")), bare(t, filepath.Join(dir, "whole")); got != want {
		t.Errorf("the run that was killed came to\n%s\nthe one that was not to\n%s", got, want)
	}
}

// stuck is a target that answers three prompts and then no more.
func stuck(t *testing.T) (url string, waiting func() bool) {
	t.Helper()
	var calls atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !chat(w, r) {
			return
		}
		if calls.Add(1) > 3 {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		n := int(r.ContentLength) / 4
		fmt.Fprintf(w, answered, n, n+1)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL, func() bool { return calls.Load() > 3 }
}

func TestInterruptOnce(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		url, waiting := stuck(t)
		dir := t.TempDir()
		out := filepath.Join(dir, "run")
		p := startRun(t, "smoke", "--dialect", "openai", "--base-url", url, "--model", "x", "--key-file", filepath.Join(dir, "key"), "--out", out, "--concurrency", "1")
		until(t, "the run waits for an answer", waiting)
		p.Process.Signal(signal)
		got := p.end()
		if got.code != exitInconclusive || !strings.Contains(got.stdout, "verdict: inconclusive") || !strings.Contains(got.stderr, "--resume --out "+out+" goes on") {
			t.Errorf("%v: exit code %d\n%s%s", signal, got.code, got.stdout, got.stderr)
		}
		if n := lines(filepath.Join(out, "exchanges.jsonl")); n < 3 {
			t.Errorf("%v: %d exchanges kept", signal, n)
		}
		if r := bare(t, out); !strings.Contains(r, `"resumable": true`) || !strings.Contains(r, `"reason": "interrupted"`) {
			t.Errorf("%v: result %s", signal, r)
		}
	}
}

// What timeout(1) and shells do, to signal a process and then its group, is one
// wish to end: the result is shown.
func TestInterruptToProcessAndGroup(t *testing.T) {
	url, waiting := stuck(t)
	dir := t.TempDir()
	p := startRun(t, "smoke", "--dialect", "openai", "--base-url", url, "--model", "x", "--key-file", filepath.Join(dir, "key"), "--out", filepath.Join(dir, "run"), "--concurrency", "1")
	until(t, "the run waits for an answer", waiting)
	p.Process.Signal(os.Interrupt)
	p.Process.Signal(syscall.SIGTERM)
	if got := p.end(); got.code != exitInconclusive || !strings.Contains(got.stdout, "verdict: inconclusive") {
		t.Errorf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

// The second signal does not wait for anything: here for somebody who reads
// what the first one has made the run say.
func TestInterruptTwice(t *testing.T) {
	url, waiting := stuck(t)
	dir := t.TempDir()
	out := filepath.Join(dir, "run")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	fill(t, write)
	p := &runProcess{Cmd: exec.Command("kvcanary", "run", "smoke", "--dialect", "openai", "--base-url", url, "--model", "x", "--key-file", filepath.Join(dir, "key"), "--out", out, "--concurrency", "1")}
	p.Stdout, p.Stderr = write, &p.stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the run waits for an answer", waiting)
	p.Process.Signal(os.Interrupt)
	until(t, "the result is kept", func() bool {
		b, _ := os.ReadFile(filepath.Join(out, "result.json"))
		return bytes.Contains(b, []byte(`"reason": "interrupted"`))
	})
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatalf("the run ended by itself: %v", err)
	}
	// One that comes right after the first counts as the first.
	again := time.AfterFunc(2*oneSignal, func() { _ = p.Process.Signal(os.Interrupt) })
	defer again.Stop()
	if got := p.end(); got.code != exitInconclusive {
		t.Errorf("exit code %d\n%s", got.code, got.stderr)
	}
	if r := bare(t, out); !strings.Contains(r, `"reason": "interrupted"`) {
		t.Errorf("result %s", r)
	}
}

// fill writes to a pipe until it takes no more.
func fill(t *testing.T, w *os.File) {
	t.Helper()
	if err := w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := w.Write(make([]byte, 4096)); errors.Is(err, os.ErrDeadlineExceeded) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// A disk that takes no more ends the run, and the result is shown all the same.
func TestDirectoryThatGoesAway(t *testing.T) {
	url, waiting := stuck(t)
	dir := t.TempDir()
	out := filepath.Join(dir, "run")
	p := startRun(t, "smoke", "--dialect", "openai", "--base-url", url, "--model", "x", "--key-file", filepath.Join(dir, "key"), "--out", out, "--concurrency", "1", "--format", "json")
	until(t, "the run waits for an answer", waiting)
	for _, name := range []string{"raw", "heard"} {
		if err := os.RemoveAll(filepath.Join(out, name)); err != nil {
			t.Fatal(err)
		}
	}
	p.Process.Signal(os.Interrupt)
	got := p.end()
	if got.code != exitUnreachable || !strings.Contains(got.stdout, `"verdict": "inconclusive"`) {
		t.Errorf("exit code %d\n%s", got.code, got.stdout)
	}
	if !strings.Contains(got.stderr, "in the run directory: ") || !strings.Contains(got.stderr, "what was kept before is in "+out) || strings.Count(got.stderr, "run directory") != 1 {
		t.Errorf("stderr %q", got.stderr)
	}
}
