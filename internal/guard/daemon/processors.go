package daemon

import (
	"context"
	"runtime"
	"runtime/metrics"
	"time"
)

// Processors are those that Go may use at a time. A goroutine that wakes has Go
// start a second thread in case there is more to do. For a client that waits for
// each answer there never is, and that thread is part of what it waits for
// (docs/performance.md has figures). So the guard uses one processor until work
// waits for another.
type Processors struct {
	// All has Go use all that there are, and says how many these are by now: the
	// share of a container may be changed while it runs.
	All func() int
	Use func(int) // has Go use so many
	// Waited is for how long goroutines, all added up, were ready to run and did
	// not, since the process began.
	Waited func() time.Duration
}

// GoProcessors are the runtime's. It is nil, and the runtime left alone, where
// GOMAXPROCS says how many there shall be.
func GoProcessors(getenv func(string) string) *Processors {
	if getenv("GOMAXPROCS") != "" {
		return nil
	}
	all := func() int {
		runtime.SetDefaultGOMAXPROCS() // from then on Go follows the container's share by itself
		return runtime.GOMAXPROCS(0)
	}
	return &Processors{All: all, Use: func(n int) { runtime.GOMAXPROCS(n) }, Waited: waited()}
}

// processorsLook is how often it is looked whether work waits.
const processorsLook = 50 * time.Millisecond

// run has the number of processors follow the work until ctx ends; then all are
// used again.
func (p *Processors) run(ctx context.Context) {
	if p == nil {
		return
	}
	most := p.All()
	if most < 2 {
		return
	}
	s := share{most: most, now: 1, patience: leastPatience}
	p.Use(s.now)
	defer p.All()
	tick := time.NewTicker(processorsLook)
	defer tick.Stop()
	last, from := p.Waited(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, all, used := time.Now(), p.Waited(), s.now
		switch n := s.next(float64(all-last) / float64(max(now.Sub(from), 1))); {
		case n == used:
		case n == s.most:
			s.most = p.All()
			s.now = s.most
		default:
			p.Use(n)
		}
		last, from = all, now
	}
}

// share decides how many processors are used. Whether fewer would do does not
// show while there are more: it is tried, and the less often the more often they
// would not.
type share struct {
	most, now int
	waiting   float64 // goroutines that were ready and did not run, at the mean of the last looks
	calm      int     // looks since work has waited, or since there was a change
	patience  int     // calm looks before fewer are tried
	trial     bool    // fewer are on trial
}

const (
	// crowded is how many waiting goroutines for each processor are worth twice
	// the processors. A machine that is busy with other things keeps them waiting
	// too, but not as long.
	crowded = 0.5
	// leastPatience is two seconds of looks, mostPatience about two minutes.
	leastPatience, mostPatience = 40, 64 * leastPatience
	// trialLooks is for how many looks fewer processors are on trial.
	trialLooks = 20
)

// next takes how many goroutines have waited, at the mean since the last look,
// and returns how many processors to use from now on.
func (s *share) next(waiting float64) int {
	s.waiting = (s.waiting + waiting) / 2
	s.calm++
	switch {
	case s.waiting > crowded*float64(s.now):
		s.calm = 0
		s.more()
	case s.trial && s.calm >= trialLooks:
		s.trial, s.patience = false, leastPatience
	case !s.trial && s.calm >= s.patience && s.now > 1:
		s.now, s.calm, s.trial = (s.now+1)/2, 0, true
	}
	return s.now
}

// more takes twice the processors. What was on trial has failed.
func (s *share) more() {
	if s.trial {
		s.trial, s.patience = false, min(2*s.patience, mostPatience)
	}
	s.now = min(2*s.now, s.most)
}

// waited adds up the runtime's histogram of how long goroutines were ready before
// they ran. The runtime measures one in eight of those times.
func waited() func() time.Duration {
	s := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	return func() time.Duration {
		metrics.Read(s)
		h := s[0].Value.Float64Histogram()
		var seconds float64
		for i, n := range h.Counts {
			if n > 0 {
				seconds += float64(n) * max(h.Buckets[i], 0) // the least it can have been
			}
		}
		return time.Duration(8 * seconds * float64(time.Second))
	}
}
