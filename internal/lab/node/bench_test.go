package node

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/model"
)

// stepping is a decode that is about to compute the token after a prompt.
func stepping(b *testing.B, tokens int, without handoff.Defences) (*decode, handoff.Event) {
	b.Helper()
	const size = 64
	pages := tokens/size + 16
	cfg := handoff.Config{Context: 2 * tokens, PageSize: size, PrefillPages: pages, DecodePages: pages, OneSided: true}
	cfg.Switches.Without = without
	m, mem := model.New(), NewMemory(pages, size)
	d := &decode{
		node:    &node{setup: Setup{Handoff: cfg, Workers: 1}, on: cfg.Switches.On(), mem: mem, cache: mem.cache},
		machine: handoff.NewDecode(cfg), asked: map[handoff.Room]*asked{1: {tokens: tokens, model: m}},
	}
	d.machine.Step(handoff.Event{Kind: handoff.Submit, Room: 1, Tokens: tokens, MaxNew: 2})
	d.machine.Step(handoff.Event{Kind: handoff.Hello, Room: 1, Tokens: tokens})
	d.asked[1].guard.owner = owner(1, 1, d.machine.Lease(1))
	rng := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, tokens)
	for i := range text {
		text[i] = byte('a' + rng.IntN(26))
	}
	m.Write(mem.cache, d.machine.Table(1), 0, text)
	for i, page := range d.machine.Table(1) {
		mem.mark(page, markOf(d.asked[1].guard.owner, i, tokens, size))
	}
	for _, e := range []handoff.Event{
		{Kind: handoff.Meta, Room: 1, Sent: tokens, Prompt: tokens, Token: 'x', Gen: d.machine.Lease(1)},
		{Kind: handoff.Verified, Room: 1, OK: true},
	} {
		for _, a := range d.machine.Step(e) {
			if a.Kind == handoff.Step {
				return d, a.Event
			}
		}
	}
	b.Fatal("decode has no step to do")
	return nil, handoff.Event{}
}

// BenchmarkStep computes a token at 64k context on pages of 64, with tags and
// without, in turns, and beside it the two looks at the tags alone.
func BenchmarkStep(b *testing.B) {
	tagged, step := stepping(b, 64<<10, 0)
	plain, same := stepping(b, 64<<10, handoff.TagsByWriter)
	var with, without, looks []float64
	timed := func(all *[]float64, f func()) {
		start := time.Now()
		f()
		*all = append(*all, float64(time.Since(start).Nanoseconds()))
	}
	next := func(d *decode, s handoff.Event) func() {
		return func() {
			if e := d.next(s, 1); e.Kind != handoff.Stepped {
				b.Fatalf("got %v", e)
			}
		}
	}
	for b.Loop() {
		timed(&with, next(tagged, step))
		timed(&without, next(plain, same))
		timed(&looks, func() {
			if !tagged.owns(1, step.Pos) || !tagged.owns(1, step.Pos+1) {
				b.Fatal("its pages are not its own")
			}
		})
	}
	shares := make([]float64, len(with))
	for i := range with {
		shares[i] = 100 * looks[i] / without[i]
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(with)/1e6, "ms/step-with-tags")
	b.ReportMetric(median(without)/1e6, "ms/step-without")
	b.ReportMetric(median(looks)/1e3, "us/looks")
	b.ReportMetric(median(shares), "%looks")
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}
