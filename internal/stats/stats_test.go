package stats

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// slowTail is P(X >= k) for X ~ Bin(n, p), summed term by term with 200-bit floats.
func slowTail(k, n int, p float64) float64 {
	bp := new(big.Float).SetPrec(200).SetFloat64(p)
	bq := new(big.Float).SetPrec(200).Sub(big.NewFloat(1).SetPrec(200), bp)
	sum := new(big.Float).SetPrec(200)
	for i := k; i <= n; i++ {
		term := new(big.Float).SetPrec(200).SetInt(new(big.Int).Binomial(int64(n), int64(i)))
		term.Mul(term, power(bp, i))
		term.Mul(term, power(bq, n-i))
		sum.Add(sum, term)
	}
	f, _ := sum.Float64()
	return f
}

func power(b *big.Float, e int) *big.Float {
	out := new(big.Float).SetPrec(200).SetInt64(1)
	base := new(big.Float).Copy(b)
	for ; e > 0; e >>= 1 {
		if e&1 == 1 {
			out.Mul(out, base)
		}
		base.Mul(base, base)
	}
	return out
}

// slowUpper finds the bound by bisection over the summed tail: the rate at
// which at most k events have the chance 1-confidence.
func slowUpper(k, n int, confidence float64) float64 {
	if k == n {
		return 1
	}
	lo, hi := 0.0, 1.0
	for range 60 {
		mid := (lo + hi) / 2
		if slowTail(k+1, n, mid) < confidence {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}

func near(a, b, tolerance float64) bool {
	return math.Abs(a-b) <= tolerance*math.Max(1e-12, math.Max(math.Abs(a), math.Abs(b)))
}

func TestKnownBounds(t *testing.T) {
	for _, c := range []struct {
		k, n       int
		confidence float64
		lower      float64
		upper      float64
	}{
		// The first rows are in any table of the Clopper-Pearson interval; the last
		// was found by bisection over the binomial sum in another language.
		{0, 10, 0.95, 0, 0.3084971},
		{1, 10, 0.95, 0.002528579, 0.4450161},
		{5, 10, 0.95, 0.1870860, 0.8129140},
		{10, 10, 0.95, 0.6915029, 1},
		{7, 20, 0.95, 0.1539092, 0.5921885},
		{50, 100, 0.99, 0.3688614, 0.6311386},
	} {
		lower, upper := Interval(c.k, c.n, c.confidence)
		if math.Abs(lower-c.lower) > 2e-7 || math.Abs(upper-c.upper) > 2e-7 {
			t.Errorf("Interval(%d, %d, %v) = %.7f, %.7f, want %.7f, %.7f", c.k, c.n, c.confidence, lower, upper, c.lower, c.upper)
		}
	}
}

func TestZeroEvents(t *testing.T) {
	for _, c := range []struct {
		n    int
		want float64
	}{{0, 1}, {1, 0.95}, {5, 0.4507197}, {59, 0.0495078}, {300, 0.0099360}, {1000000, 2.995728e-6}} {
		if got := UpperBound(0, c.n, 0.95); !near(got, c.want, 1e-5) {
			t.Errorf("UpperBound(0, %d) = %v, want %v", c.n, got, c.want)
		}
	}
}

func TestBoundsAgreeWithSlowTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		conf := rapid.SampledFrom([]float64{0.5, 0.9, 0.95, 0.99, 0.999}).Draw(t, "confidence")
		if got, want := UpperBound(k, n, conf), slowUpper(k, n, conf); !near(got, want, 1e-9) {
			t.Fatalf("UpperBound(%d, %d, %v) = %v, slow twin %v", k, n, conf, got, want)
		}
		// The lower bound of k is the mirrored upper bound of n-k.
		if got, want := LowerBound(k, n, conf), 1-slowUpper(n-k, n, conf); math.Abs(got-want) > 1e-9 {
			t.Fatalf("LowerBound(%d, %d, %v) = %v, slow twin %v", k, n, conf, got, want)
		}
	})
}

func TestTailAgreesWithSlowTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 400).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		p := float64(rapid.IntRange(0, 1000).Draw(t, "p")) / 1000
		if got, want := BinomialTail(k, n, p), slowTail(k, n, p); math.Abs(got-want) > 1e-11 {
			t.Fatalf("BinomialTail(%d, %d, %v) = %v, slow twin %v", k, n, p, got, want)
		}
	})
}

func TestBoundsAtScale(t *testing.T) {
	for _, n := range []int{1e4, 1e6, 1e8} {
		for _, k := range []int{1, 10, n / 2, n - 1} {
			lower, upper := Interval(k, n, 0.95)
			rate := float64(k) / float64(n)
			if !(lower < rate && rate < upper && lower >= 0 && upper <= 1) {
				t.Errorf("Interval(%d, %d) = %v, %v does not hold %v", k, n, lower, upper, rate)
			}
			if got := BinomialTail(k, n, lower); math.Abs(got-0.025) > 1e-6 {
				t.Errorf("tail of (%d, %d) at its lower bound is %v, want 0.025", k, n, got)
			}
		}
	}
}

