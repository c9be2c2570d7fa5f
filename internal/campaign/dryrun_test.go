package campaign

import (
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

func TestDryRunSendsNothing(t *testing.T) {
	f := &fakeTarget{counts: true}
	s := &script{batches: [][]probe.Send{sends(2, 500), {fillerSend(3000)}}}
	s.batches[0][0].Asked = 2
	cfg := config(f, s.protocol("smoke"))
	cfg.Facts.Context = 2000
	cfg.OutDir = t.TempDir() + "/never"
	cfg.Progress = func(Progress) { t.Error("progress of a dry run") }
	got, err := DryRun(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if f.calls+f.asked != 0 {
		t.Fatalf("the target was called %d times", f.calls+f.asked)
	}
	if len(got.Sends) != 3 || got.PromptTokens != got.Sends[0].Tokens+got.Sends[1].Tokens+got.Sends[2].Tokens || got.CompletionTokens != 32 || got.Stopped != "" {
		t.Errorf("forecast %+v", got)
	}
	for i, want := range []int{500, 500, 3000} {
		if p := got.Sends[i]; p.Tokens > want || p.Tokens < want-10 || p.Tenant != "a" || p.Purpose != wire.Plant || p.Protocol != "smoke" {
			t.Errorf("send %d: %+v", i, p)
		}
	}
	// Protocols are driven by answers of a sound target.
	first, last := s.seen[0][0], s.seen[1][0]
	if !first.Answer.Served() || !first.Echoes(2) || first.Answer.Usage.Prompt != first.SentTokens {
		t.Errorf("simulated answer %+v", first.Answer)
	}
	if r := last.Answer.Refusal; !r.TooLong() || r.Limit != 2000 {
		t.Errorf("simulated refusal %+v", r)
	}
}

func TestDryRunNamesTheBudgetThatEndsIt(t *testing.T) {
	cfg := config(&fakeTarget{}, (&script{batches: [][]probe.Send{sends(4, 500)}}).protocol("smoke"))
	cfg.Budget.Tokens = 1200
	got, err := DryRun(cfg)
	if err != nil || len(got.Sends) != 2 || !strings.Contains(got.Stopped, "token budget of 1200") {
		t.Errorf("forecast %+v, %v", got, err)
	}
}
