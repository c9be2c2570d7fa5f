// Package matrix measures the instrument: how often each protocol finds each
// fault of the lab, at what cost, and how often it cries wolf.
//
// A trial is one engine with other customers' traffic in its pages and one
// campaign against it over HTTP. Trials differ by seed and by nothing else.
package matrix

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/kvcanary/kvcanary/internal/lab"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/stats"
)

// Schema names the JSON of a Table.
const Schema = "kvcanary.matrix/v1"

// NoFault is the name of the row of an engine that is correct.
const NoFault = "none"

// Options say what to measure.
type Options struct {
	Trials  int      // for each cell
	Faults  []string // "name" or "name:mode", or NoFault
	Probes  []Probe
	Seed    uint64                               // of the first trial
	Lab     lab.Config                           // of every trial; the zero value is lab.Small. Faults are set by the trial
	Workers int                                  // trials at the same time; 0 is one a processor
	Done    func(fault, probe string, trial int) // called after each trial, one call at a time; may be nil
}

// Probe is one column: a protocol as it is tried, and what counts as seen.
type Probe struct {
	Name     string
	Protocol probe.Protocol
	Oracles  []oracle.Oracle
	Pairs    int // of straddle; 0 leaves it to the protocol
}

// Probes are the columns: the two published scripts, which look for their
// secret and for nothing else, and kvcanary's protocols.
func Probes() []Probe {
	leakOnly := slices.DeleteFunc(oracle.All(), func(o oracle.Oracle) bool { return o.Name != "leak" })
	out := []Probe{
		{"published script", probe.Classic(), leakOnly, 0},
		{"second script", probe.SecretStraddle(), leakOnly, 1},
	}
	for _, p := range probe.All() {
		out = append(out, Probe{p.Name, p, oracle.All(), 1})
	}
	return out
}

// Modes are the rows that a name stands for: itself, or a fault's every mode.
func Modes(name string) []string {
	var out []string
	for _, row := range Faults() {
		if row == name || strings.HasPrefix(row, name+":") {
			out = append(out, row)
		}
	}
	return out
}

// Faults lists every fault of the lab that trials can show in every mode, and the engine without one.
func Faults() []string {
	out := []string{NoFault}
	for _, f := range lab.Faults {
		if f.OneSided {
			continue // trials run within one process, where pages are messages
		}
		if len(f.Modes) == 0 {
			out = append(out, f.Name)
		}
		for _, m := range f.Modes {
			out = append(out, f.Name+":"+m)
		}
	}
	return out
}

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
	Fault  string `json:"fault"`
	Probe  string `json:"probe"`
	Trials int    `json:"trials"`
	Found  Rate   `json:"found"` // any finding
	Leak   Rate   `json:"leak"`  // a leak or misroute proven
	Unsure int    `json:"inconclusive"`
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

// Run makes all trials of all cells. The table depends on the options alone,
// not on how many trials run at the same time.
func Run(ctx context.Context, o Options) (*Table, error) {
	if o.Trials < 1 {
		return nil, fmt.Errorf("%d trials: at least 1 is needed", o.Trials)
	}
	if o.Lab.PageSize == 0 {
		o.Lab = lab.Small()
	}
	t := &Table{Schema: Schema, Trials: o.Trials, Seed: o.Seed}
	for _, fault := range o.Faults {
		for _, p := range o.Probes {
			outcomes, err := o.cell(ctx, fault, p)
			if err != nil {
				return nil, fmt.Errorf("%s under %s: %w", fault, p.Name, err)
			}
			t.Cells = append(t.Cells, summarize(fault, p.Name, outcomes))
		}
	}
	return t, nil
}

func (o Options) cell(ctx context.Context, fault string, p Probe) ([]outcome, error) {
	workers := o.Workers
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	outcomes := make([]outcome, o.Trials)
	errs := make([]error, o.Trials)
	next := make(chan int)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range next {
				outcomes[i], errs[i] = trial(ctx, o.Lab, fault, p, o.Seed+uint64(i))
				if o.Done != nil {
					mu.Lock()
					o.Done(fault, p.Name, i)
					mu.Unlock()
				}
			}
		})
	}
	for i := range o.Trials {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("seed %d: %w", o.Seed+uint64(i), err)
		}
	}
	return outcomes, nil
}

func summarize(fault, name string, outcomes []outcome) Cell {
	c := Cell{Fault: fault, Probe: name, Trials: len(outcomes)}
	var requests, tokens []int
	spent, found, leaks := 0, 0, 0
	for _, t := range outcomes {
		requests, tokens = append(requests, t.requests), append(tokens, t.tokens)
		spent += t.tokens
		if t.found {
			found++
		}
		if t.leak {
			leaks++
		}
		if t.unsure {
			c.Unsure++
		}
	}
	c.Found, c.Leak = rate(found, len(outcomes)), rate(leaks, len(outcomes))
	c.Requests, c.PromptTokens = median(requests), median(tokens)
	each := float64(spent) / float64(len(outcomes))
	c.Until = Until{over(each, c.Found.Rate), over(each, c.Found.Upper), over(each, c.Found.Lower)}
	return c
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
