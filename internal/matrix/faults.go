package matrix

import (
	"slices"
	"strings"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// NoFault is the name of the row of an engine that is correct.
const NoFault = "none"

// AutoTruncate is the row of an engine that cuts prompts which are too long and
// says nothing: no fault of the lab, but a setting that engines have.
const AutoTruncate = "auto_truncate"

// lag is how long a one-sided write takes at most, as over a network that is
// busy: a client has the time to leave while it is under way.
const lag = 100 * time.Millisecond

// prefillRate is how many tokens prefill computes in a second where a client has to be
// able to leave while it does, as a large model's may.
const prefillRate = 40_000

// decodeRate is how many tokens of each answer decode computes in a second where a
// fault needs several under way at once. A quiet machine would end one before the
// next begins, as no large model does.
const decodeRate = 8_000

// abreastOnly are the faults that show only while answers are computed beside each other.
var abreastOnly = []string{"dirty_slot:recurrent", "row_skew", "stream_desync:parser"}

// timeLimit ends a request that a fault has made hang.
const timeLimit = 20 * time.Second

// Faults lists the engine without a fault in every disguise, and every fault of the lab in every mode.
func Faults() []string {
	out := []string{NoFault}
	for _, v := range innocents {
		out = append(out, NoFault+":"+v.mode)
	}
	return append(append(out, AutoTruncate), specs(lab.Faults)...)
}

// isInnocent says that every finding under this row is a false alarm.
func isInnocent(fault string) bool {
	name, _, _ := strings.Cut(fault, ":")
	return name == NoFault
}

// disguise is how an innocent endpoint looks.
func disguise(fault string) innocent {
	i := slices.IndexFunc(innocents, func(v innocent) bool { return NoFault+":"+v.mode == fault })
	if i < 0 {
		return innocent{}
	}
	return innocents[i]
}

// Defences lists every defence of the lab in every mode.
func Defences() []string { return specs(lab.Defences) }

func specs(table []lab.Switch) []string {
	var out []string
	for _, f := range table {
		if len(f.Modes) == 0 {
			out = append(out, f.Name)
		}
		for _, m := range f.Modes {
			out = append(out, f.Name+":"+m)
		}
	}
	return out
}

// Modes are the rows that a name stands for: itself, or every mode of a switch
// that has some. nil if all has no such name.
func Modes(name string, all []string) []string {
	var out []string
	for _, row := range all {
		if row == name || strings.HasPrefix(row, name+":") {
			out = append(out, row)
		}
	}
	return out
}

// late are the faults that are tried on an engine with one-sided writes, which
// take their time, and a free list that gives out the last page first: some show
// only there, the others hardly elsewhere.
var late = []string{"late_write", "stale_source", "double_owner"}

func oneSided(fault string) bool {
	if fault == "id_reuse:client" || fault == "id_reuse:trace_id" {
		return true
	}
	return slices.ContainsFunc(late, func(name string) bool { return Modes(name, Faults())[0] == fault })
}

// config is the engine of a cell's trials.
func (o Options) config(c *cell) lab.Config {
	cfg := o.Lab
	cfg.Workers = 1
	cfg.TimeLimit = timeLimit
	switch look := disguise(c.fault); {
	case look.config != nil:
		look.config(&cfg)
	case c.fault == AutoTruncate:
		cfg.AutoTruncate = true
	case !isInnocent(c.fault):
		cfg.Faults = []string{c.fault}
	}
	if c.defence != "" && c.defence != NoDefence {
		cfg.Defences = []string{c.defence}
	}
	if c.probe.Timed {
		cfg.PrefillRate = prefillRate
	}
	if c.probe.Timed && slices.Contains(abreastOnly, c.fault) {
		cfg.DecodeRate = decodeRate
	}
	if oneSided(c.fault) {
		cfg.OneSided, cfg.Lag, cfg.Policy, cfg.PageSize = true, lag, "lifo", 64
	}
	if c.fault == "id_reuse:metadata_slot" { // whose records take their time, however pages travel
		cfg.Lag, cfg.Policy, cfg.PageSize = lag, "lifo", 64
	}
	return cfg
}
