package gateway

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvcanary/kvcanary/internal/lab"
	"github.com/kvcanary/kvcanary/internal/lab/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start starts a small engine with a gateway in front; they are ended with the test.
func start(t testing.TB, change func(*lab.Config)) *Gateway {
	t.Helper()
	cfg := lab.Config{Context: 4096, PrefillPool: 4096, DecodePool: 8192, PageSize: 16, Workers: 1}
	if change != nil {
		change(&cfg)
	}
	e, err := lab.StartPipe(cfg)
	if err != nil {
		t.Fatal(err)
	}
	g := Over(e)
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return g
}

func with(faults, defences string) func(*lab.Config) {
	return func(c *lab.Config) { c.Faults, c.Defences = strings.Fields(faults), strings.Fields(defences) }
}

type result struct {
	text string
	done *lab.Done
	err  *lab.Error
}

func collect(t testing.TB, events <-chan lab.Event) (r result) {
	t.Helper()
	var text []byte
	for e := range events {
		if r.done != nil || r.err != nil {
			t.Error("an event after the last one")
		}
		if e.Done == nil && e.Error == nil {
			text = append(text, e.Token)
		}
		r.done, r.err = e.Done, e.Error
	}
	if (r.done == nil) == (r.err == nil) {
		t.Errorf("want one of Done and Error, got %v and %v", r.done, r.err)
	}
	r.text = string(text)
	return r
}

func chat(text string) []byte {
	return model.Template(nil, []model.Message{{Role: model.RoleUser, Text: text}})
}

// phrase is a few words of capital letters that nobody else uses.
func phrase(rng *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('A' + rng.IntN(26))
	}
	return string(b)
}

// chant is a request whose answer goes on with a phrase of its own.
func chant(rng *rand.Rand, tokens int) (lab.Request, string) {
	p := phrase(rng, 19) + " "
	return lab.Request{ID: p, Tokens: chat(strings.Repeat(p, 8+rng.IntN(8))), MaxTokens: tokens}, p
}

// foreign is the longest piece of a text that does not come from going on with
// a phrase and does come from one of others.
func foreign(text, own string, others []string) string {
	best := ""
	home := strings.Repeat(own, 3)
	for from := range text {
		for to := from + len(best) + 1; to <= min(len(text), from+len(own)); to++ {
			piece := text[from:to]
			if strings.Contains(home, piece) {
				continue
			}
			for _, o := range others {
				if strings.Contains(strings.Repeat(o, 3), piece) {
					best = piece
				}
			}
		}
	}
	return best
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

func idle(t testing.TB, g *Gateway) {
	t.Helper()
	eventually(t, "all pages free", func() bool {
		s := g.State()
		return s.PrefillUsed+s.DecodeUsed+s.Running+s.Waiting == 0
	})
}

// choir serves several chants at once, read at different speeds, and returns
// the longest piece of one that came out in another, with the errors.
func choir(t testing.TB, g *Gateway, rng *rand.Rand, voices int) (worst string, errs []string) {
	t.Helper()
	var requests []lab.Request
	var phrases []string
	for range voices {
		r, p := chant(rng, 60+rng.IntN(60))
		requests, phrases = append(requests, r), append(phrases, p)
	}
	results := make([]chan result, voices)
	for i, r := range requests {
		results[i] = make(chan result, 1)
		events := g.Submit(t.Context(), r)
		go func() {
			slow := make(chan lab.Event)
			go func() {
				defer close(slow)
				for e := range events {
					if i%2 == 1 {
						time.Sleep(200 * time.Microsecond)
					}
					slow <- e
				}
			}()
			results[i] <- collect(t, slow)
		}()
	}
	for i := range results {
		got := <-results[i]
		if got.err != nil {
			errs = append(errs, fmt.Sprint(*got.err))
		}
		others := append(append([]string{}, phrases[:i]...), phrases[i+1:]...)
		if f := foreign(got.text, phrases[i], others); len(f) > len(worst) {
			worst = f
		}
	}
	return worst, errs
}
