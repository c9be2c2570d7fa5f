// Package diagnose says which class of fault a run's findings look like.
//
// It compares what was seen with what the lab has shown of each class: a table
// of how often each protocol came to each set of signs, measured by `kvcanary
// matrix` and embedded here. The likely class is a hint where to look and no
// finding: it never changes a verdict.
package diagnose

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
)

// Other is the class of what the lab has no fault for.
const Other = "other"

// Diagnosis is one class of fault and how likely it is. JSON names are a contract.
type Diagnosis struct {
	Fault string `json:"fault"` // name of the lab's fault, or [Other]
	// Mode is the mode of it that fits best; empty if it has none.
	Mode string `json:"mode,omitempty"`
	// Probability is that of the class if each class of the table, and Other, was
	// as likely before.
	Probability float64  `json:"probability"`
	Means       string   `json:"means"` // what goes wrong inside such an engine
	Check       []string `json:"check"` // what to look at on the engine, a line each
}

const (
	most   = 3    // classes named
	enough = 0.05 // probability that is worth naming
	// weight is how many trials the guess counts for that signs come
	// independently of each other, beside the trials that were made.
	weight = 10
	// elsewhere is how much of the rate that a kind of finding has under one
	// protocol it is given under another.
	elsewhere = 0.3
)

// Seen is what each protocol came to that has either found something or reached
// its coverage: protocols that were cut short are left out, for their silence
// says nothing.
type Seen map[string]Signs

// Of names the likely classes, the likeliest first; nil if nothing was found or
// no class of the table can be told from others by these protocols.
func (t *Table) Of(seen Seen) []Diagnosis {
	posterior := t.posterior(seen)
	var out []Diagnosis
	for _, c := range posterior {
		if c.p < enough || len(out) == most {
			break
		}
		d := Diagnosis{Fault: c.class, Mode: c.mode, Probability: c.p}
		d.Means, d.Check = advice(c.class)
		out = append(out, d)
	}
	return out
}

// candidate is a class with its best mode and its probability.
type candidate struct {
	class, mode string
	p           float64
}

// posterior is Bayes' rule with every class equally likely beforehand, and
// every mode within its class; the likeliest comes first.
func (t *Table) posterior(seen Seen) []candidate {
	protocols := t.comparable(seen)
	found := slices.ContainsFunc(protocols, func(p string) bool { return seen[p].found() })
	if !found {
		return nil
	}
	classes := map[string]*candidate{}
	modes, bestOf := map[string]float64{}, map[string]float64{}
	for _, fault := range t.faults() {
		class, mode, _ := strings.Cut(fault, ":")
		likelihood := 1.0
		for _, p := range protocols {
			likelihood *= t.likelihood(fault, p, seen[p])
		}
		if classes[class] == nil {
			classes[class] = &candidate{class: class}
		}
		modes[class]++
		classes[class].p += likelihood
		if likelihood > bestOf[class] {
			bestOf[class], classes[class].mode = likelihood, mode
		}
	}
	other := 1.0
	for _, p := range protocols {
		other *= t.anything(p, seen[p])
	}
	out := []candidate{{class: Other, p: other}}
	// In one order: sums of the same numbers differ in their last bit by it.
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		c := classes[class]
		c.p /= modes[class]
		out = append(out, *c)
	}
	sum := 0.0
	for _, c := range out {
		sum += c.p
	}
	for i := range out {
		out[i].p /= sum
	}
	slices.SortFunc(out, func(a, b candidate) int { return cmp.Or(cmp.Compare(b.p, a.p), cmp.Compare(a.class, b.class)) })
	return out
}

// comparable are the protocols that every class of the table was tried with, in order.
func (t *Table) comparable(seen Seen) []string {
	var out []string
	for p := range seen {
		if !slices.ContainsFunc(t.faults(), func(f string) bool { return t.entry(f, p) == nil }) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// likelihood is the chance that a protocol comes to these signs under a fault:
// how often it did in the lab, with as much weight as weight trials would have
// given to the product of how often each sign was there.
func (t *Table) likelihood(fault, protocol string, signs Signs) float64 {
	e := t.entry(fault, protocol)
	n := float64(e.Trials)
	return (float64(e.Seen[signs.String()]) + weight*t.independent(e, signs)) / (n + weight)
}

// independent is the chance of the signs if each came by itself, at the rate
// that it has in the lab. An endpoint is not the lab: a sign may be there, or
// not, for other reasons than the fault. And where it has come to signs
// that the lab has shown under no fault, its prompts may reach what the lab's do
// not, a window for instance: a fault that shows a kind of finding under another
// protocol is likelier then than one that shows it nowhere.
func (t *Table) independent(e *Entry, signs Signs) float64 {
	p := 1.0
	known := t.shown(e.Protocol, signs)
	for i := range all {
		rate := e.rate(1 << i)
		if i < len(kinds) && !known {
			rate = max(rate, elsewhere*t.most(e.Fault, 1<<i))
		}
		if signs&(1<<i) == 0 {
			rate = 1 - rate
		}
		p *= all[i].slack + (1-2*all[i].slack)*rate
	}
	return p
}

// shown reports whether a protocol has come to these signs under any fault.
func (t *Table) shown(protocol string, signs Signs) bool {
	return slices.ContainsFunc(t.Entries, func(e Entry) bool {
		return e.Protocol == protocol && e.Seen[signs.String()] > 0
	})
}

// most is the highest rate of a sign under a fault, over all protocols.
func (t *Table) most(fault string, sign Signs) float64 {
	rate := 0.0
	for i := range t.Entries {
		if e := &t.Entries[i]; e.Fault == fault {
			rate = max(rate, e.rate(sign))
		}
	}
	return rate
}

// anything is the chance of a set of signs under a fault that nothing is known
// of. It is found or not, shows any kind of finding as easily as another, and
// what else there is as often as all faults together.
func (t *Table) anything(protocol string, signs Signs) float64 {
	const (
		found   = 0.5
		eachWay = 0.25
	)
	if !signs.found() {
		return 1 - found
	}
	p := found / (1 - math.Pow(1-eachWay, float64(len(kinds))))
	for i := range all {
		rate := eachWay
		if i >= len(kinds) {
			rate = t.overall(protocol, 1<<i)
		}
		if signs&(1<<i) == 0 {
			rate = 1 - rate
		}
		p *= rate
	}
	return p
}

// overall is the share of trials with a sign among those under all faults that
// found anything, a trial added either way.
func (t *Table) overall(protocol string, sign Signs) float64 {
	with, found := 1.0, 2.0
	for i := range t.Entries {
		e := &t.Entries[i]
		if e.Protocol != protocol {
			continue
		}
		for set, n := range e.Seen {
			if s := parse(set); s.found() {
				found += float64(n)
				if s&sign != 0 {
					with += float64(n)
				}
			}
		}
	}
	return with / found
}
