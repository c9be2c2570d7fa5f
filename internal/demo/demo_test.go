package demo

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/prose"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// The whole demo is played by a script of cmd/kvcanary; here are its parts.

func TestScriptTellsTheIncident(t *testing.T) {
	for _, full := range []bool{false, true} {
		scenes := script(Scale(full))
		var names []string
		for _, s := range scenes {
			names = append(names, s.name)
			if err := s.lab.Validate(); err != nil {
				t.Errorf("%s: %v", s.name, err)
			}
			if !reflect.DeepEqual(s.lab.Faults, []string{"stale_reserve"}) {
				t.Errorf("%s is played without the fault: %v", s.name, s.lab.Faults)
			}
		}
		if want := []string{"classic_smoke", "straddle", "fixed", "roomy"}; !reflect.DeepEqual(names, want) {
			t.Errorf("acts %v, want %v", names, want)
		}
		if s := scenes[3]; s.lab.PrefillPool < s.lab.Context {
			t.Errorf("the roomy pool of %d is below the context of %d", s.lab.PrefillPool, s.lab.Context)
		}
		if scenes[0].lab.Defences != nil || scenes[1].lab.Defences != nil || len(scenes[2].lab.Defences) != 1 {
			t.Error("only the third act has a defence")
		}
	}
}

func TestActIsHeldAgainstTheStory(t *testing.T) {
	if (Act{Verdict: campaign.Clean, Expected: campaign.Leak}).AsTold() || !(Act{Verdict: campaign.Leak, Expected: campaign.Leak}).AsTold() {
		t.Error("an act is as told when its verdict is the expected one, and only then")
	}
	r := &Result{Scale: "small", Acts: []Act{{Name: "straddle", Verdict: campaign.Clean, Expected: campaign.Leak, Told: []string{"told"}}}}
	if p := r.Page("kvcanary demo", "v"); p.AsTold || p.Map != nil || len(p.Acts) != 1 || p.Acts[0].Expected != "leak" || p.Pool != 10640 {
		t.Errorf("%+v", p)
	}
}

func TestLabThatDoesNotStart(t *testing.T) {
	dir := t.TempDir()
	if _, err := startLab(context.Background(), filepath.Join(dir, "missing"), Scale(false), dir, "trace"); err == nil || !strings.Contains(err.Error(), "start the lab") {
		t.Errorf("no program: %v", err)
	}
	mute := filepath.Join(dir, "mute")
	if err := os.WriteFile(mute, []byte("#!/bin/sh\necho 'out of luck' >&2\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := startLab(context.Background(), mute, Scale(false), dir, "trace"); err == nil || !strings.Contains(err.Error(), "out of luck") {
		t.Errorf("a program that says why: %v", err)
	}
}

func TestHolding(t *testing.T) {
	tokens := []byte("0123456789abcdef0123456789abcdef")
	for text, want := range map[string]map[int]bool{
		"89a":  {2: true, 6: true},
		"3456": {0: true, 1: true, 4: true, 5: true}, // over the edge of a page
		"0123": {0: true, 4: true},
		"zz":   {},
		"":     {},
	} {
		if got := holding(tokens, []byte(text), 4); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: pages %v, want %v", text, got, want)
		}
	}
}

func TestWhatIsTold(t *testing.T) {
	for n, want := range map[int]string{1: "1 word", 2: "2 words", 1_048_576: "1,048,576 words"} {
		if got := prose.Plural(n, "word"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := cut("a b c d", 3); got != "a b c ..." {
		t.Errorf("cut: %q", got)
	}
	if got := cut("a b", 3); got != "a b" {
		t.Errorf("nothing to cut: %q", got)
	}
	r := &campaign.Result{Findings: []oracle.Finding{
		{Kind: oracle.FailOpen, Exchange: 7}, {Kind: oracle.Leak, Exchange: 7}, {Kind: oracle.Leak, Exchange: 7, Evidence: oracle.Evidence{Words: 9}},
		{Kind: oracle.Leak, Exchange: 8, Evidence: oracle.Evidence{Words: 30}},
	}}
	if f := longestLeak(r, 7); f == nil || f.Evidence.Words != 9 {
		t.Errorf("longest leak of exchange 7: %+v", f)
	}
	if f := longestLeak(r, 6); f != nil {
		t.Errorf("exchange 6 has no leak, got %+v", f)
	}
}

func TestStoriesThatDidNotHappenAreNotTold(t *testing.T) {
	refused := seen{Exchange: wire.Exchange{Purpose: wire.Over, Answer: &wire.Answer{Status: 400, Refusal: &wire.Refusal{Status: 400, Message: "too long"}}}}
	served := seen{Exchange: wire.Exchange{Purpose: wire.Over, Answer: &wire.Answer{Status: 200}}}
	r := &campaign.Result{Protocols: []campaign.ProtocolResult{{}}}
	for _, c := range []struct {
		name string
		tell func(*stage, *campaign.Result) []string
		seen seen
		want string
	}{
		{"straddle", tellStraddle, refused, "was not answered"},
		{"fixed", tellFixed, served, "was not refused"},
		{"roomy", tellRoomy, refused, "was not served"},
	} {
		st := &stage{scene: scene{lab: Scale(false)}, seen: []seen{c.seen}}
		if got := strings.Join(c.tell(st, r), " "); !strings.Contains(got, c.want) {
			t.Errorf("%s tells %q", c.name, got)
		}
	}
}
