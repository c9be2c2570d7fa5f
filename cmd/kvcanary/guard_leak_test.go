package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/canary"
)

// startGuardProcess starts a guard on loopback in front of an engine and
// returns its address. further is added to its file.
func startGuardProcess(t *testing.T, dir, upstream, further string) string {
	t.Helper()
	file := filepath.Join(dir, "guard.yaml")
	text := fmt.Sprintf("listen: {address: 127.0.0.1:0}\nupstreams: [{name: engine, base_url: %q}]\ntenants: any\n%s", upstream, further)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("kvcanary", "guard", "--config", file)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	copied := make(chan struct{})
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		<-copied
		cmd.Wait()
	})
	r := bufio.NewReader(stderr)
	for said := ""; ; {
		line, err := r.ReadString('\n')
		said += line
		if m := listening.FindStringSubmatch(line); m != nil {
			go func() { defer close(copied); io.Copy(io.Discard, r) }()
			return m[1]
		}
		if err != nil {
			close(copied)
			t.Fatalf("the guard said\n%s", said)
		}
	}
}

// traffic is what became of the prompts of several customers.
type traffic struct {
	served, refused int // of those that fit
	over, tooLong   int // of those that do not: answered with success, and with 400
	leaks           int // answers with words of somebody else's prompt
}

// smallLab are flags of a lab a quarter of the default's size.
var smallLab = []string{"--context", "4096", "--prefill-pool", "2660", "--decode-pool", "5120"}

// customers sends prompts of several customers, all canary, to a small lab at an
// address, among them eight that its prefill pool cannot hold.
func customers(t *testing.T, url string, coder *canary.Coder, run int, stream bool) (all traffic) {
	t.Helper()
	seq := 0
	ask := func(bytes int) int {
		id := canary.MakeID(run, 0, seq)
		seq++
		words := bytes / 6
		for coder.WordsSize(id, 0, words) > int64(bytes) {
			words--
		}
		text, err := io.ReadAll(coder.Words(id, 0, words))
		if err != nil {
			t.Fatal(err)
		}
		body := fmt.Sprintf(`{"model":"kvcanary-lab","max_tokens":300,"temperature":0,"stream":%v,"messages":[{"role":"user","content":"%s"}]}`, stream, text)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", fmt.Sprintf("Bearer customer-%d", seq%3))
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, _ := io.ReadAll(resp.Body) // a stream that is stopped does not end cleanly
		if slices.ContainsFunc(coder.Scan(plain(answer)), func(h canary.Hit) bool { return h.ID != id }) {
			all.leaks++
		}
		return resp.StatusCode
	}
	fits := func() {
		if ask(2_250) == http.StatusOK {
			all.served++
		} else {
			all.refused++
		}
	}
	for range 6 {
		fits()
	}
	for range 8 {
		switch ask(3_000) {
		case http.StatusOK:
			all.over++
		case http.StatusBadRequest:
			all.tooLong++
		}
		fits()
	}
	return all
}

// plain puts the pieces of text in an answer together, as a client does.
func plain(answer []byte) []byte {
	var out strings.Builder
	rest := string(answer)
	for {
		_, after, found := strings.Cut(rest, `"content":"`)
		if !found {
			return []byte(out.String())
		}
		text, after, _ := strings.Cut(after, `"`)
		out.WriteString(text)
		rest = after
	}
}

// With admission off and the watch strict, the engine leaks and no client ever
// sees a word of it, whether answers are streamed or not.
func TestGuardKeepsALeakFromTheClient(t *testing.T) {
	dir := t.TempDir()
	key := canary.Key{7}
	if err := os.WriteFile(filepath.Join(dir, "key"), key[:], 0o600); err != nil {
		t.Fatal(err)
	}
	coder := canary.New(key)
	lab := startLabProcess(t, nil, append(smallLab, "--fault", "stale_reserve")...)
	watch := fmt.Sprintf("watch: {key_files: [%q]}\n", filepath.Join(dir, "key"))
	unjudged := startGuardProcess(t, dir, lab.url, watch+"admission: {policy: \"off\"}\n")
	for i, stream := range []bool{false, true} {
		if got := customers(t, lab.url, coder, 3*i, stream); got.leaks == 0 || got.over != 8 {
			t.Errorf("streamed %v, without a guard: %+v; the test shows nothing", stream, got)
		}
		if got := customers(t, unjudged, coder, 3*i+1, stream); got.leaks > 0 || got.served != 14 || got.tooLong > 0 {
			t.Errorf("streamed %v, through the watch: %+v", stream, got)
		}
	}
	// With admission on, there is no answer that could.
	closed := startGuardProcess(t, dir, lab.url, watch)
	ready := func() bool {
		resp, err := http.Post(closed+"/v1/chat/completions", "application/json", strings.NewReader(`{"messages":[{"role":"user","content":"Reply with 'noted' only."}]}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}
	for deadline := time.Now().Add(time.Minute); !ready(); {
		if time.Now().After(deadline) {
			t.Fatal("the guard does not come to know the limit")
		}
		time.Sleep(20 * time.Millisecond)
	}
	for i, stream := range []bool{false, true} {
		if got := customers(t, closed, coder, 20+i, stream); got != (traffic{served: 14, tooLong: 8}) {
			t.Errorf("streamed %v, with admission: %+v", stream, got)
		}
	}
}
