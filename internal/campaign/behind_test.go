package campaign

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// slowTarget takes a second for each answer and counts those under way.
type slowTarget struct {
	fakeTarget
	mu          sync.Mutex
	under, most int
}

func (s *slowTarget) Do(ctx context.Context, r wire.Request) *wire.Answer {
	s.mu.Lock()
	s.under++
	s.most = max(s.most, s.under)
	s.mu.Unlock()
	start := time.Now()
	time.Sleep(time.Second)
	s.mu.Lock()
	s.under--
	s.mu.Unlock()
	a := s.fakeTarget.Do(ctx, r)
	a.Start, a.End = start, time.Now()
	return a
}

// A send that is to come behind others starts the moment that the last of them
// is over, together with those after it; its prompt does not take any time then.
func TestSendsBehindOthersWaitForThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		batch := sends(5, 300)
		batch[2].Behind, batch[4].Behind = true, true
		plan := &script{batches: [][]probe.Send{batch}}
		target := &slowTarget{}
		cfg := config(&target.fakeTarget, plan.protocol("p"))
		cfg.Client, cfg.Concurrency = target, 4
		if res := mustRun(t, cfg); res.Spent.Exchanges != 5 {
			t.Fatalf("%+v", res.Spent)
		}
		if target.most != 2 {
			t.Errorf("%d at once, want 2", target.most)
		}
		done := plan.seen[0]
		for i, after := range []int{-1, -1, 0, 1, 3} {
			if done[i].Seq != i {
				t.Errorf("exchange %d comes back as number %d", done[i].Seq, i)
			}
			if after >= 0 && !done[i].Answer.Start.Equal(done[after].Answer.End) {
				t.Errorf("exchange %d starts at %v, what it is behind ended at %v", i, done[i].Answer.Start, done[after].Answer.End)
			}
		}
	})
}
