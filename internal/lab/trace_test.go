package lab

import (
	"bufio"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// The trace of processes that run side by side holds every step of every
// machine in its order: the machines do the same again when they get it back.
func TestTraceReplays(t *testing.T) {
	cfg := tiny()
	cfg.Trace = filepath.Join(t.TempDir(), "trace")
	e := startProcesses(t, cfg)
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 14))
			for range 3 {
				collect(e.Submit(t.Context(), Request{ID: "x", Tokens: chat(words(rng, rng.IntN(3000)+1)), MaxTokens: 9}))
			}
		})
	}
	clients.Wait()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	steps := replay(t, cfg.Trace)
	for _, role := range []handoff.Role{handoff.ToRouter, handoff.ToPrefill, handoff.ToDecode} {
		if steps[role] < 24 {
			t.Errorf("%d steps of %v", steps[role], role)
		}
	}
}

// replay gives the machines what a trace says that they got, and counts the
// steps of each. A node that has been started again knows nothing.
func replay(t *testing.T, path string) map[handoff.Role]int {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	type machine interface {
		Step(handoff.Event) []handoff.Action
	}
	var cfg handoff.Config
	machines, steps := map[handoff.Role]machine{}, map[handoff.Role]int{}
	err = handoff.ReadTrace(bufio.NewReader(file), func(r handoff.Record) error {
		switch {
		case r.Config != nil:
			cfg = *r.Config
			machines[handoff.ToRouter] = handoff.NewRouter(cfg)
		case r.Start && r.By == handoff.ToPrefill:
			machines[r.By] = handoff.NewPrefill(cfg)
		case r.Start:
			machines[r.By] = handoff.NewDecode(cfg)
		default:
			steps[r.By]++
			if got := machines[r.By].Step(*r.In); len(got) != len(r.Out) || len(got) > 0 && !reflect.DeepEqual(got, r.Out) {
				t.Fatalf("step %d of %v: %v does %v, the trace says %v", steps[r.By], r.By, *r.In, got, r.Out)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

func TestTraceThatCannotBeWritten(t *testing.T) {
	cfg := tiny()
	cfg.Trace = filepath.Join(t.TempDir(), "no", "such", "folder")
	if e, err := StartPipe(cfg); err == nil {
		e.Close()
		t.Error("starts")
	}
	if e, err := StartProcesses(cfg, os.Args[0], "lab-node"); err == nil {
		e.Close()
		t.Error("starts")
	}
}
