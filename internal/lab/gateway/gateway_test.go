package gateway

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// Through a gateway answers are what they are without one, however many there
// are at once.
func TestAnswersAreTheEngines(t *testing.T) {
	g := start(t, nil)
	rng := rand.New(rand.NewPCG(1, 1))
	var wg sync.WaitGroup
	for i := range 40 {
		r, p := chant(rng, 1+rng.IntN(120))
		switch i % 4 {
		case 1:
			r.Temperature, r.Seed = 1, uint64(i)
		case 2:
			r.Tokens = chat("\n" + p + "\n\nfirst line\nReply with 'noted' only.")
		case 3:
			r.Tokens = chat(strings.Repeat("too long ", 500))
		}
		wg.Go(func() {
			want, got := collect(t, g.engine.Submit(t.Context(), r)), collect(t, g.Submit(t.Context(), r))
			if got.text != want.text {
				t.Errorf("got %q, want %q", got.text, want.text)
			}
			if want.err != nil {
				if *got.err != *want.err {
					t.Errorf("got %+v, want %+v", got.err, want.err)
				}
			} else if got.done == nil || *got.done != *want.done {
				t.Errorf("got %+v, want %+v", got.done, want.done)
			}
		})
	}
	wg.Wait()
	idle(t, g)
}

// A client that hangs up, at any moment, leaves nothing behind, and nobody
// finds what was meant for it.
func TestCancellingFreesEverything(t *testing.T) {
	g := start(t, nil)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		ctx, cancel := context.WithCancel(t.Context())
		r, _ := chant(rng, 300)
		events := g.Submit(ctx, r)
		for range rng.IntN(40) {
			<-events
		}
		cancel()
		if got := collect(t, events); got.err == nil || got.err.Status != 499 {
			t.Errorf("got %+v, %+v", got.done, got.err)
		}
		next, p := chant(rng, 20)
		if got := collect(t, g.Submit(t.Context(), next)); got.err != nil || !strings.Contains(strings.Repeat(p, 4), strings.TrimSpace(got.text)) {
			t.Errorf("after it: %q, %+v", got.text, got.err)
		}
	}
	idle(t, g)
}

func TestClosingEndsWhatIsUnderWay(t *testing.T) {
	g := start(t, nil)
	r, _ := chant(rand.New(rand.NewPCG(1, 3)), 3000)
	unread, read := g.Submit(t.Context(), r), g.Submit(t.Context(), r)
	<-unread
	<-read
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	for _, events := range []<-chan lab.Event{unread, read, g.Submit(t.Context(), r)} {
		if got := collect(t, events); got.err == nil || got.err.Status != 503 {
			t.Errorf("got %+v, %+v", got.done, got.err)
		}
	}
}

// hangUp cancels a request in the middle of its answer, and asks the next.
func hangUp(t *testing.T, g *Gateway, rng *rand.Rand) (got result, own, gone string) {
	t.Helper()
	r, gone := chant(rng, 400)
	ctx, cancel := context.WithCancel(t.Context())
	events := g.Submit(ctx, r)
	<-events
	cancel()
	collect(t, events)
	next, own := chant(rng, 80)
	return collect(t, g.Submit(t.Context(), next)), own, gone
}

func TestConnectionsOffByOne(t *testing.T) {
	for _, c := range []struct {
		defences string
		leaks    bool
		status   int
	}{
		{"", true, 0}, {"own_parsers tenant_key generations", true, 0}, {"poison_conns", false, 0}, {"echo_ids", false, 502},
	} {
		g := start(t, with("stream_desync:off_by_one", c.defences))
		got, own, gone := hangUp(t, g, rand.New(rand.NewPCG(1, 4)))
		piece := foreign(got.text, own, []string{gone})
		if leaked := len(piece) >= 12; leaked != c.leaks {
			t.Errorf("%q: %q of %q is from %q", c.defences, piece, got.text, gone)
		}
		if (got.err != nil) != (c.status != 0) || got.err != nil && got.err.Status != c.status {
			t.Errorf("%q: %+v", c.defences, got.err)
		}
		if c.leaks { // and so it goes on
			next, p := chant(rand.New(rand.NewPCG(1, 5)), 40)
			if got := collect(t, g.Submit(t.Context(), next)); foreign(got.text, p, []string{own}) == "" {
				t.Errorf("the next one gets %q, which is its own", got.text)
			}
		}
	}
}

func TestSharedBuffersAndParsers(t *testing.T) {
	for mode, defences := range map[string][]string{
		"buffer": {"own_parsers", "generations"}, "parser": {"own_parsers"},
	} {
		g := start(t, with("stream_desync:"+mode, ""))
		rng := rand.New(rand.NewPCG(1, 6))
		worst := ""
		for round := 0; round < 40 && len(worst) < 3; round++ {
			hangUp(t, g, rng)
			worst, _ = choir(t, g, rng, 5)
		}
		t.Logf("%s: %q", mode, worst)
		if len(worst) < 3 {
			t.Errorf("%s: nothing of one stream got into another but %q", mode, worst)
		}
		for _, defence := range defences {
			g := start(t, with("stream_desync:"+mode, defence))
			hangUp(t, g, rng)
			w, errs := choir(t, g, rng, 5)
			if len(w) > 2 {
				t.Errorf("%s with %s: %q got into another stream", mode, defence, w)
			}
			if defence == "own_parsers" && len(errs) > 0 {
				t.Errorf("%s with %s: %q", mode, defence, errs)
			}
		}
	}
}
