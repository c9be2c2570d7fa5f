package oracle_test

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// ask adds a prompt of that length that asks for a place, counted in full.
func (w *world) ask(tokens, place int, echo bool) {
	asking(w.sized("size", 0, tokens, tokens, "noted"), place, echo)
}

// A target that keeps only some of long prompts and counts all of them.
func TestLostPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		keeps func(place, tokens int) bool
		rate  float64 // how often the model does as it is told
		says  string  // what the test says is lost, empty for no test
		sure  bool
	}{
		"reads all":             {func(int, int) bool { return true }, 1, "", false},
		"keeps the end":         {func(p, n int) bool { return p == 2 || n <= 6000 }, 1, "6001 tokens and more, the values at their start and middle", true},
		"drops the start":       {func(p, n int) bool { return p != 0 || n <= 6000 }, 1, "and more, the values at their start never", true},
		"drops the middle":      {func(p, n int) bool { return p != 1 || n <= 6000 }, 1, "the values at their middle", true},
		"drops the question":    {func(_, n int) bool { return n <= 6000 }, 1, "the values at any place", true},
		"drops rarely used":     {func(p, n int) bool { return p != 0 || n <= 8000 }, 1, "the values at their start", false},
		"a model that ignores":  {func(int, int) bool { return true }, 0, "", false},
		"a model that wavers":   {func(int, int) bool { return true }, 0.6, "", false},
		"wavers and drops half": {func(p, n int) bool { return p == 2 || n <= 6000 }, 0.6, "", false},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			chance := rand.New(rand.NewPCG(1, 1))
			w := newWorld(t)
			for i := range 9 {
				w.ask(192+100*i, i%3, chance.Float64() < c.rate)
			}
			for i, n := range []int{5000, 6001, 6001, 7000, 7000, 7500, 7500, 8001, 8001} {
				w.ask(n, (i+1)/2%2, c.keeps((i+1)/2%2, n) && chance.Float64() < c.rate)
			}
			for i := range 6 {
				w.ask(7800, i%3, c.keeps(i%3, 7800) && chance.Float64() < c.rate)
				w.ask(480, i%3, chance.Float64() < c.rate)
			}
			j := w.judge("truncation")
			w.expect(j)
			switch {
			case c.says == "" && len(j.Tests)+len(j.Unsure) > 0:
				t.Errorf("finds %+v, unsure %q", j.Tests, j.Unsure)
			case c.says == "":
			case len(j.Tests) != 1 || !strings.Contains(j.Tests[0].Finding.Explain, c.says) || !strings.Contains(j.Unsure, "too few"):
				t.Errorf("finds %+v, unsure %q", j.Tests, j.Unsure)
			case j.Tests[0].P < 1e-3 != c.sure:
				t.Errorf("p = %v", j.Tests[0].P)
			}
		})
	}
}

// A target that answers from the last turn alone loses all other values, but
// not because prompts are long.
func TestLastTurnOnlyIsNoTruncation(t *testing.T) {
	w := newWorld(t)
	for i := range 12 {
		w.ask(200, i%3, true)
		w.all[len(w.all)-1].Messages = 1
	}
	for i := range 30 {
		turns := 2 + i // the middle stands in the last of two
		w.ask(192*turns+10, i%3, i%3 == 2 || i%3 == 1 && turns == 2)
		w.all[len(w.all)-1].Messages = 2*turns - 1
	}
	for range 4 {
		w.ask(400, 1, true)
		w.all[len(w.all)-1].Messages = 3
	}
	if j := w.judge("truncation"); len(j.Findings)+len(j.Tests) > 0 || !strings.Contains(j.Unsure, "start and middle") {
		t.Errorf("%+v", j)
	}
}

// A model that does as it is told by chance only is not accused more often than
// the p-value says, whatever length and place stand out.
func TestLostPlacesKeepTheirErrorRate(t *testing.T) {
	chance := rand.New(rand.NewPCG(3, 5))
	small := 0
	const runs = 3000
	for range runs {
		w := newWorld(t)
		for i := range 24 {
			w.ask([]int{200, 640, 2048, 8192, 16000}[i%5], i%3, chance.Float64() < 0.93)
		}
		for _, x := range w.judge("truncation").Tests {
			if x.P <= 0.05 {
				small++
			}
		}
	}
	if small > runs/20 {
		t.Errorf("%d of %d runs have p <= 0.05", small, runs)
	}
}
