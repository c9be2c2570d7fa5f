package lab

import (
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// BenchmarkTags serves the same requests with tags and without, in turns, and
// reports the medians of the processor time that they take and of the ratio of
// neighbours: other work on the machine disturbs wall time more.
func BenchmarkTags(b *testing.B) {
	cfg := Config{Context: 70_000, PrefillPool: 70_000, DecodePool: 70_000, PageSize: 64}
	start := func(without handoff.Defences) *Engine {
		setup, trace, err := begin(cfg)
		if err != nil {
			b.Fatal(err)
		}
		setup.Handoff.Switches.Without = without
		e, err := pipe(cfg, setup, trace)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { e.Close() })
		return e
	}
	engines := []*Engine{start(0), start(handoff.TagsByWriter)}
	rng := rand.New(rand.NewPCG(1, 10))
	tokens := chat(words(rng, 64<<10) + strings.Repeat(words(rng, 23), 10))
	times := make([][]float64, 2)
	turn := 0
	for b.Loop() {
		turn++
		for i := range engines {
			i = (i + turn) % 2 // neither always goes first
			began := processorTime()
			if got := collect(engines[i].Submit(b.Context(), Request{Tokens: tokens, MaxTokens: 9})); got.err != nil {
				b.Fatal(got.err)
			}
			times[i] = append(times[i], (processorTime() - began).Seconds())
		}
	}
	ratios := make([]float64, len(times[0]))
	for i := range ratios {
		ratios[i] = 100 * (times[0][i]/times[1][i] - 1)
	}
	mid := func(all []float64) float64 { return slices.Sorted(slices.Values(all))[len(all)/2] }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(1e3*mid(times[0]), "CPU-ms/request-with-tags")
	b.ReportMetric(1e3*mid(times[1]), "CPU-ms/request-without")
	b.ReportMetric(mid(ratios), "%more")
}

// processorTime is what this process has used of all processors.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
