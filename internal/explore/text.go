package explore

import (
	"fmt"
	"strings"
)

// Text is a result for people: one line, and the counterexample if there is one.
func (r Result) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d states, %d transitions, depth %d, %.2f s, %.0f states/s", r.Setup, r.States, r.Transitions, r.Depth, r.Seconds, r.PerSecond)
	switch {
	case r.Counterexample != nil:
		fmt.Fprintf(&b, ": %v is broken after %d steps\n\n%s\n%s\n",
			r.Counterexample.Broken[0].Invariant, len(r.Counterexample.Steps), r.Counterexample.Story(), r.Counterexample.Diagram())
		return b.String()
	case !r.Complete:
		b.WriteString(": not all of it was explored\n")
	case r.Endless != "":
		fmt.Fprintf(&b, ": nothing is broken, but %s, and so I5 is not shown\n", r.Endless)
	default:
		fmt.Fprintf(&b, ": holds (chance of a missed state below 2^%d)\n", r.Doubt)
	}
	return b.String()
}

// Names are the names of all setups.
func Names() []string {
	var all []string
	for _, s := range Setups {
		all = append(all, s.Name)
	}
	return all
}

// InvariantNames are the names of all that can be looked at.
func InvariantNames() []string {
	var all []string
	for i := range invariants {
		all = append(all, i.String())
	}
	return all
}

// ParseInvariant reads the name of an invariant.
func ParseInvariant(name string) (Invariant, bool) {
	for i := range invariants {
		if i.String() == name {
			return i, true
		}
	}
	return 0, false
}

// MarshalText writes the name.
func (i Invariant) MarshalText() ([]byte, error) { return []byte(i.String()), nil }
