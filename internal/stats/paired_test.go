package stats

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whatever the times are like, as long as both of a pair are alike: heavy
// tails, two kinds of answers, a clock that drifts, a target that gets slower
// by the minute, times in whole milliseconds.
var nulls = map[string]func(r *rand.Rand) func(i int) float64{
	"normal": func(r *rand.Rand) func(int) float64 { return func(int) float64 { return r.NormFloat64() } },
	"cauchy": func(r *rand.Rand) func(int) float64 {
		return func(int) float64 { return math.Tan(math.Pi * (r.Float64() - 0.5)) }
	},
	"two kinds": func(r *rand.Rand) func(int) float64 {
		return func(int) float64 { return r.ExpFloat64() + 5*float64(r.IntN(2)) }
	},
	"drift": func(r *rand.Rand) func(int) float64 {
		return func(i int) float64 { return float64(i)/10 + r.ExpFloat64() }
	},
	"jumps": func(r *rand.Rand) func(int) float64 {
		level := 0.0
		return func(i int) float64 {
			if i%17 == 0 {
				level = 3 * math.Tan(math.Pi*(r.Float64()-0.5))
			}
			return level + r.NormFloat64()
		}
	},
	"whole milliseconds": func(r *rand.Rand) func(int) float64 {
		return func(int) float64 { return math.Round(20 + 3*r.NormFloat64()) }
	},
}

// The chance that the p-value is ever below alpha, looked at after every pair,
// is at most alpha.
func TestPairedKeepsItsErrorRate(t *testing.T) {
	const runs, pairs = 2000, 60
	for name, null := range nulls {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(7, 11))
			var below [2]int
			for range runs {
				var test Paired
				next := null(r)
				for i := range pairs {
					test.Add(next(i), next(i))
				}
				for i, alpha := range []float64{0.05, 0.01} {
					if test.P() <= alpha {
						below[i]++
					}
				}
			}
			if below[0] > runs*5/100 || below[1] > runs/100 {
				t.Errorf("of %d null runs %d come below 0.05 and %d below 0.01", runs, below[0], below[1])
			}
			t.Logf("%.4f below 0.05, %.4f below 0.01", float64(below[0])/runs, float64(below[1])/runs)
		})
	}
}

// released are the arms of the published audit.
type released struct {
	name      string
	fixed     float64 // power of the fixed 250 + 250 samples at 1e-8
	hit, miss []float64
}

func audit(t *testing.T) []released {
	b, err := os.ReadFile("testdata/audit.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []released
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if strings.HasPrefix(line, "#") || len(f) != 4 {
			continue
		}
		numbers := func(s string) (out []float64) {
			for _, x := range strings.Fields(s) {
				v, err := strconv.ParseFloat(x, 64)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, v)
			}
			return out
		}
		power := numbers(f[1])
		all = append(all, released{f[0], power[0], numbers(f[2]), numbers(f[3])})
	}
	return all
}

// draw is one of the times that have these quantiles.
func draw(r *rand.Rand, quantiles []float64) float64 {
	x := r.Float64() * float64(len(quantiles)-1)
	i := int(x)
	return quantiles[i] + (x-float64(i))*(quantiles[i+1]-quantiles[i])
}

// At the power that the published audit has with 250 + 250 samples, half of
// them are enough, on average over its arms; docs/performance.md has the table.
func TestPairedNeedsHalfOfTheFixedSamples(t *testing.T) {
	const runs, most, alpha = 60, 250, 1e-8
	arms := audit(t)
	total := 0.0
	for _, arm := range arms {
		r := rand.New(rand.NewPCG(1, 2))
		found, pairs := 0, 0
		for range runs {
			var test Paired
			n := 0
			for ; n < most && test.P() > alpha; n++ {
				test.Add(draw(r, arm.hit), draw(r, arm.miss))
			}
			pairs += n
			if test.P() <= alpha {
				found++
			}
		}
		power, mean := float64(found)/runs, float64(pairs)/runs
		t.Logf("%-28s power %.3f (fixed %.2f), pairs %.1f of %d", arm.name, power, arm.fixed, mean, most)
		if power < arm.fixed-0.05 {
			t.Errorf("%s: power %.3f, fixed %.2f", arm.name, power, arm.fixed)
		}
		total += mean
	}
	if len(arms) < 9 || total/float64(len(arms)) > most/2 {
		t.Errorf("%d arms take %.1f pairs each", len(arms), total/float64(len(arms)))
	}
}

// What the capital is does not depend on the unit of time or on what the
// values are otherwise, only on their order.
func TestPairedUsesOnlyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pairs := rapid.SliceOfN(rapid.SliceOfN(rapid.Float64Range(-50, 50), 2, 2), 0, 60).Draw(t, "pairs")
		var plain, bent Paired
		for _, p := range pairs {
			plain.Add(p[0], p[1])
			bent.Add(math.Atan(p[0]/100), math.Atan(p[1]/100))
			if p := plain.P(); !(p > 0 && p <= 1) {
				t.Fatalf("p = %v", p)
			}
		}
		if math.Abs(math.Log(plain.P())-math.Log(bent.P())) > 1e-9 || plain.N() != bent.N() || plain.Wins() > plain.N() {
			t.Fatalf("p = %v and %v", plain.P(), bent.P())
		}
	})
	var never Paired
	if never.Add(math.NaN(), 1); never.P() != 1 || never.N() != 0 {
		t.Errorf("p = %v of nothing", never.P())
	}
}

// The best that can be done is to double the capital with every pair.
func TestPairedFloor(t *testing.T) {
	var sure Paired
	for i := range 14 {
		sure.Add(float64(i), 100+float64(i))
	}
	if p := sure.P(); p > 1e-3 || p < math.Exp2(-14) {
		t.Errorf("14 pairs without fail give %v", p)
	}
}
