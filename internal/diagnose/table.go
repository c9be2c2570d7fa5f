package diagnose

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Schema names the JSON of a Table; docs/schema/likelihoods.v1.schema.json describes it.
const Schema = "kvcanary.likelihoods/v1"

//go:embed likelihoods.json
var measured []byte

// Table is how often each protocol came to each set of signs under each fault of
// the lab.
type Table struct {
	Schema  string  `json:"schema"`
	Entries []Entry `json:"entries"` // one for each pair of fault and protocol
}

// Entry is one fault under one protocol.
type Entry struct {
	Fault    string         `json:"fault"` // "name" or "name:mode"
	Protocol string         `json:"protocol"`
	Trials   int            `json:"trials"`
	Seen     map[string]int `json:"seen"` // trials by their set of signs; "" for those that found nothing
}

// Measured is the table that `kvcanary matrix --likelihoods` has made of this
// version's lab and protocols.
func Measured() *Table {
	t, err := Read(measured)
	if err != nil {
		panic("kvcanary: internal error: " + err.Error())
	}
	return t
}

// Read reads a table and says what is wrong with one.
func Read(b []byte) (*Table, error) {
	var t Table
	if err := json.Unmarshal(b, &t); err != nil {
		return nil, fmt.Errorf("likelihoods: %w", err)
	}
	if t.Schema != Schema {
		return nil, fmt.Errorf("likelihoods: schema %q, this version reads %q: make them again with kvcanary matrix --likelihoods", t.Schema, Schema)
	}
	for i := range t.Entries {
		e := &t.Entries[i]
		sum := 0
		for set, n := range e.Seen {
			sum += n
			if parse(set).String() != set {
				return nil, fmt.Errorf("likelihoods: %s under %s: this version knows no set of signs %q: make them again with kvcanary matrix --likelihoods", e.Fault, e.Protocol, set)
			}
		}
		if sum != e.Trials || e.Trials < 1 {
			return nil, fmt.Errorf("likelihoods: %s under %s: %d trials, but the sets of signs add up to %d", e.Fault, e.Protocol, e.Trials, sum)
		}
	}
	return &t, nil
}

// Add counts a trial.
func (t *Table) Add(fault, protocol string, s Signs) {
	e := t.entry(fault, protocol)
	if e == nil {
		t.Entries = append(t.Entries, Entry{Fault: fault, Protocol: protocol, Seen: map[string]int{}})
		e = &t.Entries[len(t.Entries)-1]
	}
	e.Trials++
	e.Seen[s.String()]++
}

func (t *Table) entry(fault, protocol string) *Entry {
	for i := range t.Entries {
		if t.Entries[i].Fault == fault && t.Entries[i].Protocol == protocol {
			return &t.Entries[i]
		}
	}
	return nil
}

// faults are those of the table, each once, in order.
func (t *Table) faults() []string {
	var out []string
	for i := range t.Entries {
		if !slices.Contains(out, t.Entries[i].Fault) {
			out = append(out, t.Entries[i].Fault)
		}
	}
	return out
}

// Best is the protocol that finds a fault most often, "" if none ever did; one
// trial each way is added, so that few trials count for little. Of equals it is
// the first in the table.
func (t *Table) Best(fault string) string {
	best, rate := "", 0.0
	for i := range t.Entries {
		e := &t.Entries[i]
		n := float64(e.Trials)
		if r := (n*e.found() + 1) / (n + 2); e.Fault == fault && e.found() > 0 && r > rate {
			best, rate = e.Protocol, r
		}
	}
	return best
}

// found is the share of trials that found anything.
func (e *Entry) found() float64 { return e.share(Signs.found) }

// rate is the share of trials with a sign.
func (e *Entry) rate(sign Signs) float64 { return e.share(func(s Signs) bool { return s&sign != 0 }) }

func (e *Entry) share(of func(Signs) bool) float64 {
	n := 0
	for set, k := range e.Seen {
		if of(parse(set)) {
			n += k
		}
	}
	return float64(n) / float64(e.Trials)
}

// JSON is the table as it is committed: an entry a line.
func (t *Table) JSON() []byte {
	var lines []string
	for _, e := range t.Entries {
		b, err := json.Marshal(e)
		if err != nil {
			panic("kvcanary: internal error: " + err.Error())
		}
		lines = append(lines, "    "+string(b))
	}
	return fmt.Appendf(nil, "{\n  \"schema\": %q,\n  \"entries\": [\n%s\n  ]\n}\n", Schema, strings.Join(lines, ",\n"))
}
