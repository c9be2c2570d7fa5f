// Package explore finds out what the handoff can do: it drives the machines of
// package handoff, the same code that serves, through every order in which
// things may happen, and looks for one that breaks an invariant.
//
// The world around the machines is a few parts: links that keep order or do not,
// clients, pages that remember who wrote them, writes that land when they like,
// processes that die. A state is a value of each part. What an operation makes
// of a part is found out once, by running the machine, and remembered; from then
// on a state costs a few look-ups.
//
// The search is breadth first, so a counterexample is a shortest one. States are
// told apart by 128-bit fingerprints.
package explore

import (
	"context"
	"time"
)

// Options are how to explore.
type Options struct {
	Workers int         // goroutines; 0 for one
	Limit   int         // states to stop at; 0 for none
	Only    []Invariant // what to look at; none: I0 to I8
	Survey  bool        // go on after something is broken, and find a shortest way to break each of Only
	Now     func() time.Time
	// Progress, if set, is called often.
	Progress func(Progress)
}

// Progress is how far an exploration is.
type Progress struct {
	States      int
	Transitions int64
	Depth       int
	Elapsed     time.Duration
}

// Result is what came of exploring a setup.
type Result struct {
	Setup       string  `json:"setup"`
	States      int     `json:"states"`
	Transitions int64   `json:"transitions"`
	Depth       int     `json:"depth"` // steps to the states farthest away
	Ends        int64   `json:"ends"`  // states in which nothing more happens
	Values      int     `json:"values"`
	Seconds     float64 `json:"seconds"`
	PerSecond   float64 `json:"states_per_second"`
	// Doubt is the power of two that the chance of any two states having been
	// taken for one is less than.
	Doubt int `json:"doubt_log2"`
	// Complete says that all that can happen has been seen.
	Complete bool `json:"complete"`
	// Endless says why a run without more faults might not end, which I5 relies
	// on; empty if all do, or if not all has been seen.
	Endless        string          `json:"endless,omitempty"`
	Counterexample *Counterexample `json:"counterexample,omitempty"`
	// Survey has a shortest way to break each of the invariants that can be broken.
	Survey map[Invariant]Counterexample `json:"survey,omitempty"`
}

// Explore explores a setup until everything has been seen, an invariant is
// broken, the limit is reached or ctx ends.
func Explore(ctx context.Context, setup Setup, o Options) (Result, error) {
	m, err := NewModel(setup, o.Only...)
	if err != nil {
		return Result{}, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := newSearch(ctx, m, max(1, o.Workers), o.Now)
	s.limit, s.survey, s.progress = o.Limit, o.Survey, o.Progress
	complete := s.run()
	r := Result{
		Setup: setup.Name, States: s.states, Transitions: s.transitions, Depth: s.depth, Ends: s.ends,
		Values: s.store.size(), Seconds: o.Now().Sub(s.began).Seconds(), Doubt: doubt(s.states), Complete: complete,
	}
	if r.Seconds > 0 {
		r.PerSecond = float64(r.States) / r.Seconds
	}
	if complete {
		r.Endless = s.runsEnd()
	}
	for i := range invariants {
		if s.found.set&(1<<i) == 0 {
			continue
		}
		c := s.counterexample(s.found.by[i])
		if r.Counterexample == nil {
			r.Counterexample = &c
		}
		if o.Survey {
			if r.Survey == nil {
				r.Survey = map[Invariant]Counterexample{}
			}
			r.Survey[i] = c
		}
	}
	return r, nil
}

func (s *search) counterexample(f finding) Counterexample {
	path, atEnd := s.path(f.at), f.via == endVia
	if !atEnd {
		path = append(path, f.via)
	}
	return s.model.replay(path, atEnd)
}
