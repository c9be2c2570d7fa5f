package admit

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kvcanary/kvcanary/internal/engine"
)

// Source is a worker that can be asked what it holds.
type Source struct {
	URL    string // base URL, with or without /v1
	Key    string // "" for none
	Engine string // name of a row of [engine.All]; "" finds out
	Client *http.Client
}

// LimiterOptions are what a [Limiter] needs. All but Sources, Given and Margin
// must be set.
type LimiterOptions struct {
	Upstream string // its name, for the log
	Sources  []Source
	Given    Given
	Margin   int           // tokens kept free below every limit
	Every    time.Duration // how often to ask again
	Timeout  time.Duration // what one round of questions may take
	Now      func() time.Time
	Log      *slog.Logger
}

// Limiter knows the limit of one upstream: what its workers say when they are
// asked, again and again, and what the operator states. It never guesses: a
// worker that stops answering is taken at its last word, which gets old, and
// one that has never said how large its pool is leaves the limit unknown.
type Limiter struct {
	o     LimiterOptions
	nudge chan struct{}

	measuring sync.Mutex // held while a round of questions is under way
	state     atomic.Pointer[measured]
}

// measured is the outcome of the rounds so far. It does not change.
type measured struct {
	workers  []worker
	limit    Limit            // of whatever model
	unlisted Limit            // of a model that no worker lists
	limits   map[string]Limit // of those that some list
	answered bool             // all workers answered in the last round
}

// worker is the last word of one source.
type worker struct {
	facts   engine.Facts // Engine is empty where it never spoke
	at      time.Time
	trouble string // why the last question went without an answer
}

// NewLimiter returns a limiter that has not asked yet: it knows what is given.
func NewLimiter(o LimiterOptions) *Limiter {
	l := &Limiter{o: o, nudge: make(chan struct{}, 1)}
	l.state.Store(l.derive(make([]worker, len(o.Sources))))
	return l
}

// Run asks at once and then on schedule, until ctx ends.
func (l *Limiter) Run(ctx context.Context) {
	tick := time.NewTicker(l.o.Every)
	defer tick.Stop()
	for {
		l.Measure(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-l.nudge:
		}
	}
}

// Again has [Limiter.Run] ask soon, not at the next time only: for an upstream
// that could not be reached, or refused what should have fitted. It may have
// been started anew, with another pool.
func (l *Limiter) Again() {
	select {
	case l.nudge <- struct{}{}:
	default:
	}
}

// Limit is the limit that holds for a model; for "", the one that holds whatever
// the model is.
func (l *Limiter) Limit(model string) Limit {
	m := l.state.Load()
	if model == "" {
		return m.limit
	}
	if of, ok := m.limits[model]; ok {
		return of
	}
	return m.unlisted
}

// Answered reports whether all workers said their limits when they were asked
// last. It is true where there is none to ask.
func (l *Limiter) Answered() bool { return l.state.Load().answered }

// Asked is the time of the oldest word that the limit relies on; zero where a
// worker has said nothing yet, or none is asked.
func (l *Limiter) Asked() time.Time { return l.state.Load().at() }

// Engine is the engine that the workers turned out to be; "" while that is not
// known.
func (l *Limiter) Engine() string {
	workers := l.state.Load().workers
	for i := range workers { // without a copy of the facts for each request
		if name := workers[i].facts.Engine; name != "" {
			return name
		}
	}
	return ""
}

// Measure asks every worker once, all at the same time. What is found holds
// from then on.
func (l *Limiter) Measure(ctx context.Context) {
	l.measuring.Lock()
	defer l.measuring.Unlock()
	before := l.state.Load()
	if len(before.workers) == 0 {
		return
	}
	within, cancel := context.WithTimeout(ctx, l.o.Timeout)
	defer cancel()
	workers := slices.Clone(before.workers)
	var asked sync.WaitGroup
	for i, s := range l.o.Sources {
		asked.Go(func() { workers[i] = l.ask(within, s, before.workers[i]) })
	}
	asked.Wait()
	if ctx.Err() != nil {
		return // the guard stops: what was not answered says nothing
	}
	after := l.derive(workers)
	l.state.Store(after)
	l.tell(before, after)
}

// ask has one worker speak. One that says less than it has said, as an engine
// does whose metrics are away for a moment, is taken at its earlier word.
func (l *Limiter) ask(ctx context.Context, s Source, last worker) worker {
	at := l.o.Now()
	f, trouble := engine.Examine(ctx, s.Client, s.URL, s.Key, s.Engine)
	switch {
	case trouble == "" && f.Engine == "":
		trouble = "it does not answer like any engine that is known"
		if s.Engine != "" {
			trouble = "it does not answer like " + s.Engine
		}
	case trouble == "" && telling(last.facts) && !telling(f):
		trouble = "it does not say any more how large its KV pool is"
	}
	if trouble != "" {
		last.trouble = trouble
		return last
	}
	return worker{facts: f, at: at}
}

// telling reports whether facts make a limit by themselves.
func telling(f engine.Facts) bool {
	return Of([]engine.Facts{f}, Given{}, 0, "", time.Time{}).Tokens > 0
}

// derive makes limits of what the workers said.
func (l *Limiter) derive(workers []worker) *measured {
	m := &measured{workers: workers, limits: map[string]Limit{}, answered: true}
	facts := make([]engine.Facts, len(workers))
	var models []string
	for i, w := range workers {
		facts[i] = w.facts
		m.answered = m.answered && w.trouble == "" && w.facts.Engine != ""
		for _, one := range w.facts.Models {
			models = append(models, one.ID)
		}
	}
	at := m.at()
	m.limit = Of(facts, l.o.Given, l.o.Margin, "", at)
	m.unlisted = Of(facts, l.o.Given, l.o.Margin, "\x00", at)
	for _, model := range models {
		m.limits[model] = Of(facts, l.o.Given, l.o.Margin, model, at)
	}
	return m
}

// at is the time of the oldest word.
func (m *measured) at() time.Time {
	if len(m.workers) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(m.workers, func(a, b worker) int { return a.at.Compare(b.at) }).at
}

// tell logs what has changed.
func (l *Limiter) tell(before, after *measured) {
	for i, w := range after.workers {
		if was := before.workers[i].trouble; w.trouble != was && w.trouble != "" {
			l.o.Log.Warn("cannot measure the limit", "upstream", l.o.Upstream, "worker", i, "why", w.trouble, "last_measured", w.at)
		} else if was != "" && w.trouble == "" {
			l.o.Log.Info("the limit can be measured again", "upstream", l.o.Upstream, "worker", i)
		}
	}
	if before.limit.Tokens == after.limit.Tokens && before.limit.Source == after.limit.Source {
		return
	}
	level := slog.LevelInfo
	if cmp.Compare(after.limit.Tokens, before.limit.Tokens) < 0 {
		level = slog.LevelWarn
	}
	l.o.Log.Log(context.Background(), level, "the limit has changed", "upstream", l.o.Upstream,
		"tokens", after.limit.Tokens, "before", before.limit.Tokens, "source", after.limit.Source)
}
