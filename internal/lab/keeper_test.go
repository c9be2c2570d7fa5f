package lab

import (
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/node"
)

// replaced waits until a node is another process than before and the engine serves.
func replaced(t *testing.T, e *Engine, role string, before int, rng *rand.Rand) {
	t.Helper()
	eventually(t, role+" is replaced", func() bool { return e.Pids()[role] != before && e.State().Broken == "" })
	prompt, value := recall(rng, 900)
	if got := serve(t, e, Request{Tokens: prompt, MaxTokens: 24}); strings.TrimSpace(got.text) != value {
		t.Errorf("after %s: got %+v, want %q", role, got, value)
	}
}

// A node that dies ends the requests under way, and those that come while it is
// not there, with its name; the next is served as if nothing had been.
func TestDeadNodesAreReplaced(t *testing.T) {
	cfg := tiny()
	cfg.Restart = true
	for _, cfg.OneSided = range []bool{false, true} {
		e := startProcesses(t, cfg)
		rng := rand.New(rand.NewPCG(1, 51))
		for _, role := range []string{"prefill", "decode", "decode", "prefill"} {
			events := e.Submit(t.Context(), Request{Tokens: babble(rng), MaxTokens: 2000})
			<-events
			before := e.Pids()[role]
			if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if got := collect(events); got.err == nil || got.err.Status != 500 || got.err.Message != role+" node is gone" {
				t.Errorf("%s: got %+v, %+v", role, got.done, got.err)
			}
			replaced(t, e, role, before, rng)
		}
		idle(t, e)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		gone(t, e.Pids())
	}
}

// Nodes that have lost each other, and both live, are a reason to replace
// prefill: nobody knows what it still writes.
func TestPartedNodesMeetAgain(t *testing.T) {
	cfg := tiny()
	cfg.Restart = true
	e := startProcesses(t, cfg)
	eventually(t, "both nodes know each other", func() bool { return e.keep.met() })
	before := e.Pids()
	e.hear(handoff.ToPrefill, node.Stats{})
	replaced(t, e, "prefill", before["prefill"], rand.New(rand.NewPCG(1, 52)))
	if e.Pids()["decode"] != before["decode"] {
		t.Error("decode is replaced too")
	}
}

// A node that cannot be started again ends the engine.
func TestNodeThatCannotBeReplaced(t *testing.T) {
	cfg := tiny()
	cfg.Restart = true
	told := make(chan string, 9) // prefill may go with decode, more than once
	cfg.Replaced = func(role string, why error) { told <- role + ": " + why.Error() }
	e := startProcesses(t, cfg)
	e.keep.spawn.args = []string{"lab-dead"}
	if err := syscall.Kill(e.Pids()["decode"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := e.Wait(); err == nil || !strings.Contains(err.Error(), "a node cannot be started again: ") || !strings.Contains(err.Error(), "out of memory") {
		t.Errorf("engine ends with %v", err)
	}
	if words := <-told; !strings.HasPrefix(words, "decode: process ") || !strings.HasSuffix(words, "signal: killed") {
		t.Errorf("of the node that was killed is said %q", words)
	}
}

// Closing does not wait for a repair that is under way.
func TestCloseWhileANodeIsReplaced(t *testing.T) {
	cfg := tiny()
	cfg.Restart = true
	e := startProcesses(t, cfg)
	e.keep.spawn.args = []string{"lab-mute"}
	if err := syscall.Kill(e.Pids()["prefill"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "prefill is missed", func() bool { return e.State().Broken != "" })
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
