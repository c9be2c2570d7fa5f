package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/kvcanary/kvcanary/internal/guard"
	"github.com/kvcanary/kvcanary/internal/guard/admit"
	"github.com/kvcanary/kvcanary/internal/guard/overlap"
	"github.com/kvcanary/kvcanary/internal/guard/request"
	"github.com/kvcanary/kvcanary/internal/receipt"
)

// Options are what a daemon needs of the world. All must be set but Hangup.
type Options struct {
	File    string // that the setup was loaded from
	Getenv  func(string) string
	Version string           // of kvcanary
	Log     io.Writer        // takes the log
	Now     func() time.Time // for the log's lines it is the system's
	Random  io.Reader        // of ids; safe for concurrent use
	Hangup  <-chan os.Signal // has the file read again at once; nil for never
	// Tick has the file looked at; it is closed by nobody.
	Tick <-chan time.Time
	// Seal opens the log of receipts in a folder and the key that signs them, and
	// makes them on first use.
	Seal func(dir, keyFile string) (*receipt.Sealer, error)
	// Processors has their number follow the work; nil leaves it as it is.
	Processors *Processors
}

// Daemon is a guard that serves.
type Daemon struct {
	o       Options
	setup   atomic.Pointer[Setup]
	guard   *guard.Guard
	metrics *guard.Metrics
	log     *slog.Logger
	keeper  *guard.Keeper
	tracer  *guard.Tracer
	planter *planter       // nil for none
	overlap *overlap.Index // nil for none

	refused [32]byte // digest of the file that was refused last
	seen    [32]byte // digest at the last look
}

// Run serves until ctx ends, and then until the requests under way have ended
// or the drain time is over. An error says that it could not begin or go on.
func Run(ctx context.Context, s *Setup, o Options) error {
	d := &Daemon{o: o, log: newLog(o.Log, s.Config.Log)}
	d.setup.Store(s)
	d.seen = s.digest
	main, side, err := d.listen()
	if err != nil {
		return err
	}
	defer closeAll(main, side)
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	d.metrics = guard.NewMetrics(registry, labels(s), d.state, o.Now)
	if err := d.sinks(s); err != nil {
		return err
	}
	defer d.closeSinks()
	if d.planter, err = newPlanter(s, o.Random); err != nil {
		return err
	}
	if d.overlap, err = newOverlap(s, o); err != nil {
		return err
	}
	if d.guard, err = guard.New(d.options(s)); err != nil {
		return fmt.Errorf("start the guard: %w", err)
	}
	d.metrics.Reloaded(true, o.Now())
	return d.serve(ctx, main, side, registry)
}

// serve runs everything that a guard is made of, and returns when all of it has
// ended.
func (d *Daemon) serve(ctx context.Context, main, side net.Listener, registry *prometheus.Registry) error {
	s := d.setup.Load()
	health := d.health(registry)
	var handler http.Handler = d.guard
	if s.Config.Listen.Health {
		handler = beside(health, d.guard)
	}
	server := guard.NewServer(handler, s.Options.Limits, d.log)
	sideServer := &http.Server{Handler: health, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute, ErrorLog: server.ErrorLog}
	running, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	failed := make(chan error, 2)
	all.Go(func() { failed <- d.accept(server, main) })
	if side != nil {
		all.Go(func() { failed <- sideServer.Serve(side) })
	}
	all.Go(func() { d.guard.Run(running) })
	all.Go(func() { d.watch(running) })
	all.Go(func() { d.o.Processors.run(running) })
	d.measure(ctx)
	if d.planter != nil {
		all.Go(func() { d.planter.keep(running, d) })
	}
	d.announce(main, side)
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		err = fmt.Errorf("the listener has failed: %w", err)
	}
	d.drain(server)
	// The other listener shows until the end that this one drains.
	if bad := sideServer.Close(); bad != nil && err == nil {
		err = bad
	}
	return err
}

// accept serves clients, by TLS where the setup says so.
func (d *Daemon) accept(server *http.Server, l net.Listener) error {
	if d.setup.Load().TLS == nil {
		return server.Serve(l)
	}
	// The configuration is that of the moment: a renewed certificate is shown
	// from the next connection on.
	server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return d.setup.Load().TLS, nil
	}}
	return server.ServeTLS(l, "", "")
}

// lastWrites is how long the last bytes of answers may take to leave after
// their requests have ended, or were cut off.
const lastWrites = 2 * time.Second

