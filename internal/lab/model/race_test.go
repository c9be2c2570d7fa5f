//go:build race

package model

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

const racing = "KVCANARY_TEST_RACE"

// The race detector sees a page that is written while it is read, although most
// of what reads it is not watched.
func TestRacesOnPagesAreSeen(t *testing.T) {
	if what := os.Getenv(racing); what != "" {
		raceOnPages(what)
		return
	}
	for _, what := range []string{"logits", "write", "copy"} {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestRacesOnPagesAreSeen$")
		cmd.Env = append(os.Environ(), racing+"="+what)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "DATA RACE") {
			t.Errorf("%s beside a write: %v\n%s", what, err, out)
		}
	}
}

// raceOnPages writes to pages while somebody else uses them, without any order.
func raceOnPages(what string) {
	m, c, table := New(), NewCache(4, 16), Table{0, 1, 2, 3}
	text := []byte("The same words, the same words, the same words.")
	m.Write(c, table, 0, text)
	var both sync.WaitGroup
	both.Go(func() { m.Write(c, table, 16, text[16:32]) })
	both.Go(func() {
		switch what {
		case "logits":
			m.Logits(c, table, len(text)-1, text[len(text)-1], 1)
		case "write": // which reads the slots before its first
			m.Write(c, table, 32, text[32:])
		case "copy":
			copy(make([]byte, c.PageBytes()), c.Page(1))
		}
	})
	both.Wait()
}
