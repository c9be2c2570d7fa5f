package synthetic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kvcanary/kvcanary/canary"
)

func planOf(words, perDay int) Plan {
	return Plan{Coder: canary.New(canary.Key{1}), Run: 7, Model: `m"x`, Words: words, Every: time.Minute, TokensPerDay: perDay}
}

// Every prompt names itself, and nothing of it but the canary is its text.
func TestPlantsAreCanaries(t *testing.T) {
	p := planOf(400, 1)
	seen := map[canary.ID]bool{}
	var sizes []int
	for n := range 8 {
		plant := p.Nth(n)
		var body struct {
			Model     string
			MaxTokens int `json:"max_tokens"`
			Messages  []struct{ Role, Content string }
		}
		if err := json.Unmarshal(plant.Body, &body); err != nil || body.Model != p.Model || body.MaxTokens != 1 || len(body.Messages) != 1 {
			t.Fatalf("%s: %v", plant.Body, err)
		}
		hits := p.Coder.Scan([]byte(body.Messages[0].Content))
		words := len(strings.Fields(body.Messages[0].Content))
		if len(hits) != 1 || hits[0].ID != plant.ID || hits[0].Words != words || hits[0].ID.Tenant() != Tenant || hits[0].ID.Run() != 7 {
			t.Errorf("%d: %+v of %d words", n, hits, words)
		}
		if seen[plant.ID] || plant.Tokens < 2*words {
			t.Errorf("%d: %s again, or %d tokens for %d words", n, plant.ID, plant.Tokens, words)
		}
		seen[plant.ID] = true
		sizes = append(sizes, words)
		if string(plant.Body) != string(p.Nth(n).Body) {
			t.Error("two plants of one number differ")
		}
	}
	if got := fmt.Sprint(sizes); got != "[400 100 200 300 400 100 200 300]" {
		t.Errorf("lengths %s", got)
	}
	if got := len(strings.Fields(string(planOf(1, 1).Nth(0).Body))); got < canary.MinWords {
		t.Errorf("%d words cannot be found again", got)
	}
	// When a run is used up the next one begins.
	if id := p.Nth(canary.MaxSeq + 1).ID; id.Run() != 8 || id.Seq() != 0 {
		t.Errorf("after the last of a run: %s", id)
	}
}

func TestPlantsKeepTheirRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Hour)
		defer stop()
		var at []time.Time
		random := 0.0
		planOf(100, 10_000_000).Keep(ctx, Edges{
			Send: func(_ context.Context, p Plant) (int, error) { at = append(at, time.Now()); return p.Tokens, nil },
			Now:  time.Now, Random: func() float64 { random += 0.37; return random - float64(int(random)) }, Log: slog.New(slog.DiscardHandler),
		})
		if len(at) < 570 || len(at) > 630 {
			t.Errorf("%d in ten hours, one a minute", len(at))
		}
		for i := range len(at) - 1 {
			if d := at[i+1].Sub(at[i]); d < 30*time.Second || d > 90*time.Second {
				t.Errorf("%s between two", d)
			}
		}
	})
}

func TestPlantsKeepTheirBudget(t *testing.T) {
	for name, cost := range map[string]int{"as expected": 0, "twice as dear": 700} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), 48*time.Hour)
			defer stop()
			var log strings.Builder
			spent := 0
			planOf(200, 24_000).Keep(ctx, Edges{
				Send: func(_ context.Context, p Plant) (int, error) {
					if cost == 0 {
						spent += p.Tokens
						return 0, nil
					}
					spent += cost
					return cost, nil
				},
				Now: time.Now, Random: func() float64 { return 0.5 }, Log: slog.New(slog.NewTextHandler(&log, nil)),
			})
			// An hour's worth to begin with, and at most one prompt of debt.
			if spent < 40_000 || spent > 48_000+1000+700 {
				t.Errorf("%s: %d tokens in two days of 24,000", name, spent)
			}
			if !strings.Contains(log.String(), "waits for its budget") {
				t.Errorf("%s: the log does not say so", name)
			}
		})
	}
}

// An engine in trouble is left alone more and more, and no prompt is sent twice.
func TestPlantsGiveAnEngineTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Hour)
		defer stop()
		var log strings.Builder
		var at []time.Time
		seen := map[canary.ID]bool{}
		planOf(100, 10_000_000).Keep(ctx, Edges{
			Send: func(_ context.Context, p Plant) (int, error) {
				if seen[p.ID] {
					t.Errorf("%s again", p.ID)
				}
				seen[p.ID] = true
				if at = append(at, time.Now()); len(at) < 9 {
					return 0, errors.New("HTTP 503")
				}
				return 9, nil
			},
			Now: time.Now, Random: func() float64 { return 0.5 }, Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		var gaps []int
		for i := range 10 {
			gaps = append(gaps, int(at[i+1].Sub(at[i]).Minutes()))
		}
		if got := fmt.Sprint(gaps); got != "[2 4 8 16 32 64 64 64 1 1]" {
			t.Errorf("minutes between them: %s", got)
		}
		if strings.Count(log.String(), "could not plant") != 1 {
			t.Errorf("log:\n%s", &log)
		}
	})
}
