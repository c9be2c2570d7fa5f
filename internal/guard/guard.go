package guard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kvcanary/kvcanary/internal/guard/admit"
	"github.com/kvcanary/kvcanary/internal/guard/watch"
)

// Guard serves clients in front of one or several upstreams. It is an
// http.Handler; [NewServer] makes a server that is fit for it.
type Guard struct {
	setup atomic.Pointer[setup]
	held  atomic.Int64 // bytes of answers that are held back

	mu       sync.Mutex
	inFlight int
	byTenant map[string]int
	buffered int64 // bytes of bodies that are held
	draining bool
	empty    chan struct{} // closed when the last request has ended; nil unless draining
	cancels  map[*trip]context.CancelCauseFunc
	reloaded chan struct{} // closed and renewed by Reload, for Run
}

// setup is what a request is served by from its beginning to its end, whatever
// is reloaded meanwhile.
type setup struct {
	Options
	ring    ring
	finders sync.Pool  // of *finder, for Watch.Coders
	watches watch.Pool // likewise
}

func newSetup(o Options) (*setup, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.Limits = o.Limits.filled()
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Sleep == nil {
		o.Sleep = time.After
	}
	if len(o.Isolation.SaltKey) == 0 {
		o.Isolation.SaltKey = make([]byte, 32)
		if _, err := io.ReadFull(o.Random, o.Isolation.SaltKey); err != nil {
			return nil, fmt.Errorf("make a key for the tenants' salts: %w", err)
		}
	}
	s := &setup{Options: o}
	for _, u := range o.Upstreams {
		up, err := newUpstream(u, o.Limits, o.Now, o.Log)
		if err != nil {
			return nil, err
		}
		up.makeGate(&o)
		s.ring.ups = append(s.ring.ups, up)
		s.ring.byModel = s.ring.byModel || len(u.Models) > 0
	}
	return s, nil
}

// New makes a guard. It connects to nothing; [Guard.Run] looks after the
// upstreams.
func New(o Options) (*Guard, error) {
	s, err := newSetup(o)
	if err != nil {
		return nil, err
	}
	g := &Guard{byTenant: map[string]int{}, cancels: map[*trip]context.CancelCauseFunc{}, reloaded: make(chan struct{})}
	g.setup.Store(s)
	return g, nil
}

// Reload has requests that come from now on served by other options. Those
// under way end as they began. The limits of the upstreams are measured before
// that, as far as Admission.Timeout leaves time for it. If the options are not
// good, the error says why and nothing changes.
func (g *Guard) Reload(o Options) error {
	if len(o.Isolation.SaltKey) == 0 {
		o.Isolation.SaltKey = g.setup.Load().Isolation.SaltKey
	}
	s, err := newSetup(o)
	if err != nil {
		return err
	}
	s.measure(context.Background())
	old := g.setup.Swap(s)
	old.close()
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.reloaded)
	g.reloaded = make(chan struct{})
	return nil
}

func (s *setup) close() {
	for _, u := range s.ring.ups {
		u.shutDown()
	}
}

// each does something for all upstreams at once.
func (s *setup) each(do func(*upstream)) {
	var all sync.WaitGroup
	for _, u := range s.ring.ups {
		all.Go(func() { do(u) })
	}
	all.Wait()
}

// Run asks the upstreams again and again whether they are well and how much
// they hold, until ctx ends. Without it nothing is measured, and one that is
// not well is noticed by the requests that it fails.
func (g *Guard) Run(ctx context.Context) {
	for ctx.Err() == nil {
		g.mu.Lock()
		reloaded := g.reloaded
		g.mu.Unlock()
		within, cancel := context.WithCancel(ctx)
		stop := make(chan struct{})
		go func() {
			defer close(stop)
			select {
			case <-within.Done():
			case <-reloaded:
				cancel()
			}
		}()
		g.setup.Load().run(within)
		cancel()
		<-stop
	}
}

// Measure has the limits of all upstreams measured once: without it the first
// requests after a start come before anything is known to judge them by.
func (g *Guard) Measure(ctx context.Context) { g.setup.Load().measure(ctx) }

// Limit is how long a prompt an upstream may be sent, as it was measured last,
// for models that its engine does not list.
func (g *Guard) Limit(upstream string) admit.Limit {
	for _, u := range g.setup.Load().ring.ups {
		if u.Name == upstream {
			return u.gate.Limiter.Limit("")
		}
	}
	return admit.Limit{}
}

// run looks after the upstreams of a setup.
func (s *setup) run(ctx context.Context) {
	s.each(func(u *upstream) {
		var both sync.WaitGroup
		if !u.gate.Policy.Off {
			both.Go(func() { u.gate.Limiter.Run(ctx) })
		}
		for ctx.Err() == nil {
			u.look(ctx)
			select {
			case <-ctx.Done():
			case <-s.Sleep(s.Limits.HealthTime):
			}
		}
		both.Wait()
	})
}

// Why the guard cannot serve.
var (
	errDraining = errors.New("draining: no more requests are taken")
	errNobody   = errors.New("no upstream is up")
	errNoLimit  = errors.New("of no upstream that is up it is known how long a prompt it can hold")
)

