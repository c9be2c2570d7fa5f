package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// labProcess is a kvcanary lab that runs as a user's does.
type labProcess struct {
	*exec.Cmd
	url    string
	stderr bytes.Buffer
}

// startLabProcess starts a lab on a free port and waits until it listens.
func startLabProcess(t *testing.T, env []string, args ...string) *labProcess {
	t.Helper()
	// The command is this test binary under another name; see TestMain.
	p := &labProcess{Cmd: exec.Command("kvcanary", append([]string{"lab", "--listen", "127.0.0.1:0"}, args...)...)}
	p.Env = append(os.Environ(), env...)
	p.Stderr = &p.stderr
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.ProcessState == nil {
			p.Process.Kill()
			p.Wait()
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "kvcanary lab: listening on ")
	if err != nil || !ok {
		t.Fatalf("first line %q: %v", line, err)
	}
	p.url = url
	return p
}

// code waits for the end and returns the exit code.
func (p *labProcess) code(t *testing.T) int {
	t.Helper()
	var exit *exec.ExitError
	if err := p.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

// ask sends one chat request under a key and returns status and body.
func (p *labProcess) ask(t *testing.T, key string) (int, string) {
	t.Helper()
	const body = `{"messages":[{"role":"user","content":"Reply with 'noted' only."}],"temperature":0}`
	r, err := http.NewRequestWithContext(t.Context(), "POST", p.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(answer)
}

// children are the processes whose parent is pid.
func children(t *testing.T, pid int) (all []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, stat := range stats {
		p, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended since
		}
		// The name in parentheses may hold anything: fields are counted behind it.
		fields := strings.Fields(string(p[bytes.LastIndexByte(p, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			child, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, child)
		}
	}
	return all
}

// awaitGone returns when none of the processes runs any more. A zombie, which
// waits for its new parent to look at it, does not run.
func awaitGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		for t.Context().Err() == nil {
			p, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil || bytes.Contains(p, []byte(") Z ")) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// nodes are the lab's two node processes.
func (p *labProcess) nodes(t *testing.T) []int {
	t.Helper()
	all := children(t, p.Process.Pid)
	if len(all) != 2 {
		t.Fatalf("the lab has %d processes below it, want 2", len(all))
	}
	return all
}

func TestLabServesAndStopsWhenToldTo(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := startLabProcess(t, nil)
		if status, body := p.ask(t, "any"); status != 200 || !strings.Contains(body, `"content":"noted"`) {
			t.Errorf("%d %s", status, body)
		}
		nodes := p.nodes(t)
		if err := p.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if code := p.code(t); code != exitClean || p.stderr.Len() > 0 {
			t.Errorf("%v: exit %d, stderr %q, want a silent 0", signal, code, p.stderr.String())
		}
		awaitGone(t, nodes)
	}
}

// With shared memory the lab serves all the same, and goes on without a node
// that dies; when the lab itself is killed, nothing is left of it.
func TestLabGoesOnWithoutANode(t *testing.T) {
	dir := t.TempDir()
	p := startLabProcess(t, []string{"TMPDIR=" + dir}, "--transport", "shm", "--restart", "--write-lag", "1ms", "--time-limit", "20s")
	for range 3 {
		nodes := p.nodes(t)
		if status, body := p.ask(t, "any"); status != 200 || !strings.Contains(body, `"content":"noted"`) {
			t.Errorf("%d %s", status, body)
		}
		if err := syscall.Kill(nodes[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		awaitGone(t, nodes[:1])
		for status := 0; status != 200; {
			status, _ = p.ask(t, "any")
		}
	}
	nodes := p.nodes(t)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.code(t)
	awaitGone(t, nodes)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestLabThatLosesANodeEnds(t *testing.T) {
	for i := range 2 {
		p := startLabProcess(t, nil)
		nodes := p.nodes(t)
		if err := syscall.Kill(nodes[i], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if code := p.code(t); code != exitUnreachable {
			t.Errorf("exit %d, want %d", code, exitUnreachable)
		}
		if s := p.stderr.String(); !strings.Contains(s, "node is gone") || strings.Count(s, "\n") != 1 {
			t.Errorf("stderr %q, want one line that says which node is gone", s)
		}
		awaitGone(t, nodes)
	}
}

func TestKilledLabLeavesNothingBehind(t *testing.T) {
	p := startLabProcess(t, nil)
	nodes := p.nodes(t)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.code(t)
	awaitGone(t, nodes)
}

func TestLabKnowsItsTenantsByKey(t *testing.T) {
	env := []string{"LAB_A=sk-alpha-1", "LAB_B=sk-beta-2"}
	p := startLabProcess(t, env, "--transport", "pipe", "--tenant", "alpha=LAB_A", "--tenant", "beta=LAB_B")
	for key, want := range map[string]int{"sk-alpha-1": 200, "sk-beta-2": 200, "sk-gamma-3": 401} {
		if status, body := p.ask(t, key); status != want {
			t.Errorf("%s: %d %s, want %d", key, status, body, want)
		}
	}
	if title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Process.Pid)); err != nil || bytes.Contains(title, []byte("sk-")) {
		t.Errorf("process title %q, %v", title, err)
	}
}

func TestLabSeedGivesTheSameIDs(t *testing.T) {
	first := func(args ...string) string {
		_, body := startLabProcess(t, nil, append(args, "--transport", "pipe")...).ask(t, "")
		id, _, _ := strings.Cut(body, `","object"`)
		return id
	}
	a, b, other := first("--seed", "7"), first("--seed", "7"), first("--seed", "8")
	if a == "" || a != b || a == other {
		t.Errorf("ids %q and %q with seed 7, %q with seed 8", a, b, other)
	}
}

func TestLabRefusesFlags(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	env := map[string]string{"KEY": "sk-secret"}
	for _, c := range []struct {
		args  string
		code  int
		words string
	}{
		{"--listen " + taken.Addr().String(), exitUnreachable, "address already in use: choose another --listen"},
		{"--listen nonsense", exitUsage, "write HOST:PORT"},
		{"--context many", exitUsage, "expected a valid"},
		{"--context 0", exitUsage, "context"},
		{"--page-size 0", exitUsage, "page"},
		{"--prefill-pool 1", exitUsage, "--prefill-pool 1: at least 16 tokens"},
		{"--policy random", exitUsage, "lifo"},
		{"--fault nothing", exitUsage, "stale_reserve"},
		{"--fault stale_reserve:other", exitUsage, "prefill_usage, decode_usage"},
		{"--defence nothing", exitUsage, "retire"},
		{"--transport pigeon", exitUsage, "use tcp, pipe or shm"},
		{"--write-lag 1ms", exitUsage, "--write-lag is for --transport shm"},
		{"--transport pipe --restart", exitUsage, "--restart is for --transport tcp or shm"},
		{"--time-limit=-1s", exitUsage, "must not be negative"},
		{"--answer-cache all", exitUsage, "use exact or semantic"},
		{"--slot-cache=-1", exitUsage, "it cannot be negative"},
		{"--refusal-shape round", exitUsage, "use sse, status or bare"},
		{"--tenant alpha", exitUsage, "write NAME=ENVVAR"},
		{"--tenant alpha=NONE", exitUsage, "NONE is not set"},
		{"--tenant a=KEY --tenant b=KEY", exitUsage, "have the same key"},
	} {
		var out, errs bytes.Buffer
		s := &session{ctx: context.Background(), stdin: strings.NewReader(""), stdout: &out, stderr: &errs,
			getenv: func(name string) string { return env[name] }}
		code := run(s, append([]string{"lab"}, strings.Fields(c.args)...))
		if code != c.code || !strings.Contains(errs.String(), c.words) {
			t.Errorf("%s: exit %d, want %d, with %q in\n%s", c.args, code, c.code, c.words, errs.String())
		}
		if strings.Contains(errs.String(), "sk-secret") || out.Len() > 0 {
			t.Errorf("%s: stdout %q, stderr %q", c.args, out.String(), errs.String())
		}
	}
}

func TestLabHelpListsFaultsAndDefences(t *testing.T) {
	var out, errs bytes.Buffer
	s := &session{ctx: context.Background(), stdout: &out, stderr: &errs}
	if code := run(s, []string{"lab", "--help"}); code != exitClean {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	for _, want := range []string{"stale_reserve:prefill_usage|decode_usage|other_abort: ", "https://github.com/sgl-project/sglang/issues/30233", "retire: ", "zero_on_alloc:paged|all: ",
		"late_write: ", "stale_source:transfer|tier: ", "early_publish:never_written|last_slot|copy_race: ", "thin_key:weak_hash|omit_media|omit_adapter: ", "shared_prefix:all|tier: ", "salt:all|gpu_only|client: ", "double_owner: ", "id_reuse:client|trace_id|coarse_clock|metadata_slot: ", "tags:by_writer|at_reserve: ", "checksum_absent:reject|skip: ",
		"dirty_slot:lru|recurrent|tail: ", "row_skew: ", "stream_desync:off_by_one|buffer|parser: ", "answer_cache:exact|semantic|soft: ",
		"poison_conns: ", "own_parsers: ", "echo_ids: ", "tenant_key: ", "row_ids: ", "slot_reset: ", "slot_tags: ", "live_ids: ", "quiesce_deadline: ", "owner_audit: ", "admission: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("help lacks %q", want)
		}
	}
}
