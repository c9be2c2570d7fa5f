package handoff

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// chooser picks one of n things: a random test or a seeded walk.
type chooser func(n int) int

// walk lets clients come and go and does whatever can be done in any order,
// then lets the engine come to rest.
func walk(w *world, choose chooser, steps int) {
	next := Room(1)
	for range steps {
		switch choose(8) {
		case 0:
			w.open(next, choose(w.cfg.Context+1), 1+choose(8))
			next++
		case 1:
			if next > 1 {
				w.cancel(Room(1 + choose(int(next)-1)))
			}
		case 2:
			w.compute(choose(8) == 0)
		case 3:
			if n := len(w.steps); n > 0 {
				i := choose(n)
				w.steps[0], w.steps[i] = w.steps[i], w.steps[0]
			}
			w.step(choose(4) == 0)
		case 4:
			w.send()
		default:
			w.deliver(choose(len(linkOrder)))
		}
		w.check()
	}
	for w.once() {
	}
	w.check()
}

// rest checks that an engine that has nothing to do has nothing left.
func rest(t interface{ Fatalf(string, ...any) }, w *world) {
	for room := range w.opened {
		if _, over := w.ended[room]; !over {
			t.Fatalf("room %d never ends", room)
		}
	}
	if p, d := w.prefill.pool.Used(), w.decode.pool.Used(); p != 0 || d != 0 {
		t.Fatalf("%d prefill and %d decode pages are lost", p, d)
	}
	if w.decode.promised != 0 || len(w.decode.queue) != 0 || len(w.prefill.queue) != 0 || w.prefill.busy != 0 {
		t.Fatalf("promises or queues are left: %+v %+v", w.decode, w.prefill)
	}
	if len(w.prefill.rooms)+len(w.decode.rooms)+w.router.Live() != 0 {
		t.Fatalf("rooms are left: prefill %v, decode %v, router %d", w.prefill.rooms, w.decode.rooms, w.router.Live())
	}
}

func anyConfig(t *rapid.T) Config {
	c := Config{
		PageSize:     rapid.IntRange(1, 5).Draw(t, "page"),
		Policy:       Policy(rapid.IntRange(0, 2).Draw(t, "policy")),
		Context:      rapid.IntRange(8, 40).Draw(t, "context"),
		AutoTruncate: rapid.Bool().Draw(t, "truncate"),
		OneSided:     rapid.Bool().Draw(t, "onesided"),
		Switches:     Switches{Defences: Defences(rapid.Uint16().Draw(t, "defences")) & (1<<len(defenceNames) - 1)},
	}
	least := (8 + c.PageSize - 1) / c.PageSize
	c.PrefillPages = rapid.IntRange(least, least+8).Draw(t, "prefill")
	c.DecodePages = rapid.IntRange(least, least+16).Draw(t, "decode")
	return c
}

func rapidChooser(t *rapid.T) chooser {
	return func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
}

// No page has two owners, none is lost, each request ends once, and nothing is
// read that its reader did not write, whatever the order of things.
func TestCorrectMachines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(anyConfig(t))
		walk(w, rapidChooser(t), rapid.IntRange(0, 300).Draw(t, "steps"))
		rest(t, w)
		if len(w.stale) > 0 {
			t.Fatalf("%v", w.stale)
		}
		served(t, w)
	})
}

// served checks that who is refused was too long, and who is served was not cut
// unless the engine may cut.
func served(t *rapid.T, w *world) {
	for room, e := range w.ended {
		if e.Kind == Refused && e.Refusal.Status() != 400 {
			t.Fatalf("room %d is refused: %v", room, e)
		}
		if e.Kind == Done && e.Prompt >= w.cfg.MaxInput() {
			t.Fatalf("room %d is served in spite of its length: %v", room, e)
		}
	}
}

// With the fault pages still have one owner and none is lost: bookkeeping
// looks sound, and that is why nobody noticed.
func TestFaultyMachinesKeepTheBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		c.Switches = Switches{Faults: StaleReserve}
		w := newWorld(c)
		walk(w, rapidChooser(t), rapid.IntRange(0, 300).Draw(t, "steps"))
		rest(t, w)
	})
}

