package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// fence is a guard that a script has started.
type fence struct {
	*exec.Cmd
	stop func() int // its exit code
}

// fenceKey is under what a script keeps its guard.
type fenceKey struct{}

var listening = regexp.MustCompile(`msg=listening at=(\S+)(?: metrics=(\S+)/metrics)?`)

// startGuard starts a guard with a file; what it logs goes to guard.log, where
// it listens to $GUARD and $GUARDSIDE.
func startGuard(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: guard FILE")
	}
	cmd := exec.Command(filepath.Join(binDir(ts), "kvcanary"), "guard", "--config", args[0])
	cmd.Dir = ts.Getenv("WORK")
	cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"), "XDG_CONFIG_HOME="+ts.Getenv("XDG_CONFIG_HOME"))
	for _, name := range []string{"KEY_A", "KEY_B", "EXTRA", "QUERY"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	log, err := os.Create(ts.MkAbs("guard.log"))
	ts.Check(err)
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	copied := make(chan struct{})
	stop := sync.OnceValue(func() int {
		cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
		defer late.Stop()
		<-copied
		log.Close()
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
			return -1
		}
		return cmd.ProcessState.ExitCode()
	})
	ts.Defer(func() { stop() })
	*ts.Value(fenceKey{}).(*fence) = fence{cmd, stop}
	r := bufio.NewReader(stderr)
	var said strings.Builder
	for {
		line, err := r.ReadString('\n')
		said.WriteString(line)
		io.WriteString(log, line)
		if m := listening.FindStringSubmatch(line); m != nil {
			ts.Setenv("GUARD", m[1])
			ts.Setenv("GUARDSIDE", m[2])
			break
		}
		if err != nil {
			close(copied)
			ts.Fatalf("the guard said\n%s", said.String())
		}
	}
	go func() {
		defer close(copied)
		io.Copy(log, r)
	}()
}

// stopGuard ends the guard and wants an exit code of it.
func stopGuard(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: stopguard")
	}
	if code := ts.Value(fenceKey{}).(*fence).stop(); code != exitClean {
		ts.Fatalf("the guard ended with exit code %d", code)
	}
}

// hangup has the guard read its file again.
func hangup(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: hangup")
	}
	ts.Check(ts.Value(fenceKey{}).(*fence).Process.Signal(syscall.SIGHUP))
}

// await waits until a file has a line that matches.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await FILE PATTERN")
	}
	pattern, err := regexp.Compile(args[1])
	ts.Check(err)
	for limit := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		p, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && pattern.Match(p) {
			return
		}
		if time.Now().After(limit) {
			ts.Fatalf("waited a minute for %s in\n%s", args[1], p)
		}
	}
}

// askURL sends a request and keeps what comes back, headers first.
func askURL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 4 {
		ts.Fatalf("usage: ask FILE URL [BODY [KEY]]")
	}
	method, body := http.MethodGet, ""
	if len(args) > 2 {
		method, body = http.MethodPost, args[2]
	}
	r, err := http.NewRequest(method, args[1], strings.NewReader(body))
	ts.Check(err)
	r.Header.Set("Content-Type", "application/json")
	if len(args) > 3 {
		r.Header.Set("Authorization", "Bearer "+args[3])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	res, err := client.Do(r)
	ts.Check(err)
	defer res.Body.Close()
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	defer f.Close()
	fmt.Fprintf(f, "HTTP %d\n", res.StatusCode)
	res.Header.Write(f)
	fmt.Fprintln(f)
	_, err = io.Copy(f, res.Body)
	ts.Check(err)
}
