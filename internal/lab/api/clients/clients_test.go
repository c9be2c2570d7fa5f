// Package clients tries the lab's API with clients that nobody here wrote.
package clients

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvcanary/kvcanary/internal/lab"
	"github.com/kvcanary/kvcanary/internal/lab/api"
	"github.com/kvcanary/kvcanary/internal/lab/gateway"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a lab of the small scale over loopback and returns its URL.
func serve(t *testing.T, cfg lab.Config, keys map[string]string) string {
	t.Helper()
	nodes, err := lab.StartPipe(cfg)
	if err != nil {
		t.Fatal(err)
	}
	engine := gateway.Over(nodes)
	var ids atomic.Int64
	server := httptest.NewServer(api.NewHandler(api.Options{
		Backend: engine, Model: lab.ModelName, Keys: keys, Now: time.Now, NewID: func() string { return fmt.Sprint(ids.Add(1)) },
	}))
	t.Cleanup(func() {
		server.Close()
		http.DefaultClient.CloseIdleConnections()
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return server.URL
}

// The published script runs as it is: a correct engine answers it, and so does
// the incident's, in which it sees nothing since its prompts are short.
func TestPublishedScript(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatalf("%v: the published script needs it (apt-get install python3)", err)
	}
	for _, faults := range [][]string{nil, {"stale_reserve"}} {
		cfg := lab.Small()
		cfg.Faults = faults
		cmd := exec.CommandContext(t.Context(), "python3", "testdata/canary.py")
		cmd.Env = append(os.Environ(), "BASE="+serve(t, cfg, nil)+"/v1", "KEY=any", "MODEL="+lab.ModelName, "PYTHONIOENCODING=utf-8")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("python3 must be there and run the script: %v\n%s", err, out)
		}
		s := string(out)
		if !strings.Contains(s, "[A] canary planted: CANARY-") || strings.Count(s, "] clean — ") != 5 ||
			!strings.HasSuffix(s, "RESULT: no leak in this sample (not a proof)\n") {
			t.Errorf("faults %v:\n%s", faults, s)
		}
		if strings.Contains(s, "clean — ''") {
			t.Errorf("faults %v: a haiku is empty:\n%s", faults, s)
		}
	}
}
