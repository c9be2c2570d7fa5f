package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// nobody is who reads and writes files in a test: root may write where nobody can.
func nobody(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	runtime.LockOSThread()
	if err := unix.Setfsuid(65534); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unix.Setfsuid(0)
		runtime.UnlockOSThread()
	})
}

// On a disk that cannot be written what is there is read all the same; what
// would be written is said not to be, and can be written once there is room.
func TestReadOnlyDisk(t *testing.T) {
	dir := t.TempDir()
	command := func(args ...string) (int, string) {
		var out bytes.Buffer
		s := &session{ctx: t.Context(), stdin: strings.NewReader(""), stdout: &out, stderr: &out, getenv: func(string) string { return "" }}
		return run(s, args), out.String()
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.Mkdir(at("run"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("run/plan.json"), []byte(`{"schema":"kvcanary.plan/v1"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, out := command("receipt", "decide", "x", "--because", "y", "--out", at("run"), "--log", at("log"), "--receipt-key", at("rk")); code != exitClean {
		t.Fatalf("%d: %s", code, out)
	}
	// All may be read by everybody, and written by nobody.
	for up := filepath.Dir(dir); up != os.TempDir() && len(up) > 1; up = filepath.Dir(up) {
		if err := os.Chmod(up, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	modes := map[bool]fs.FileMode{true: 0o555, false: 0o444}
	filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			err = os.Chmod(path, modes[e.IsDir()])
		}
		if err != nil {
			t.Error(err)
		}
		return nil
	})
	t.Cleanup(func() {
		filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if e.IsDir() {
				os.Chmod(path, 0o755)
			}
			return nil
		})
	})
	free := t.TempDir()
	if err := os.Chmod(free, 0o777); err != nil {
		t.Fatal(err)
	}
	nobody(t)
	seal := []string{"--log", at("log"), "--receipt-key", at("rk")}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"report", at("run")}, exitClean, "verdict: inconclusive"},
		{[]string{"receipt", "verify", at("run"), "--public-key", at("rk.pub"), "--log", at("log")}, exitClean, "decision: as it was sealed"},
		{[]string{"receipt", "show", at("run"), "--public-key", at("rk.pub")}, exitClean, "decision/v1"},
		{[]string{"receipt", "log", "--public-key", at("rk.pub"), "--log", at("log")}, exitClean, "1 entries, all as they were logged"},
		{[]string{"report", at("run"), "--format", "html", "--output", at("run/x.html")}, exitUnreachable, "permission denied"},
		{append([]string{"receipt", "decide", "x", "--because", "y", "--out", at("other")}, seal...), exitUnreachable, "permission denied"},
		{append([]string{"receipt", "decide", "x", "--because", "y", "--out", filepath.Join(free, "d")}, seal...), exitUnreachable, "permission denied"},
		{[]string{"receipt", "decide", "x", "--because", "y", "--out", filepath.Join(free, "d"), "--log", filepath.Join(free, "log"), "--receipt-key", at("rk")}, exitClean, "sealed in"},
		{[]string{"receipt", "decide", "x", "--because", "y", "--out", at("other"), "--log", at("log2"), "--receipt-key", at("rk2")}, exitUnreachable, "permission denied"},
	} {
		if code, out := command(c.args...); code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s", strings.Join(c.args, " "), code, c.code, c.want, out)
		}
	}
}
