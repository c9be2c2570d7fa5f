package stats

import (
	"math"
	"math/rand/v2"
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

// arms of the published audit of prompt caching (Gu et al., ICML 2025): the
// Kolmogorov-Smirnov distance of their times with 250 samples each of hits and
// misses, and the power of the fixed one-sided test on all of them at 1e-8.
var arms = []struct {
	name     string
	distance float64
	fixed    float64
}{
	{"replicate", 0.999, 1}, {"perplexity", 0.77, 1}, {"deepinfra, 5 victims", 0.57, 1}, {"anthropic, per organisation", 0.52, 1},
	{"gpt-4o-mini, per organisation", 0.41, 1}, {"fireworks, global", 0.38, 0.99}, {"lepton, 5 victims", 0.30, 0.89},
}

// shapes draw a hit and a miss whose distributions are that far apart: times
// that are all shorter, and times of which a part is much shorter.
var shapes = map[string]func(r *rand.Rand, distance float64) (hit, miss float64){
	"shift": func(r *rand.Rand, distance float64) (hit, miss float64) {
		// Two normal distributions d apart have distance 2 F(d/2) - 1.
		d := 2 * math.Sqrt2 * math.Erfinv(distance)
		return math.Exp(r.NormFloat64() - d), math.Exp(r.NormFloat64())
	},
	"mixture": func(r *rand.Rand, distance float64) (hit, miss float64) {
		if r.Float64() < distance {
			return r.Float64(), 2 + r.ExpFloat64()
		}
		return 2 + r.ExpFloat64(), 2 + r.ExpFloat64()
	},
}

// At the power that the published audit has with 250 + 250 samples, half of
// them are enough, on average over its arms; docs/performance.md has the table.
func TestPairedNeedsHalfOfTheFixedSamples(t *testing.T) {
	const runs, most, alpha = 100, 250, 1e-8
	for shape, draw := range shapes {
		total := 0.0
		for _, arm := range arms {
			r := rand.New(rand.NewPCG(1, 2))
			found, pairs := 0, 0
			for range runs {
				var test Paired
				n := 0
				for ; n < most && test.P() > alpha; n++ {
					test.Add(draw(r, arm.distance))
				}
				pairs += n
				if test.P() <= alpha {
					found++
				}
			}
			power, mean := float64(found)/runs, float64(pairs)/runs
			t.Logf("%-8s %-30s D %.2f power %.2f (fixed %.2f), pairs %.0f of %d", shape, arm.name, arm.distance, power, arm.fixed, mean, most)
			if power < arm.fixed-0.06 {
				t.Errorf("%s, %s: power %.3f, fixed %.2f", shape, arm.name, power, arm.fixed)
			}
			total += mean
		}
		if mean := total / float64(len(arms)); mean > most/2 {
			t.Errorf("%s: %.1f pairs on average", shape, mean)
		}
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