// drain takes no more connections and ends what is under way.
func (d *Daemon) drain(server *http.Server) {
	limit := d.setup.Load().Config.Limits.DrainTime
	d.log.Info("draining", "for_at_most", limit.String())
	ending, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	closed, giveUp := context.WithTimeout(context.Background(), limit+lastWrites)
	defer giveUp()
	var closing sync.WaitGroup
	closing.Go(func() { server.Shutdown(closed) })
	cut := d.guard.Drain(ending)
	closing.Wait()
	server.Close()
	d.log.Info("drained", "cut_off", cut)
}

// atOnce is how long the first measurement of the limits may keep a guard from
// saying that it is there. An engine that hangs is asked again.
const atOnce = 5 * time.Second

func (d *Daemon) measure(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, atOnce)
	defer cancel()
	d.guard.Measure(ctx)
}

// announce says where it listens, once all is ready to be asked.
func (d *Daemon) announce(main, side net.Listener) {
	s := d.setup.Load()
	scheme := "http://"
	if s.TLS != nil {
		scheme = "https://"
	}
	if main.Addr().Network() == "unix" {
		scheme = "unix://"
	}
	line := []any{"at", scheme + main.Addr().String()}
	if side != nil {
		line = append(line, "metrics", "http://"+side.Addr().String()+"/metrics")
	}
	d.log.Info("listening", append(line, "upstreams", strings.Join(labels(s).Upstreams, " "), "version", d.o.Version)...)
	d.warn(s)
}

func (d *Daemon) warn(s *Setup) {
	for _, w := range s.Warnings() {
		d.log.Warn(w)
	}
}

// options are the setup's, with what they need of the daemon.
func (d *Daemon) options(s *Setup) guard.Options {
	o := s.Options
	o.Now, o.Random, o.Log, o.Observe = d.o.Now, d.o.Random, d.log, d.observe
	o.Overlap = d.overlap
	d.planter.admit(&o)
	return o
}

// observe tells all who want to know of a request that has ended.
func (d *Daemon) observe(r *guard.Record) {
	d.metrics.Observe(r)
	r.Log(d.log)
	d.keeper.Keep(r)
	d.tracer.Trace(r)
}

// state is what metrics show.
func (d *Daemon) state() guard.State { return d.guard.State() }

// labels are the words that the metrics of a setup may use.
func labels(s *Setup) guard.Labels {
	var l guard.Labels
	for _, u := range s.Config.Upstreams {
		l.Upstreams = append(l.Upstreams, u.Name)
	}
	for _, t := range s.Config.Tenancy.Tenants {
		l.Tenants = append(l.Tenants, t.Name)
	}
	if s.Config.Synthetic.KeyFile != "" && len(s.Config.Tenancy.Tenants) > 0 {
		l.Tenants = append(l.Tenants, syntheticName)
	}
	for _, r := range admit.Reasons() {
		l.Reasons = append(l.Reasons, string(r))
	}
	for _, f := range request.Table {
		if f.Do == request.Strip {
			l.Changed = append(l.Changed, f.Path)
		}
	}
	for _, h := range request.Headers {
		l.Changed = append(l.Changed, h.Name)
	}
	return l
}

func newLog(w io.Writer, format string) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, nil))
	}
	return slog.New(slog.NewTextHandler(w, nil))
}

// listen opens the listeners; side is nil where there is none.
func (d *Daemon) listen() (main, side net.Listener, err error) {
	c := d.setup.Load().Config
	if c.Listen.Socket != "" {
		main, err = listenUnix(c.Listen.Socket)
	} else {
		main, err = net.Listen("tcp", c.Listen.Address)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot listen: %w: choose another address under listen", err)
	}
	if c.Metrics != "" {
		if side, err = net.Listen("tcp", c.Metrics); err != nil {
			main.Close()
			return nil, nil, fmt.Errorf("cannot listen for metrics: %w: choose another address under metrics", err)
		}
	}
	return main, side, nil
}

// listenUnix listens on a socket, in the place of one that nobody listens on
// any more.
func listenUnix(path string) (net.Listener, error) {
	l, err := net.Listen("unix", path)
	if err == nil {
		return l, nil
	}
	st, statErr := os.Lstat(path)
	if statErr != nil || st.Mode()&os.ModeSocket == 0 {
		return nil, err
	}
	if c, dialErr := net.DialTimeout("unix", path, time.Second); dialErr == nil {
		c.Close()
		return nil, err
	}
	if removeErr := os.Remove(path); removeErr != nil {
		return nil, errors.Join(err, removeErr)
	}
	return net.Listen("unix", path)
}

func closeAll(all ...net.Listener) {
	for _, l := range all {
		if l != nil {
			l.Close()
		}
	}
}