// Ready says whether requests can be served; the error is for people.
func (g *Guard) Ready() error {
	g.mu.Lock()
	draining := g.draining
	g.mu.Unlock()
	s := g.setup.Load()
	switch {
	case draining:
		return errDraining
	case !slices.ContainsFunc(s.ring.ups, (*upstream).well):
		return errNobody
	case !slices.ContainsFunc(s.ring.ups, func(u *upstream) bool { return u.well() && u.judges(s.Now()) }):
		return errNoLimit
	}
	return nil
}

// State is what is the case now.
func (g *Guard) State() State {
	g.mu.Lock()
	st := State{InFlight: g.inFlight}
	g.mu.Unlock()
	st.Ready, st.HeldBytes = g.Ready() == nil, int(g.held.Load())
	for _, u := range g.setup.Load().ring.ups {
		l := u.gate.Limiter
		st.Upstreams = append(st.Upstreams, UpstreamState{Name: u.Name, Up: u.well(), Unjudged: u.gate.Policy.Off, Limit: l.Limit("").Tokens, At: l.Asked()})
	}
	return st
}

// errDrained is why a request is cut off that has not ended in time.
var errDrained = errors.New("the guard is shutting down")

// Drain takes no more requests and waits for those under way until ctx ends;
// then it cuts them off, with an error event where a stream can carry one, and
// says how many they were.
func (g *Guard) Drain(ctx context.Context) (cut int) {
	g.mu.Lock()
	g.draining = true
	if g.empty == nil {
		g.empty = make(chan struct{})
		if g.inFlight == 0 {
			close(g.empty)
		}
	}
	empty := g.empty
	g.mu.Unlock()
	select {
	case <-empty:
	case <-ctx.Done():
		g.mu.Lock()
		cut = len(g.cancels)
		for _, cancel := range g.cancels {
			cancel(errDrained)
		}
		g.mu.Unlock()
		<-empty
	}
	g.setup.Load().close()
	return cut
}

// enter counts a request in, unless there are too many or none are taken.
func (g *Guard) enter(t *trip, cancel context.CancelCauseFunc) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.draining:
		return errBusy(http.StatusServiceUnavailable, "draining", "this guard is shutting down: try again")
	case g.inFlight >= t.s.Limits.Concurrency:
		return errBusy(http.StatusServiceUnavailable, "overloaded", "too many requests are under way here: try again in a moment")
	}
	g.inFlight++
	g.cancels[t] = cancel
	return nil
}

func (g *Guard) leave(t *trip) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.buffered -= t.reserved
	if t.seated {
		if g.byTenant[t.tenant.Name]--; g.byTenant[t.tenant.Name] == 0 {
			delete(g.byTenant, t.tenant.Name)
		}
	}
	delete(g.cancels, t)
	if g.inFlight--; g.inFlight == 0 && g.empty != nil {
		close(g.empty)
	}
}

// seat counts a request in among its tenant's.
func (g *Guard) seat(t *trip) error {
	limit := t.tenant.Concurrency
	if limit == 0 {
		limit = t.s.Limits.TenantConcurrency
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if limit > 0 && g.byTenant[t.tenant.Name] >= limit {
		return errBusy(http.StatusTooManyRequests, "busy",
			"this key has "+thousands(int64(limit))+" requests under way, the most it may have at once: try again when one has ended")
	}
	g.byTenant[t.tenant.Name]++
	t.seated = true
	return nil
}

// release gives back what was set aside for a body.
func (g *Guard) release(t *trip) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.buffered -= t.reserved
	t.reserved = 0
}

// reserve sets n more bytes aside for a body that is held.
func (g *Guard) reserve(t *trip, n int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.buffered+n > t.s.Limits.Buffered {
		return errBusy(http.StatusServiceUnavailable, "overloaded", "too many large requests are under way here: try again in a moment")
	}
	g.buffered += n
	t.reserved += n
	return nil
}

// ServeHTTP implements http.Handler.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	t := &trip{g: g, s: g.setup.Load(), w: w, r: r, ctx: ctx, rc: http.NewResponseController(w)}
	t.serve(cancel)
}

// NewServer makes a server that is fit for a guard: it gives slow and hostile
// clients no more than the limits.
func NewServer(h http.Handler, l Limits, log *slog.Logger) *http.Server {
	l = l.filled()
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: l.HeaderTime,
		IdleTimeout:       l.IdleTime,
		MaxHeaderBytes:    l.HeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		// 100 streams of a connection at once bound what a client can have the
		// server do by opening and resetting them (CVE-2023-44487).
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 100, MaxReadFrameSize: 64 << 10},
	}
}

// newID makes a request's name: one that no client chose and none can guess.
func newID(random io.Reader) (string, error) {
	const hexDigits = "0123456789abcdef"
	var raw [16]byte
	if _, err := io.ReadFull(random, raw[:]); err != nil {
		return "", err
	}
	id := make([]byte, 0, 36)
	id = append(id, "kvg-"...)
	for _, b := range raw {
		id = append(id, hexDigits[b>>4], hexDigits[b&15])
	}
	return string(id), nil
}
