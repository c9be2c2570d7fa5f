package campaign

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// thinker is a target whose model reasons for a while before it says anything.
type thinker struct {
	fakeTarget
	needs  int  // tokens of reasoning
	hidden bool // it is counted and not shown
	most   int  // longest answer that may be asked for; 0 for any
	wanted []int
}

func (f *thinker) Do(ctx context.Context, r wire.Request) *wire.Answer {
	a := f.fakeTarget.Do(ctx, r)
	f.mu.Lock()
	f.wanted = append(f.wanted, r.MaxTokens)
	f.mu.Unlock()
	if f.most > 0 && r.MaxTokens > f.most {
		return refused(wire.RefusedParameter, 400, "max_tokens is too large")
	}
	_, prompt := f.size(r.Messages)
	a.Pieces = []wire.Piece{{Channel: wire.Content, Text: prompt}}
	a.Usage.Completion, a.Usage.Reasoning = f.needs+3, f.needs
	if r.MaxTokens <= f.needs {
		a.Pieces, a.Finish = nil, "length"
		a.Usage.Completion, a.Usage.Reasoning = r.MaxTokens, r.MaxTokens
	}
	if !f.hidden {
		a.Pieces = append(a.Pieces, wire.Piece{Channel: wire.Reasoning, Text: "hm"})
	}
	return a
}

// asking are sends that want a nonce back in a short answer.
func asking(n, maxTokens int) []probe.Send {
	out := sends(n, 900)
	for i := range out {
		out[i].Asked, out[i].MaxTokens = 2, maxTokens
	}
	return out
}

// Answers grow until text appears: one exchange finds out how long they have to
// be, the others of its batch follow, and later ones ask for so much at once.
func TestAnswersGrowUntilTextAppears(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		f := &thinker{needs: 3000, hidden: hidden}
		s := &script{batches: [][]probe.Send{asking(3, 48), asking(2, 48)}}
		cfg := config(&f.fakeTarget, s.protocol("think"))
		cfg.Client, cfg.Concurrency = f, 1
		res := mustRun(t, cfg)
		if want := []int{48, 48, 48, 1024, 4096, 4096, 4096, 4096, 4096}; !slices.Equal(f.wanted, want) {
			t.Errorf("asked for answers of %v, want %v", f.wanted, want)
		}
		for _, batch := range s.seen {
			for _, e := range batch {
				if !e.Echoes(2) || e.MaxTokens != 4096 {
					t.Errorf("the plan was handed %+v", e)
				}
			}
		}
		if res.Verdict != Clean || res.Spent.Exchanges != 9 || res.Spent.Requests != 9 {
			t.Errorf("%s: %s, %+v", res.Verdict, res.Reason, res.Spent)
		}
	}
}

// What is too short stays on record: a leak may stand in its reasoning.
func TestShortAnswersAreLookedThrough(t *testing.T) {
	f := &thinker{needs: 100}
	s := &script{batches: [][]probe.Send{asking(1, 48)}}
	cfg := config(&f.fakeTarget, s.protocol("think"))
	cfg.Client = f
	var seen []wire.Exchange
	cfg.Observe = func(e wire.Exchange, _ []wire.Message) { seen = append(seen, e) }
	mustRun(t, cfg)
	if len(seen) != 2 || !seen[0].ReasonedAway() || *seen[1].Again != seen[0].Seq || seen[1].ID != seen[0].ID || seen[1].Nonces != seen[0].Nonces {
		t.Errorf("%+v", seen)
	}
	if seen[1].SentTokens != seen[0].Answer.Usage.Prompt || !strings.Contains(seen[1].Label, "longer") {
		t.Errorf("%+v", seen[1])
	}
}

// No end of reasoning, a target that makes no longer answers, and a budget that
// holds none: each stops the growth, not the run.
func TestGrowthIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		f      *thinker
		budget Budget
		want   []int
	}{
		"for ever":  {&thinker{needs: 1 << 30}, Budget{}, []int{48, 48, 1024, 4096, 16384, 48}},
		"refused":   {&thinker{needs: 3000, most: 2000}, Budget{}, []int{48, 48, 1024, 4096, 48}},
		"no tokens": {&thinker{needs: 3000}, Budget{Tokens: 5300}, []int{48, 48, 1024, 48}},
		"no calls":  {&thinker{needs: 3000}, Budget{Requests: 3}, []int{48, 48, 1024}},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.f
			s := &script{batches: [][]probe.Send{asking(2, 48), asking(1, 48)}}
			cfg := config(&f.fakeTarget, s.protocol("think"))
			cfg.Client, cfg.Concurrency, cfg.Budget = f, 1, c.budget
			f.counts = true
			mustRun(t, cfg)
			if !slices.Equal(f.wanted, c.want) {
				t.Errorf("asked for answers of %v, want %v", f.wanted, c.want)
			}
		})
	}
}

// Beside a limit, in a comparison and behind another's prefix nothing is put in
// the place of anything.
func TestWhatDoesNotGrow(t *testing.T) {
	limited, arm, left := asking(1, 48), asking(1, 48), asking(1, 48)
	limited[0].Limit, arm[0].Arm, left[0].Hangup = 900, wire.ArmFirst, wire.Hangup{Text: 1}
	f := &thinker{needs: 3000}
	s := &script{batches: [][]probe.Send{arm, left, asking(1, 48), limited}}
	cfg := config(&f.fakeTarget, s.protocol("think"))
	cfg.Client, cfg.Concurrency = f, 1
	mustRun(t, cfg)
	// The arm teaches what the next one asks for at once; a prompt beside a limit
	// asks as it was told to, and again only then.
	if want := []int{48, 48, 1024, 4096, 48, 4096}; !slices.Equal(f.wanted, want) {
		t.Errorf("asked for answers of %v, want %v", f.wanted, want)
	}
}

// Whatever a model needs, nothing is overspent, and the budget decides alone.
func TestGrowthKeepsTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &thinker{needs: rapid.IntRange(0, 20000).Draw(t, "needs")}
		f.counts = true
		b := Budget{Tokens: rapid.IntRange(1000, 100_000).Draw(t, "tokens"), Requests: rapid.IntRange(1, 12).Draw(t, "requests")}
		s := &script{batches: [][]probe.Send{asking(3, 48), asking(3, 192)}}
		cfg := config(&f.fakeTarget, s.protocol("think"))
		cfg.Client, cfg.Budget, cfg.Concurrency = f, b, rapid.IntRange(1, 4).Draw(t, "concurrency")
		res := mustRun(t, cfg)
		spent := res.Spent.PromptTokens + res.Spent.CompletionTokens
		if spent > b.Tokens || len(f.wanted) > b.Requests {
			t.Fatalf("%d of %d tokens, %d of %d requests", spent, b.Tokens, len(f.wanted), b.Requests)
		}
	})
}
