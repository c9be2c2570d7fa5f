package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/explore"
)

// What a lab writes down under churn, with clients that leave and nodes that are
// killed while prefill writes into decode's memory, is a behaviour of the
// machines and keeps the invariants.
func TestTraceOfAChurnedLabHolds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace")
	lab := startLabProcess(t, nil, "--transport", "shm", "--write-lag", "10ms", "--restart", "--trace", file,
		"--context", "2048", "--prefill-pool", "1024", "--decode-pool", "2048")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var served atomic.Int64
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() { churn(ctx, lab.url, rand.New(rand.NewPCG(uint64(i), 7)), &served) })
	}
	for kill := range 4 {
		want := served.Load() + 40
		until(t, "requests are served again", func() bool { return served.Load() >= want })
		nodes := children(t, lab.Process.Pid)
		if len(nodes) != 2 {
			t.Fatalf("the lab has %d nodes", len(nodes))
		}
		syscall.Kill(nodes[kill%2], syscall.SIGKILL)
	}
	want := served.Load() + 40
	until(t, "requests are served after the last kill", func() bool { return served.Load() >= want })
	cancel()
	clients.Wait()
	lab.Process.Signal(os.Interrupt)
	if code := lab.code(t); code != 0 {
		t.Errorf("the lab ends with code %d: %s", code, lab.stderr.String())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := explore.CheckTrace(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	if r.Restarts < 4 || r.Cancels == 0 || r.Answers < 200 {
		t.Errorf("little has happened: %+v", r)
	}
	if _, err := explore.CheckTrace(bytes.NewReader(text[:len(text)*2/3])); err == nil {
		t.Error("two thirds of the trace are accepted")
	}
}

// churn sends one request after the other and leaves every third one alone.
func churn(ctx context.Context, url string, rng *rand.Rand, served *atomic.Int64) {
	for n := 0; ctx.Err() == nil; n++ {
		words := strings.Repeat("word ", 1+rng.IntN(180))
		body := fmt.Sprintf(`{"model":"kvcanary-lab","messages":[{"role":"user","content":%q}],"max_tokens":%d}`, words, 1+rng.IntN(12))
		limit := 20 * time.Second
		if n%3 == 2 {
			limit = time.Duration(rng.IntN(30)) * time.Millisecond
		}
		one, stop := context.WithTimeout(ctx, limit)
		if ask(one, url, body) == nil {
			served.Add(1)
		}
		stop()
	}
}

func ask(ctx context.Context, url, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err = io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", resp.StatusCode)
	}
	return err
}
