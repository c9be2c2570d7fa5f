package handoff

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// havoc is walk with everything that may go wrong: messages between the nodes
// are lost, repeated and reordered, requests expire, nodes die and come back.
// Then all that is left is delivered and the clock ends what waits for what was
// lost.
func havoc(w *world, choose chooser, steps int) {
	for range steps {
		switch choose(12) {
		case 0:
			w.open(Room(1+choose(3)), choose(w.cfg.Context+1), 1+choose(8))
		case 1:
			w.cancel(w.someone(choose))
		case 2:
			w.compute(choose(8) == 0)
		case 3:
			w.step(choose(4) == 0)
		case 4, 5:
			w.send()
		case 6:
			w.land(choose(4))
		case 7:
			w.accident(choose)
		case 8:
			w.tell([...]Role{ToRouter, ToPrefill, ToDecode}[choose(3)])
		default:
			w.deliver(choose(len(linkOrder)))
		}
		w.check()
	}
	w.settle()
	for room := range w.opened {
		w.expire(room)
	}
	w.settle()
}

// someone is one of the last rooms.
func (w *world) someone(choose chooser) Room {
	return Room(max(1, len(w.opened)-choose(3)))
}

func (w *world) accident(choose chooser) {
	i := between[choose(2)]
	switch choose(8) {
	case 0:
		w.lose(i)
	case 1, 2:
		w.repeat(i)
	case 3, 4:
		w.overtake(i, choose(4))
	case 5:
		w.expire(w.someone(choose))
	case 6:
		w.crash([...]Role{ToPrefill, ToDecode}[choose(2)])
	case 7:
		w.restart([...]Role{ToPrefill, ToDecode}[choose(2)])
	}
}

// settle does all that can be done, with every node alive.
func (w *world) settle() {
	for w.once() || w.restart(ToPrefill) || w.restart(ToDecode) {
		w.check()
	}
}

// quarantined checks that nothing is held but pages whose Gone was lost, and
// that those are free once prefill is known to have died.
func quarantined(t interface{ Fatalf(string, ...any) }, w *world) {
	if used, draining := w.decode.pool.Used(), w.decode.Draining(); used != draining {
		t.Fatalf("%d decode pages are used and %d drain", used, draining)
	}
	w.crash(ToPrefill)
	w.settle()
	rest(t, w)
}

// Whatever goes wrong, nothing is read that its reader did not write, every
// request ends once, and no page is lost.
func TestCorrectMachinesInHavoc(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(anyConfig(t))
		havoc(w, rapidChooser(t), rapid.IntRange(0, 400).Draw(t, "steps"))
		quarantined(t, w)
		if len(w.stale) > 0 {
			t.Fatalf("%v", w.stale)
		}
	})
}

// With any faults on, and any defences on or off, the machines go on.
func TestFaultyMachinesGoOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		all := Defences(1<<len(defenceNames) - 1)
		c.Switches.Faults = Faults(rapid.Uint16Range(0, 1<<len(faultNames)-1).Draw(t, "faults"))
		c.Switches.Without = Defences(rapid.Uint16().Draw(t, "without")) & all
		havoc(newWorld(c), rapidChooser(t), rapid.IntRange(0, 400).Draw(t, "steps"))
	})
}

// leaks reports whether something foreign is read in one of 200 seeded walks.
func leaks(onesided bool, sw Switches) bool {
	for seed := range uint64(200) {
		w := newWorld(Config{
			PageSize: 2, PrefillPages: 8, DecodePages: 12, Context: 18, Policy: LIFO, OneSided: onesided, Switches: sw,
		})
		r := rand.New(rand.NewPCG(seed, 2))
		havoc(w, func(n int) int {
			if i := r.IntN(n); n != 12 || i != 7 || r.IntN(8) == 0 {
				return i
			}
			return 8 // fewer accidents, so that requests get somewhere
		}, 400)
		if w.alien > 0 {
			return true
		}
	}
	return false
}

// Each fault leaks in havoc, and each is held by the defence that is its cure.
func TestEachFaultHasADefence(t *testing.T) {
	for _, c := range []struct {
		fault Faults
		cure  Defences
	}{
		{StaleReserve, Retire}, {StaleReserve, TagsByWriter}, {LateWrite, QuiesceFirst}, {LateWrite, TagsByWriter},
		{StaleSource, Generations}, {StaleSource, TagsByWriter}, {DoubleOwner, TagsByWriter}, {IDReuse, UniqueIDs},
	} {
		t.Run(fmt.Sprint(c.fault, " ", c.cure), func(t *testing.T) {
			if !leaks(true, Switches{Faults: c.fault}) {
				t.Error("the fault does not leak")
			}
			if leaks(true, Switches{Faults: c.fault, Defences: c.cure}) {
				t.Error("it leaks in spite of the defence")
			}
		})
	}
}
