package speed

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// bucket is how many values a histogram has seen that are no larger than a bound.
type bucket struct{ most, count float64 }

type histogram []bucket

// buckets are those of the guard's own share, in seconds.
func buckets(metrics map[string]float64) histogram {
	var h histogram
	for name, count := range metrics {
		_, le, ok := strings.Cut(strings.TrimPrefix(name, `kvcanary_guard_overhead_seconds_bucket{upstream="engine",`), `le="`)
		if most, err := strconv.ParseFloat(strings.TrimSuffix(le, `"}`), 64); ok && err == nil && strings.HasPrefix(name, "kvcanary_guard_overhead_seconds_bucket{upstream=\"engine\"") {
			h = append(h, bucket{most, count})
		}
	}
	slices.SortFunc(h, func(a, b bucket) int { return int(math.Copysign(1, a.most-b.most)) })
	return h
}

// since is what came between two readings.
func (h histogram) since(later histogram) histogram {
	out := slices.Clone(later)
	for i := range h {
		out[i].count -= h[i].count
	}
	return out
}

// quantile is where a share of the values lie below, linear within a bucket.
func (h histogram) quantile(q float64) float64 {
	if len(h) == 0 {
		return math.NaN()
	}
	want, before := q*h[len(h)-1].count, bucket{}
	for _, b := range h {
		if b.count >= want {
			return before.most + (b.most-before.most)*(want-before.count)/(b.count-before.count)
		}
		before = b
	}
	return math.NaN()
}

func TestQuantile(t *testing.T) {
	h := buckets(map[string]float64{
		`kvcanary_guard_overhead_seconds_bucket{upstream="engine",le="1e-05"}`: 10,
		`kvcanary_guard_overhead_seconds_bucket{upstream="engine",le="2e-05"}`: 30,
		`kvcanary_guard_overhead_seconds_bucket{upstream="engine",le="+Inf"}`:  30,
		`kvcanary_guard_overhead_seconds_bucket{upstream="other",le="1e-05"}`:  99,
		`kvcanary_guard_held_bytes_bucket{le="1"}`:                             99,
	})
	if got := h.quantile(0.5); math.Abs(got-1.25e-5) > 1e-9 {
		t.Errorf("median %v, want 1.25e-05: %v", got, h)
	}
	if got := h.since(histogram{{1e-5, 20}, {2e-5, 50}, {math.Inf(1), 50}}).quantile(0.25); math.Abs(got-0.5e-5) > 1e-9 {
		t.Errorf("quarter of what came later: %v, want 5e-06", got)
	}
}
