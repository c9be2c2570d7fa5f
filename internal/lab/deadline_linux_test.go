package lab

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// Pages that drain are given out after a while although prefill, which has
// stopped, has not said that nothing is written to them; without a deadline they
// are kept until it does.
func TestQuiesceWithADeadline(t *testing.T) {
	for _, c := range []struct {
		defence string
		kept    bool
	}{{"quiesce", true}, {"quiesce_deadline", false}} {
		cfg := tiny()
		cfg.OneSided, cfg.PrefillRate, cfg.Faults, cfg.Defences = true, 200, []string{"late_write"}, []string{c.defence}
		e := startProcesses(t, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		prompt, _ := recall(rand.New(rand.NewPCG(1, 71)), 2400)
		first := e.Submit(ctx, Request{Tokens: prompt, MaxTokens: 4})
		eventually(t, "pages for a prompt", func() bool { return e.State().DecodeUsed > 0 })
		prefill := e.Pids()["prefill"]
		if err := syscall.Kill(prefill, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a prefill that has stopped", func() bool { return stopped(t, prefill) })
		cancel()
		collect(first)
		if c.kept {
			eventually(t, "pages that drain", func() bool { return e.State().DecodeDraining > 0 })
		} else {
			eventually(t, "pages that are given out", func() bool { return e.State().DecodeUsed == 0 })
		}
		if err := syscall.Kill(prefill, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		idle(t, e)
	}
}

// stopped reports whether no thread of a process goes on: after the signal some
// do, until one of them has been there to take it.
func stopped(t *testing.T, pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("no threads of %d: %v", pid, err)
	}
	return !slices.ContainsFunc(threads, func(file string) bool {
		stat, err := os.ReadFile(file)
		return err != nil || !bytes.Contains(stat, []byte(") T "))
	})
}

// A write that takes longer than the deadline lands in what is another's by then,
// whose answer is not what its prompt says.
func TestDeadlineReopensLateWrites(t *testing.T) {
	cfg := busy("late_write")
	cfg.Defences = []string{"quiesce_deadline"}
	e := startProcesses(t, cfg)
	(&crowd{engine: e}).gather(t, 8, 5*time.Minute, func(c *crowd) bool { return c.leaks.Load()+c.wrong.Load() > 0 })
}
