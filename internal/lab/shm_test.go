package lab

import (
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/model"
	"github.com/kvcanary/kvcanary/internal/lab/node"
)

// lagging is an engine whose one-sided writes end in any order.
func lagging() Config {
	cfg := tiny()
	cfg.OneSided, cfg.Lag = true, 5*time.Millisecond
	return cfg
}

// nothingLeft checks that no shared pool is left in the file system.
func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Prefill writes into decode's pool by itself, and every answer is the one that
// the model gives alone; nothing is left in the file system.
func TestOneSidedAnswersEqualTheModels(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	m := model.New()
	for name, start := range map[string]func() *Engine{
		"pipe": func() *Engine { return startPipe(t, lagging()) },
		"shm":  func() *Engine { return startProcesses(t, lagging()) },
	} {
		e := start()
		var clients sync.WaitGroup
		for i := range 8 {
			clients.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(i), 22))
				for range 2 {
					tokens, _ := recall(rng, 100+rng.IntN(500))
					r := Request{Tokens: tokens, MaxTokens: 1 + rng.IntN(40), Seed: rng.Uint64()}
					want := direct(m, r.Tokens, r.MaxTokens, node.Sampling{Seed: r.Seed})
					if got := collect(e.Submit(t.Context(), r)); got.text != want || got.err != nil {
						t.Errorf("%s: got %q, %v, want %q", name, got.text, got.err, want)
					}
				}
			})
		}
		clients.Wait()
		idle(t, e)
		if err := e.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		nothingLeft(t, dir)
	}
}
