package node

import (
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// A prompt at a rate is computed in turns of ten milliseconds, each at its time,
// however late the node looks.
func TestPrefillKeepsItsRate(t *testing.T) {
	p := &prefill{node: &node{setup: Setup{PrefillRate: 10_000}}}
	if p.turn() != 100 {
		t.Errorf("a turn of %d tokens", p.turn())
	}
	start := time.Unix(1_000, 0)
	j := &job{room: 1}
	for _, c := range []struct {
		after time.Duration
		ok    bool
		wait  time.Duration
	}{
		{0, false, 10 * time.Millisecond}, {9 * time.Millisecond, false, time.Millisecond}, {10 * time.Millisecond, true, -1},
		{11 * time.Millisecond, false, 9 * time.Millisecond}, {35 * time.Millisecond, true, -1}, {35 * time.Millisecond, true, -1},
		{35 * time.Millisecond, false, 5 * time.Millisecond},
	} {
		now := start.Add(c.after)
		ok := p.paced(j, j.done+p.turn(), now)
		if wait := p.due(now); ok != c.ok || wait != c.wait {
			t.Errorf("after %v: %v, next in %v, want %v and %v", c.after, ok, wait, c.ok, c.wait)
		}
		if ok {
			j.done += p.turn()
		}
	}
	p.setup.PrefillRate = 0
	if !p.paced(&job{}, 1<<20, start) || p.turn() != chunk {
		t.Error("without a rate a prompt waits")
	}
}

// Decode at a rate begins no step before its time, and is woken for it.
func TestDecodeKeepsItsRate(t *testing.T) {
	d := &decode{node: &node{setup: Setup{DecodeRate: 1000}}}
	start := time.Unix(1_000, 0)
	if wait := d.due(start); !d.paced(start) || wait >= 0 {
		t.Errorf("with nothing to do it is woken in %v", wait)
	}
	d.steps = []handoff.Event{{Kind: handoff.Stepped}}
	for _, c := range []struct {
		after time.Duration
		ok    bool
		wait  time.Duration
	}{
		{0, true, time.Millisecond}, {300 * time.Microsecond, false, 700 * time.Microsecond}, {time.Millisecond, true, time.Millisecond},
		{5 * time.Millisecond, true, time.Millisecond},
	} {
		now := start.Add(c.after)
		if ok, wait := d.paced(now), d.due(now); ok != c.ok || wait != c.wait {
			t.Errorf("after %v: %v, next in %v, want %v and %v", c.after, ok, wait, c.ok, c.wait)
		}
	}
	d.setup.DecodeRate = 0
	if wait := d.due(start); !d.paced(start) || wait >= 0 {
		t.Errorf("without a rate a step waits for %v", wait)
	}
}