// slowFisher sums the hypergeometric distribution in whole numbers.
func slowFisher(a, n, b, m int) float64 {
	c := func(n, k int) *big.Int { return new(big.Int).Binomial(int64(n), int64(k)) }
	sum := new(big.Int)
	for k := a; k <= n && k <= a+b; k++ {
		if a+b-k <= m {
			sum.Add(sum, new(big.Int).Mul(c(n, k), c(m, a+b-k)))
		}
	}
	f, _ := new(big.Rat).SetFrac(sum, c(n+m, a+b)).Float64()
	return f
}

func TestFisherAgreesWithSlowTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, m := rapid.IntRange(0, 50).Draw(t, "n"), rapid.IntRange(0, 50).Draw(t, "m")
		a, b := rapid.IntRange(0, n).Draw(t, "a"), rapid.IntRange(0, m).Draw(t, "b")
		if got, want := Fisher(a, n, b, m), slowFisher(a, n, b, m); !near(got, want, 1e-9) {
			t.Fatalf("Fisher(%d/%d, %d/%d) = %v, slow twin %v", a, n, b, m, got, want)
		}
	})
}

// TestFisherStrata holds the test over strata against the plain one where there
// is one stratum, and against a sum over all ways to fill two.
func TestFisherStrata(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) Table {
			n, m := rapid.IntRange(0, 12).Draw(t, name+" n"), rapid.IntRange(0, 12).Draw(t, name+" m")
			return Table{rapid.IntRange(0, n).Draw(t, name+" a"), n, rapid.IntRange(0, m).Draw(t, name+" b"), m}
		}
		one, two := draw("one"), draw("two")
		if got, want := FisherStrata([]Table{one}), Fisher(one.Hits, one.Trials, one.OtherHits, one.OtherTrials); !near(got, want, 1e-9) {
			t.Fatalf("one stratum %+v: %v, Fisher %v", one, got, want)
		}
		want := 0.0
		for k := 0; k <= one.Trials; k++ {
			want += exactly(one, k) * slowAtLeast(two, one.Hits+two.Hits-k)
		}
		if got := FisherStrata([]Table{one, two}); !near(got, want, 1e-9) {
			t.Fatalf("%+v %+v: %v, slow twin %v", one, two, got, want)
		}
	})
	if got := FisherStrata(nil); got != 1 {
		t.Errorf("nothing counted: %v", got)
	}
}

// slowAtLeast is the chance of k events or more in the first arm of a table
// with that many events.
func slowAtLeast(t Table, k int) float64 {
	p := 0.0
	for ; k <= t.Trials; k++ {
		if k >= 0 {
			p += exactly(t, k)
		}
	}
	return p
}

// exactly is the chance of k events in the first arm, by whole numbers.
func exactly(t Table, k int) float64 {
	events := t.Hits + t.OtherHits
	if k < 0 || events-k < 0 || events-k > t.OtherTrials {
		return 0
	}
	ways := new(big.Int).Mul(new(big.Int).Binomial(int64(t.Trials), int64(k)), new(big.Int).Binomial(int64(t.OtherTrials), int64(events-k)))
	p, _ := new(big.Rat).SetFrac(ways, new(big.Int).Binomial(int64(t.Trials+t.OtherTrials), int64(events))).Float64()
	return p
}

func TestFisherKnown(t *testing.T) {
	// The lady tasting tea: three of four right by chance is 17 in 70, all four 1 in 70.
	if got := Fisher(3, 4, 1, 4); !near(got, 17.0/70, 1e-12) {
		t.Errorf("three cups: %v", got)
	}
	if got := Fisher(4, 4, 0, 4); !near(got, 1.0/70, 1e-12) {
		t.Errorf("four cups: %v", got)
	}
}

func TestHolm(t *testing.T) {
	got := Holm([]float64{0.01, 0.04, 0.03, 0.005})
	want := []float64{0.03, 0.06, 0.06, 0.02}
	for i := range want {
		if !near(got[i], want[i], 1e-12) {
			t.Fatalf("Holm = %v, want %v", got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Float64Range(0, 1), 0, 12).Draw(t, "p")
		q := Holm(p)
		for i := range p {
			if q[i] < p[i] || q[i] > math.Min(1, float64(len(p))*p[i]) {
				t.Fatalf("Holm(%v) = %v: not between the raw and the Bonferroni value", p, q)
			}
			for j := range p {
				if p[i] < p[j] && q[i] > q[j] {
					t.Fatalf("Holm(%v) = %v: order changed", p, q)
				}
			}
		}
	})
}

func TestOutsideTheDomainPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"more events than trials": func() { UpperBound(3, 2, 0.95) },
		"negative":                func() { LowerBound(-1, 2, 0.95) },
		"confidence of one":       func() { Interval(1, 2, 1) },
		"confidence NaN":          func() { UpperBound(1, 2, math.NaN()) },
		"rate above one":          func() { BinomialTail(1, 2, 1.5) },
		"p-value above one":       func() { Holm([]float64{2}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}
