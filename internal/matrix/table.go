package matrix

import (
	"slices"

	"github.com/kvcanary/kvcanary/internal/diagnose"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/stats"
)

// Schema names the JSON of a Table.
const Schema = "kvcanary.matrix/v1"

// Table is what was measured. JSON names are a contract.
type Table struct {
	Schema string `json:"schema"`
	Trials int    `json:"trials"`
	Seed   uint64 `json:"seed"`
	Cells  []Cell `json:"cells"`
}

// Cell is one fault under one probe. Without a fault its rates are those of
// false alarms.
type Cell struct {
	Fault   string `json:"fault"`
	Defence string `json:"defence,omitempty"` // the one that the engine has adopted, if any
	Probe   string `json:"probe"`
	Trials  int    `json:"trials"` // that were made
	// Exact says that the same seeds give the same cell on any machine: one
	// exchange at a time, nobody who leaves, and no writes that take their own
	// time. Else the cell is a sample of what the interval says.
	Exact  bool `json:"exact"`
	Found  Rate `json:"found"` // any finding
	Leak   Rate `json:"leak"`  // a leak or misroute proven
	Unsure int  `json:"inconclusive"`
	// Crossed counts the trials in which something of one request reached another.
	Crossed int `json:"crossed"`
	// Kinds counts the trials that have a finding of each kind.
	Kinds map[oracle.Kind]int `json:"kinds,omitempty"`
	// Signs counts the trials by what a diagnosis goes by.
	Signs map[string]int `json:"signs,omitempty"`
	// Failed counts the trials in which a request, of the prober or of another
	// customer, ended with an error of the engine's.
	Failed int `json:"failed,omitempty"`
	// Verdict says what the defence does about the fault, if there is one.
	Verdict Verdict `json:"verdict,omitempty"`
	// Cost of a trial up to its first finding, or to its end, tokens and requests.
	Requests     int `json:"requests_median"`
	PromptTokens int `json:"prompt_tokens_median"`
	// Until is how many prompt tokens it takes on average until a finding, if
	// trials are repeated until there is one.
	Until Until `json:"prompt_tokens_until_found"`
}

// Rate is a share of trials with its exact 95 % interval.
type Rate struct {
	Count int     `json:"count"`
	Rate  float64 `json:"rate"`
	Lower float64 `json:"lower"`
	Upper float64 `json:"upper"`
}

// Until is prompt tokens spent a trial divided by the rate of finding; the
// bounds take the rate's. Nil where that rate is 0: never, or no bound.
type Until struct {
	Mean  *float64 `json:"mean"`
	Lower *float64 `json:"lower"`
	Upper *float64 `json:"upper"`
}

const confidence = 0.95

// summary sums up the trials that were made; ok is false if there are none.
func (c *cell) summary() (out Cell, ok bool) {
	made := slices.DeleteFunc(slices.Clone(c.outcomes), func(o *outcome) bool { return o == nil })
	out = Cell{
		Fault: c.fault, Defence: c.defence, Probe: c.probe.Name, Trials: len(made),
		Exact: !c.probe.Timed && !oneSided(c.fault),
	}
	if len(made) == 0 {
		return out, false
	}
	out.Signs = map[string]int{}
	var requests, tokens []int
	spent, found, leaks := 0, 0, 0
	for _, t := range made {
		requests, tokens = append(requests, t.requests), append(tokens, t.tokens)
		spent += t.tokens
		found += count(len(t.kinds) > 0)
		leaks += count(t.leak())
		out.Crossed += count(t.crossed())
		out.Unsure += count(t.unsure)
		out.Failed += count(t.failed > 0)
		out.Signs[t.signs.String()]++
		for _, k := range t.kinds {
			if out.Kinds == nil {
				out.Kinds = map[oracle.Kind]int{}
			}
			out.Kinds[k]++
		}
	}
	out.Found, out.Leak = rate(found, len(made)), rate(leaks, len(made))
	out.Requests, out.PromptTokens = median(requests), median(tokens)
	each := float64(spent) / float64(len(made))
	out.Until = Until{over(each, out.Found.Rate), over(each, out.Found.Upper), over(each, out.Found.Lower)}
	if c.defence != "" {
		out.Verdict = verdict(made)
	}
	return out, true
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func over(a, b float64) *float64 {
	if b == 0 {
		return nil
	}
	q := a / b
	return &q
}

func rate(k, n int) Rate {
	lower, upper := stats.Interval(k, n, confidence)
	return Rate{k, float64(k) / float64(n), lower, upper}
}

func median(v []int) int {
	slices.Sort(v)
	return v[len(v)/2]
}

// Likelihoods is the table that diagnoses rest on: the cells of kvcanary's own
// protocols on engines with a fault and no defence.
func (t *Table) Likelihoods() *diagnose.Table {
	out := &diagnose.Table{Schema: diagnose.Schema}
	for _, c := range t.Cells {
		if isInnocent(c.Fault) || c.Defence != "" || !slices.ContainsFunc(probe.All(), func(p probe.Protocol) bool { return p.Name == c.Probe }) {
			continue
		}
		out.Entries = append(out.Entries, diagnose.Entry{Fault: c.Fault, Protocol: c.Probe, Trials: c.Trials, Seen: c.Signs})
	}
	return out
}
