package handoff

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func mustAlloc(t *testing.T, p *Pool, room Room, n int) []int32 {
	t.Helper()
	pages, ok := p.Alloc(room, n)
	if !ok {
		t.Fatalf("no %d pages of %d free", n, p.Free())
	}
	return pages
}

func TestPolicies(t *testing.T) {
	for _, c := range []struct {
		policy            Policy
		again, more, rest []int32
	}{
		{LIFO, []int32{0, 1}, []int32{4, 5}, []int32{6, 7}},
		{FIFO, []int32{4, 5}, []int32{6, 7}, []int32{0, 1}},
		// The front list has 4 to 7 and is used up before what was freed is merged in.
		{Sort, []int32{4, 5}, []int32{6, 7}, []int32{0, 1}},
	} {
		p := NewPool(8, c.policy)
		a := mustAlloc(t, &p, 1, 2)
		mustAlloc(t, &p, 2, 2)
		p.Release(1, a)
		for _, want := range [][]int32{c.again, c.more, c.rest} {
			if got := mustAlloc(t, &p, 3, 2); !slices.Equal(got, want) {
				t.Errorf("%v: got %v, want %v", c.policy, got, want)
			}
		}
		if got, ok := p.Alloc(4, 1); ok {
			t.Errorf("%v: got %v of an empty pool", c.policy, got)
		}
	}
}

func TestSortMergesWhenItRunsShort(t *testing.T) {
	p := NewPool(6, Sort)
	a, b := mustAlloc(t, &p, 1, 2), mustAlloc(t, &p, 2, 2)
	p.Release(2, b)
	p.Release(1, a)
	// Two are in front; three are wanted, so all six are sorted.
	if got := mustAlloc(t, &p, 3, 3); !slices.Equal(got, []int32{0, 1, 2}) {
		t.Errorf("got %v", got)
	}
}

func TestPoolRefusesWrongOwners(t *testing.T) {
	for name, f := range map[string]func(*Pool){
		"double free":      func(p *Pool) { p.Release(1, []int32{0}); p.Release(1, []int32{0}) },
		"foreign free":     func(p *Pool) { p.Release(2, []int32{0}) },
		"free of no one's": func(p *Pool) { p.Release(0, []int32{1}) },
		"no room":          func(p *Pool) { p.Alloc(0, 1) },
		"less than none":   func(p *Pool) { p.Alloc(1, -1) },
	} {
		p := NewPool(2, LIFO)
		mustAlloc(t, &p, 1, 1)
		if got := panicOf(func() { f(&p) }); !strings.HasPrefix(got, "kvcanary: internal error: ") {
			t.Errorf("%s: panic %q", name, got)
		}
	}
}

func panicOf(f func()) (said string) {
	defer func() { said, _ = recover().(string) }()
	f()
	return ""
}

func TestPoolAgainstASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "pages")
		p := NewPool(n, Policy(rapid.IntRange(0, 2).Draw(t, "policy")))
		held := map[Room][]int32{}
		for room := Room(1); room < 40; room++ {
			want := rapid.IntRange(0, n).Draw(t, "want")
			before := p.Clone()
			pages, ok := p.Alloc(room, want)
			if ok != (want <= before.Free()) || len(pages) != want && ok {
				t.Fatalf("asked for %d of %d: %v %v", want, before.Free(), pages, ok)
			}
			if ok {
				held[room] = pages
			}
			if victim := Room(rapid.IntRange(1, int(room)).Draw(t, "victim")); held[victim] != nil {
				p.Release(victim, held[victim])
				delete(held, victim)
			}
			checkPool("test", &p, held)
		}
	})
}

func TestParsePolicy(t *testing.T) {
	for _, p := range []Policy{LIFO, FIFO, Sort} {
		if got, err := ParsePolicy(p.String()); got != p || err != nil {
			t.Errorf("%v: got %v, %v", p, got, err)
		}
	}
	if _, err := ParsePolicy("random"); err == nil || !strings.Contains(err.Error(), "lifo, fifo or sort") {
		t.Errorf("got %v", err)
	}
}

func TestLimits(t *testing.T) {
	// The incident's own numbers: 681,274 is the first length that prefill refuses.
	c := Config{Context: 1_048_576, PageSize: 64, PrefillPages: 10_645, DecodePages: 20_480}
	if c.PrefillInput() != 681_274 || c.DecodeInput() != 1_048_570 || c.MaxInput() != 681_274 {
		t.Errorf("got %d, %d, %d", c.PrefillInput(), c.DecodeInput(), c.MaxInput())
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	for _, bad := range []Config{
		{Context: 100, PageSize: 0, PrefillPages: 10, DecodePages: 10},
		{Context: 100, PageSize: 4, PrefillPages: 0, DecodePages: 10},
		{Context: 100, PageSize: 1, PrefillPages: 7, DecodePages: 10},
		{Context: 7, PageSize: 4, PrefillPages: 10, DecodePages: 10},
	} {
		if bad.Validate() == nil {
			t.Errorf("%+v is valid", bad)
		}
	}
}

func TestRefusals(t *testing.T) {
	for reason := OverContext; (Refusal{Reason: reason}).Valid(); reason++ {
		r := Refusal{Reason: reason, Have: 12, Limit: 10}
		if r.Text() == "" || r.Type() == "" || r.Status() < 400 {
			t.Errorf("reason %d: %d %q %q", reason, r.Status(), r.Type(), r.Text())
		}
	}
}

// A window that fits each pool has both doors refuse from the same length on: no
// prompt is let in by one and refused by the other, down to the last token.
func TestAWindowWithinThePoolsHasOneLimit(t *testing.T) {
	for _, spare := range []int{0, 1, 5, 6, 100} {
		c := Config{Context: 1024 - spare, PageSize: 16, PrefillPages: 64, DecodePages: 128}
		if c.PrefillInput() != c.DecodeInput() {
			t.Errorf("window %d: prefill refuses from %d, decode from %d", c.Context, c.PrefillInput(), c.DecodeInput())
		}
	}
	if c := (Config{Context: 1025, PageSize: 16, PrefillPages: 64, DecodePages: 128}); c.PrefillInput() == c.DecodeInput() {
		t.Error("a window one token over prefill's pool has one limit as well")
	}
}
