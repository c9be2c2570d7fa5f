package explore

import (
	"fmt"
	"slices"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// Setup is an engine, what it is asked to do, and what may go wrong.
type Setup struct {
	Name   string         `json:"name"`
	About  string         `json:"about"`
	Engine handoff.Config `json:"engine"`
	Shapes []Shape        `json:"shapes"`
	Bounds Bounds         `json:"bounds"`
	// Unordered says that what prefill and decode tell each other may overtake,
	// be lost and be repeated; the latter two as Bounds allow.
	Unordered bool `json:"unordered,omitempty"`
	// Torn says that a one-sided write has a moment at which half of it is done.
	Torn bool `json:"torn,omitempty"`
	// Small says that exploring it takes about a second at most.
	Small bool `json:"-"`
}

// Shape is what some requests have in common.
type Shape struct {
	Tenant string `json:"tenant"`
	Tokens int    `json:"tokens"`
	MaxNew int    `json:"max_new"`
	Count  int    `json:"count"`
	Flawed bool   `json:"flawed,omitempty"` // prefill has to refuse it, whatever its length
	ID     int    `json:"id,omitempty"`     // what its client calls it, with fault id_reuse
}

// Bounds are how many faults may happen along one path, 7 of a kind at most.
type Bounds struct {
	Cancels  int `json:"cancels,omitempty"`
	Expiries int `json:"expiries,omitempty"` // while something else may still happen
	Losses   int `json:"losses,omitempty"`
	Copies   int `json:"copies,omitempty"`
	Crashes  int `json:"crashes,omitempty"`
	Total    int `json:"total,omitempty"` // of all kinds; 0: no more than that
}

// budget is what is left of the bounds, four bits each.
type budget uint32

const (
	oneFault  budget = 1
	oneCancel        = 1<<4 | oneFault
	oneExpiry        = 1<<8 | oneFault
	oneLoss          = 1<<12 | oneFault
	oneCopy          = 1<<16 | oneFault
	oneCrash         = 1<<20 | oneFault
	guards    budget = 0x888888
)

func (b Bounds) budget() budget {
	total := b.Total
	if total == 0 {
		total = 7
	}
	return budget(total) | budget(b.Cancels)<<4 | budget(b.Expiries)<<8 | budget(b.Losses)<<12 | budget(b.Copies)<<16 |
		budget(b.Crashes)<<20
}

// allows reports whether enough is left: no four bits borrow from the next.
func (b budget) allows(cost budget) bool { return (b|guards-cost)&guards == guards }

// spent reports whether any of the kinds in of has happened.
func (b budget) spent(from, of budget) bool {
	of &^= oneFault
	for of != 0 {
		field := budget(0xf)
		for of&field == 0 {
			field <<= 4
		}
		if b&field != from&field {
			return true
		}
		of &^= field
	}
	return false
}

func (b budget) digest() digest {
	x := (uint64(b) + 1) * 0x9e3779b97f4a7c15
	x ^= x >> 29
	y := x * 0xbf58476d1ce4e5b9
	return digest{x ^ y>>31, y ^ y>>32}
}

// Model is a setup that is ready to be explored.
type Model struct {
	setup   Setup
	on      handoff.Defences
	size    int // tokens a page
	limit   int // prompt length from which on a node must refuse
	checked set // the invariants that are looked at
}

// NewModel prepares a setup. With no invariants named all are checked.
func NewModel(s Setup, only ...Invariant) (*Model, error) {
	if err := s.Engine.Validate(); err != nil {
		return nil, err
	}
	requests := 0
	for _, shape := range s.Shapes {
		requests += shape.Count
	}
	if requests < 1 || requests > 15 {
		return nil, fmt.Errorf("%d requests: explore 1 to 15", requests)
	}
	for _, n := range []int{s.Bounds.Cancels, s.Bounds.Expiries, s.Bounds.Losses, s.Bounds.Copies, s.Bounds.Crashes, s.Bounds.Total} {
		if n < 0 || n > 7 {
			return nil, fmt.Errorf("a bound of %d faults: use 0 to 7", n)
		}
	}
	if !s.Unordered && s.Bounds.Losses+s.Bounds.Copies > 0 {
		return nil, fmt.Errorf("messages are lost and repeated only where they are unordered")
	}
	m := &Model{setup: s, on: s.Engine.Switches.On(), size: s.Engine.PageSize, limit: s.Engine.MaxInput()}
	for i := range invariants {
		if len(only) == 0 && i <= I8 || slices.Contains(only, i) {
			m.checked |= 1 << i
		}
	}
	return m, nil
}

// start is the world before anything happens.
func (m *Model) start() [parts]part {
	c := m.setup.Engine
	f := &front{m: handoff.NewRouter(c)}
	for _, s := range m.setup.Shapes {
		f.left = append(f.left, uint8(s.Count))
	}
	fifo := func(self, from, to slot) *link { return &link{self: self, from: from, to: to} }
	pair := func(self, from, to slot) *link { return &link{self: self, from: from, to: to, bag: m.setup.Unordered} }
	return [parts]part{
		slotRouter:      f,
		slotPrefill:     &prefillNode{m: handoff.NewPrefill(c)},
		slotDecode:      &decodeNode{m: handoff.NewDecode(c)},
		slotToDecode:    fifo(slotToDecode, slotRouter, slotDecode),
		slotToPrefill:   fifo(slotToPrefill, slotRouter, slotPrefill),
		slotFromPrefill: fifo(slotFromPrefill, slotPrefill, slotRouter),
		slotFromDecode:  fifo(slotFromDecode, slotDecode, slotRouter),
		slotWrites:      &writes{oneSided: c.OneSided},
		slotPD:          pair(slotPD, slotPrefill, slotDecode),
		slotDP:          pair(slotDP, slotDecode, slotPrefill),
		slotSource:      newMemory(slotSource, c.PrefillPages),
		slotPages:       newMemory(slotPages, c.DecodePages),
		slotPower:       &power{},
	}
}

// first is the state of the world before anything happens.
func (m *Model) first(s *store) state {
	st := state{budget: m.setup.Bounds.budget()}
	for i, p := range m.start() {
		st.parts[i] = s.part(slotOf(i), p)
	}
	return st
}

// step gives a machine an event. It reports false if the machine found its own
// books wrong and stopped: that breaks an invariant, and its state means nothing.
func (o *outcome) step(f func(handoff.Event) []handoff.Action) (ok bool) {
	defer func() {
		if said := recover(); said != nil {
			o.broken, o.effects = append(o.broken, Violation{Books, fmt.Sprint(said)}), nil
		}
	}()
	o.did = f(o.in)
	return true
}

func strayOp(o op) string {
	return fmt.Sprintf("kvcanary: internal error: explorer cannot do operation %d", o.kind)
}
