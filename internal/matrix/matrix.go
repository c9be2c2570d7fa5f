// Package matrix measures the instrument: how often each protocol finds each
// fault of the lab, at what cost, what each defence does about each fault, and
// how often kvcanary cries wolf.
//
// A trial is one engine with other customers' traffic in its pages and one
// campaign against it over HTTP. Trials differ by seed and by nothing else.
package matrix

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// Options say what to measure.
type Options struct {
	Trials   int      // for each cell
	Faults   []string // "name" or "name:mode", or NoFault
	Defences []string // what each fault meets, one at a time, "name" or "name:mode"; none is an engine that has adopted nothing
	Probes   []Probe
	Best     bool // each fault only under the probe that finds it most often, of Probes
	Seed     uint64
	Lab      lab.Config     // of every trial; the zero value is lab.Small. Faults and defences are set by the trial
	Workers  int            // trials at the same time; 0 is two a processor, for a trial often waits
	Progress func(Progress) // called after each trial, one call at a time; may be nil
}

// Progress is how far a matrix is.
type Progress struct {
	Done, Trials   int // of all cells together
	Fault, Defence string
	Probe          string
}

// ErrTrial is wrapped by the error of a trial that could not be made: the lab
// refused its configuration or ended, which no seed may make it do.
var ErrTrial = errors.New("trial")

// cell is a Cell while its trials are made.
type cell struct {
	fault, defence string
	probe          Probe
	outcomes       []*outcome // by trial; nil for one that has not been made
}

// Run makes all trials of all cells. Cells whose probe is exact depend on the
// options alone, not on how many trials run at the same time. Cancelling ctx
// ends it early: the table then holds the trials that were made, and the error
// is the context's.
func Run(ctx context.Context, o Options) (*Table, error) {
	if o.Trials < 1 {
		return nil, fmt.Errorf("%d trials: at least 1 is needed", o.Trials)
	}
	if o.Lab.PageSize == 0 {
		o.Lab = lab.Small()
	}
	cells := o.cells()
	for i := range cells {
		cfg := o.config(&cells[i])
		if err := cfg.Validate(); err != nil {
			return nil, err
		}
	}
	err := o.run(ctx, cells)
	t := &Table{Schema: Schema, Trials: o.Trials, Seed: o.Seed, Cells: []Cell{}}
	for i := range cells {
		if c, ok := cells[i].summary(); ok {
			t.Cells = append(t.Cells, c)
		}
	}
	return t, err
}

// cells lists what is to be tried, fault by fault.
func (o Options) cells() []cell {
	defences := o.Defences
	if len(defences) == 0 {
		defences = []string{""}
	}
	var out []cell
	for _, fault := range o.Faults {
		probes := o.Probes
		if o.Best {
			probes = []Probe{best(fault, o.Probes)}
		}
		for _, defence := range defences {
			for _, p := range probes {
				out = append(out, cell{fault: fault, defence: defence, probe: p, outcomes: make([]*outcome, o.Trials)})
			}
		}
	}
	return out
}

// run makes the trials, cell by cell, on as many workers as there are.
func (o Options) run(ctx context.Context, cells []cell) error {
	workers := o.Workers
	if workers < 1 {
		workers = 2 * runtime.GOMAXPROCS(0)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := make(chan int)
	var mu sync.Mutex
	done := 0
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for job := range next {
				c, i := &cells[job/o.Trials], job%o.Trials
				got, err := trial(ctx, o.config(c), disguise(c.fault), c.probe, o.Seed+uint64(i))
				if err != nil {
					stop(fmt.Errorf("%w: %s under %s, seed %d: %w", ErrTrial, c.name(), c.probe.Name, o.Seed+uint64(i), err))
					continue
				}
				mu.Lock()
				done++
				c.outcomes[i] = &got
				if o.Progress != nil {
					o.Progress(Progress{done, len(cells) * o.Trials, c.fault, c.defence, c.probe.Name})
				}
				mu.Unlock()
			}
		})
	}
	for job := range len(cells) * o.Trials {
		if ctx.Err() != nil {
			break
		}
		next <- job
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}

func (c *cell) name() string {
	if c.defence == "" {
		return c.fault
	}
	return c.fault + " with " + c.defence
}
