package explore

import "slices"

// Counterexample is a shortest way to break an invariant: what happened, one
// choice after the other.
type Counterexample struct {
	Steps  []Step      `json:"steps"`
	Broken []Violation `json:"broken"` // by the last step, or by nothing more happening after it
	AtEnd  bool        `json:"at_end,omitempty"`
}

// Step is one thing that happened, with all that followed at once.
type Step struct {
	Text  string `json:"text"`
	Arrow Arrow  `json:"arrow"`
}

// happened is an operation on a part, and what it made of it.
type happened struct {
	slot slot
	op   op
	out  outcome
}

// replay goes along a path again, without memory, to tell it.
func (m *Model) replay(path []uint16, atEnd bool) Counterexample {
	c := Counterexample{AtEnd: atEnd}
	world, left := m.start(), m.setup.Bounds.budget()
	for n, via := range path {
		at := slotOf(int(via >> viaBits))
		f := world[at].choices(m)[via&(1<<viaBits-1)]
		left -= f.cost
		all := m.happen(&world, at, f.op)
		c.Steps = append(c.Steps, m.tell(world, f, all))
		if n < len(path)-1 || atEnd {
			continue
		}
		for _, h := range all {
			c.Broken = append(c.Broken, h.out.broken...)
			c.Broken = append(c.Broken, h.out.next.check(m)...)
		}
	}
	if atEnd {
		var all rest
		for _, p := range world {
			all |= p.rest(m)
		}
		c.Broken = m.atLull(all, left)
	}
	c.Broken = slices.DeleteFunc(c.Broken, func(v Violation) bool { return m.checked&(1<<v.Invariant) == 0 })
	slices.SortStableFunc(c.Broken, func(a, b Violation) int { return int(a.Invariant) - int(b.Invariant) })
	c.Broken = slices.Compact(c.Broken)
	return c
}

// happen carries out an operation and all that follows.
func (m *Model) happen(world *[parts]part, at slot, o op) []happened {
	var all []happened
	queue := []then{{at, o}}
	for len(queue) > 0 {
		e := queue[0]
		queue = queue[1:]
		out := world[e.slot].do(m, e.op)
		world[e.slot] = out.next
		all = append(all, happened{e.slot, e.op, out})
		queue = append(queue, out.effects...)
	}
	return all
}
