package matrix

import (
	"slices"

	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/probe"
)

// Probe is one column: a protocol as it is tried, and what counts as seen.
type Probe struct {
	Name        string
	Protocol    probe.Protocol
	Oracles     []oracle.Oracle
	Pairs       int // of straddle; 0 leaves it to the protocol
	Concurrency int // how many exchanges are under way at once
	// Timed says that some leave at a moment, or that several are under way at
	// once: the outcome of a trial depends on the machine, too, and prefill takes
	// as long as that of a large model.
	Timed bool
}

// abreast are the protocols that need requests beside each other to show anything.
var abreast = []string{"tenants", "churn", "ids", "interleave"}

// leaving are those of the others in which some leave at a moment.
var leaving = []string{"prefix"}

// concurrency is that of a run by default.
const concurrency = 4

// Probes are the columns: the two published scripts, which look for their
// secret and for nothing else, and kvcanary's protocols.
func Probes() []Probe {
	leakOnly := slices.DeleteFunc(oracle.All(), func(o oracle.Oracle) bool { return o.Name != "leak" })
	out := []Probe{
		{"published script", probe.Classic(), leakOnly, 0, 1, false},
		{"second script", probe.SecretStraddle(), leakOnly, 1, 1, false},
	}
	for _, p := range probe.All() {
		at := 1
		if slices.Contains(abreast, p.Name) {
			at = concurrency
		}
		out = append(out, Probe{p.Name, p, oracle.All(), 1, at, at > 1 || slices.Contains(leaving, p.Name)})
	}
	return out
}
