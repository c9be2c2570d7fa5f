package daemon

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// after is how many processors are used after so many looks that all show the
// same.
func (s *share) after(looks int, waiting float64) int {
	for range looks {
		s.next(waiting)
	}
	return s.now
}

func TestProcessorsFollowTheWork(t *testing.T) {
	s := share{most: 8, now: 1, patience: leastPatience}
	if got := s.after(1000, 0.2); got != 1 {
		t.Errorf("%d processors for a client that hardly waits", got)
	}
	if got := s.after(8, 20); got != 8 {
		t.Errorf("%d processors of 8 for a crowd", got)
	}
	if got := s.after(10*leastPatience, 0); got != 1 {
		t.Errorf("%d processors are used when there is nothing to do", got)
	}
}

// Work that needs two processors and waits for nothing while it has them: one is
// tried ever less often.
func TestFewerAreTriedEverLessOften(t *testing.T) {
	s := share{most: 2, now: 2, patience: leastPatience}
	var tried []int
	for look := range 20 * mostPatience {
		waiting := 0.0
		if s.now == 1 {
			waiting = 5
		}
		if before := s.now; s.next(waiting) < before {
			tried = append(tried, look)
		}
	}
	for i := 2; i < len(tried); i++ {
		if before, gap := tried[i-1]-tried[i-2], tried[i]-tried[i-1]; gap < before || gap > mostPatience+trialLooks {
			t.Errorf("one processor was tried at looks %v", tried)
		}
	}
	if len(tried) < 10 || len(tried) > 30 {
		t.Errorf("one processor was tried %d times", len(tried))
	}
}

func TestProcessorsStayWithinBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := share{most: rapid.IntRange(1, 96).Draw(t, "most"), now: 1, patience: leastPatience}
		for _, w := range rapid.SliceOfN(rapid.Float64Range(0, 200), 0, 500).Draw(t, "waiting") {
			if n := s.next(w); n < 1 || n > s.most {
				t.Fatalf("%d processors of %d", n, s.most)
			}
		}
		for range 20 { // whatever was before
			s.next(1e6)
		}
		if s.now != s.most {
			t.Fatalf("%d processors of %d for a crowd", s.now, s.most)
		}
	})
}

func TestProcessorsAreAllUsedAgainAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used []int
		var there, waited atomic.Int64
		there.Store(4)
		p := &Processors{
			All:    func() int { used = append(used, int(there.Load())); return used[len(used)-1] },
			Use:    func(n int) { used = append(used, n) },
			Waited: func() time.Duration { return time.Duration(waited.Add(int64(10 * processorsLook))) },
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { p.run(ctx) })
		time.Sleep(processorsLook + processorsLook/2)
		there.Store(3) // the container has been given less meanwhile
		time.Sleep(2 * processorsLook)
		there.Store(6) // and more
		cancel()
		running.Wait()
		if want := []int{4, 1, 2, 3, 6}; !slices.Equal(used, want) {
			t.Errorf("used %v processors, want %v", used, want)
		}
	})
}

func TestProcessorsAreLeftAloneWhereTheirNumberIsSet(t *testing.T) {
	if p := GoProcessors(func(string) string { return "3" }); p != nil {
		t.Error("GOMAXPROCS is set, and not kept to")
	}
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	p := GoProcessors(func(string) string { return "" })
	p.Use(1)
	if n := p.All(); n != runtime.GOMAXPROCS(0) || n < 1 {
		t.Errorf("%d processors, and %d are used", n, runtime.GOMAXPROCS(0))
	}
	(*Processors)(nil).run(t.Context())
}

// More goroutines than processors, none of which gives way, wait for each other.
func TestWaitingShows(t *testing.T) {
	sum := waited()
	before := sum()
	var all sync.WaitGroup
	var stop atomic.Bool
	for range 4 * runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for !stop.Load() {
				runtime.Gosched()
			}
		})
	}
	for sum()-before < 100*time.Millisecond {
		time.Sleep(time.Millisecond)
	}
	stop.Store(true)
	all.Wait()
}