// walks counts, over seeded walks, those in which something stale was read and
// those in which it was somebody else's.
func walks(sw Switches) (stale, alien int) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(Config{
			PageSize: 4, PrefillPages: 4, DecodePages: 10, Context: 40, Policy: Policy(seed % 3), Switches: sw,
		})
		walk(w, r.IntN, 300)
		if len(w.stale) > 0 {
			stale++
		}
		if w.alien > 0 {
			alien++
		}
	}
	return stale, alien
}

func TestFaultLeaksAndDefencesHold(t *testing.T) {
	if stale, alien := walks(Switches{Faults: StaleReserve}); stale < 100 || alien < 100 {
		t.Errorf("of 200 walks with the fault %d read something stale and %d something foreign", stale, alien)
	}
	if stale, _ := walks(Switches{Faults: StaleReserve, Defences: Retire}); stale != 0 {
		t.Errorf("with retire %d walks read something stale", stale)
	}
	if stale, alien := walks(Switches{Faults: StaleReserve, Defences: ZeroOnAlloc}); stale < 100 || alien != 0 {
		t.Errorf("with zero_on_alloc %d walks read something stale and %d something foreign", stale, alien)
	}
}

// The same events give the same actions and the same state.
func TestMachinesAreDeterministic(t *testing.T) {
	run := func() *world {
		w := newWorld(Config{PageSize: 4, PrefillPages: 4, DecodePages: 10, Context: 40, Policy: Sort})
		w.logs = true
		walk(w, rand.New(rand.NewPCG(7, 7)).IntN, 500)
		return w
	}
	a, b := run(), run()
	if len(a.log) < 500 || !slices.Equal(a.log, b.log) || !reflect.DeepEqual(a.prefill, b.prefill) || !reflect.DeepEqual(a.decode, b.decode) {
		t.Fatal("two runs differ")
	}
}

// Late, repeated and misdirected pages and metadata are not taken.
func TestDecodeTakesOnlyWhatItReserved(t *testing.T) {
	d := NewDecode(Config{PageSize: 4, PrefillPages: 8, DecodePages: 8, Context: 32})
	d.Step(Event{Kind: Submit, Room: 1, Tokens: 7, MaxNew: 2})
	d.Step(Event{Kind: Hello, Room: 1, Tokens: 7})
	for _, e := range []Event{
		{Kind: Page, Room: 2, Index: 0, To: 0},
		{Kind: Page, Room: 1, Index: 2, To: 2},
		{Kind: Page, Room: 1, Index: -1, To: 0},
		{Kind: Page, Room: 1, Index: 0, To: 1},
		{Kind: Stepped, Room: 1},
	} {
		if got := d.Step(e); got != nil {
			t.Errorf("%v: %v", e, got)
		}
	}
	if got := d.Step(Event{Kind: Page, Room: 1, Index: 0, To: 0, Gen: 2}); got != nil {
		t.Errorf("a page under another lease: %v", got)
	}
	got := d.Step(Event{Kind: Meta, Room: 1, Sent: 7, Prompt: 7, Gen: 1})
	if len(got) == 0 || got[0].Refusal != (Refusal{Reason: Incomplete, Have: 7, Limit: 7}) {
		t.Errorf("metadata without pages: %v", got)
	}
	if d.Failed() != 1 || d.Pool().Used() != 0 {
		t.Errorf("%d failed, %d pages used", d.Failed(), d.Pool().Used())
	}
}

func TestLengthsMustAgree(t *testing.T) {
	cfg := Config{PageSize: 4, PrefillPages: 8, DecodePages: 8, Context: 32}
	d := NewDecode(cfg)
	d.Step(Event{Kind: Hello, Room: 1, Tokens: 1})
	got := d.Step(Event{Kind: Submit, Room: 1, Tokens: 7, MaxNew: 2})
	if len(got) == 0 || got[0].Refusal.Reason != Disagreement {
		t.Errorf("decode: %v", got)
	}
	p := NewPrefill(cfg)
	p.Step(Event{Kind: Submit, Room: 1, Tokens: 7})
	got = p.Step(Event{Kind: Reserved, Room: 1, Pages: []int32{3}, Gen: 1})
	if len(got) == 0 || got[0].Refusal.Reason != Disagreement {
		t.Errorf("prefill: %v", got)
	}
}
