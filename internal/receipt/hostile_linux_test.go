package receipt

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A directory that a stranger has made keeps nobody waiting at a pipe.
func TestPipesAreNotRead(t *testing.T) {
	for _, name := range []string{"plan.json", "receipt/plan.dsse.json", "receipt/result.tlog-proof", filesName} {
		t.Run(name, func(t *testing.T) {
			s := sealer(t, t.TempDir())
			dir := sealedRun(t, s)
			os.Remove(dir + "/" + name)
			if err := syscall.Mkfifo(dir+"/"+name, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := problems(dir, s.Key.Verifier()); !strings.Contains(got, "is no plain file") {
				t.Errorf("%q", got)
			}
		})
	}
}

// Whoever seals while others do has a proof all the same, and there is one log.
func TestProofsWhileTheLogGrows(t *testing.T) {
	s := sealer(t, t.TempDir())
	var wg sync.WaitGroup
	var ticks atomic.Int64 // a clock that every look moves on
	for i := range 8 {
		wg.Go(func() {
			for n := range 5 {
				dir := t.TempDir()
				own := *s
				own.Now = func() time.Time { return time.Unix(1_800_000_000+ticks.Add(1), 0) }
				if err := own.Decide(dir, Decision{Decision: fmt.Sprint(i, n), Because: "test"}, nil); err != nil {
					t.Error(err)
				}
				if got := problems(dir, s.Key.Verifier()); got != "" {
					t.Error(got)
				}
			}
		})
	}
	wg.Wait()
	if n, err := s.Log.Check(); n != 40 || err != nil {
		t.Errorf("%d entries, %v", n, err)
	}
}

// Nor does a log that a stranger has made.
func TestPipesAndLinksInALogAreNotRead(t *testing.T) {
	for _, name := range []string{"checkpoint", "tile/0/000.p/2", "tile/entries/000.p/2", "witness/w"} {
		for kind, make := range map[string]func(path string) error{
			"is no plain file": func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"escapes":          func(path string) error { return os.Symlink("/etc/hostname", path) },
		} {
			dir := t.TempDir()
			s := sealer(t, dir)
			w := newCosigner(t, "a.example")
			witnessed(t, s, noon, w)
			sealedRun(t, s)
			path := dir + "/" + strings.Replace(name, "witness/w", witnessPath(w.public), 1)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := make(path); err != nil {
				t.Fatal(err)
			}
			_, err := s.Log.Check()
			if err == nil {
				_, err = s.Log.CheckSeen(w.public)
			}
			if err == nil || !strings.Contains(err.Error(), kind) && !strings.Contains(err.Error(), "is not there") {
				t.Errorf("%s: %v, want %q", name, err, kind)
			}
		}
	}
}
