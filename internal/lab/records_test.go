package lab

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// hasty sends a request that is given up while its transfer ends, and right
// behind it one whose answer is known.
func hasty(t *testing.T, e *Engine, rng *rand.Rand) (got result, value string) {
	ctx, cancel := context.WithCancel(t.Context())
	first := e.Submit(ctx, Request{Tokens: babble(rng), MaxTokens: 40})
	eventually(t, "pages for the first, or its end", func() bool { return e.State().DecodeUsed > 0 || len(first) > 0 })
	time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond) // where it is by then, is different each time
	cancel()
	prompt, value := recall(rng, 200)
	got = collect(e.Submit(t.Context(), Request{Tokens: prompt, MaxTokens: 24}))
	collect(first)
	return got, value
}

// What ends the transfer of a request that has gone ends that of the next one
// in its slot, which answers from pages that are not written yet; no pages are
// lost over it.
func TestReusedMetadataSlot(t *testing.T) {
	for _, c := range []struct {
		defences string
		wrong    bool
	}{
		{"", true}, {"zero_on_alloc:all", true}, {"unique_ids row_ids slot_reset", true}, {"slot_tags", false},
	} {
		cfg := tiny()
		cfg.Faults, cfg.Defences, cfg.Lag = []string{"id_reuse:metadata_slot"}, strings.Fields(c.defences), 100*time.Millisecond
		e := startPipe(t, cfg)
		rng := rand.New(rand.NewPCG(1, 61))
		wrong := func() bool {
			got, value := hasty(t, e, rng)
			return got.err != nil || strings.TrimSpace(got.text) != value
		}
		if c.wrong {
			within(t, 2*time.Minute, "with "+c.defences+": an answer that is not the prompt's", wrong)
		}
		for range 30 {
			if !c.wrong && wrong() {
				t.Errorf("with %q: an answer that is not the prompt's", c.defences)
			}
		}
		idle(t, e)
	}
}

// Generations and coverage notice a record that is of another reservation or of
// fewer tokens; the request ends with an error or waits for its own record.
func TestReusedMetadataSlotIsNoticed(t *testing.T) {
	cfg := tiny()
	cfg.Faults, cfg.Defences, cfg.Lag = []string{"id_reuse:metadata_slot"}, []string{"generations"}, 100*time.Millisecond
	e := startPipe(t, cfg)
	rng := rand.New(rand.NewPCG(1, 62))
	for range 30 {
		if got, value := hasty(t, e, rng); got.err == nil && strings.TrimSpace(got.text) != value {
			t.Errorf("got %q, want %q or an error", got.text, value)
		}
	}
	idle(t, e)
}
