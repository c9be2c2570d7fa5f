package guard

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/kvcanary/kvcanary/internal/guard/admit"
)

// upstream is an engine and the connections to it.
type upstream struct {
	Upstream
	host     string // of the Host header
	address  string // to connect to
	network  string
	prefix   string // of its paths
	tls      *tls.Config
	limits   Limits
	idleTime time.Duration
	now      func() time.Time
	log      *slog.Logger
	gate     *admit.Gate

	mu    sync.Mutex
	pool  pool
	fails int       // in a row: connections that could not be made, looks that went wrong
	until time.Time // not tried before, unless there is no other
}

func newUpstream(u Upstream, l Limits, now func() time.Time, log *slog.Logger) (*upstream, error) {
	base, err := parseBase(u.BaseURL)
	if err != nil {
		return nil, err
	}
	up := &upstream{Upstream: u, host: base.Host, network: "tcp", prefix: base.EscapedPath(), limits: l, now: now, log: log,
		idleTime: min(l.IdleTime, maxIdleTime)}
	port := base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[base.Scheme]
	}
	up.address = net.JoinHostPort(base.Hostname(), port)
	if u.Socket != "" {
		up.network, up.address = "unix", u.Socket
	}
	if base.Scheme == "https" {
		up.tls = u.TLS.Clone()
		if up.tls == nil {
			up.tls = &tls.Config{}
		}
		if up.tls.ServerName == "" {
			up.tls.ServerName = base.Hostname()
		}
		up.tls.NextProtos = []string{"http/1.1"}
	}
	return up, nil
}

// reach connects to an upstream, whatever address it is asked for: a socket has none.
func (u *upstream) reach(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	if u.Socket != "" {
		network, address = u.network, u.address
	}
	return d.DialContext(ctx, network, address)
}

func (u *upstream) connect(ctx context.Context) (net.Conn, error) {
	c, err := u.reach(ctx, u.network, u.address)
	if err != nil || u.tls == nil {
		return c, err
	}
	t := tls.Client(c, u.tls)
	if err := t.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return t, nil
}

// serves says that requests for a model go here.
func (u *upstream) serves(model string) bool {
	return len(u.Models) == 0 || slices.Contains(u.Models, model)
}

// good takes an upstream for healthy from now on.
func (u *upstream) good() {
	u.mu.Lock()
	again := u.fails > 0
	u.fails, u.until = 0, time.Time{}
	u.mu.Unlock()
	if again {
		u.log.Info("the upstream is reached again", "upstream", u.Name)
	}
}

// bad leaves an upstream alone for a while, longer each time: 1 s to 32 s.
func (u *upstream) bad() {
	u.mu.Lock()
	u.until = u.now().Add(time.Second << min(u.fails, 5))
	u.fails++
	first := u.fails == 1
	u.mu.Unlock()
	if first {
		u.log.Warn("the upstream is not reached, or not well", "upstream", u.Name)
	}
}

// up says that nothing speaks against trying it.
func (u *upstream) up() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.fails == 0 || !u.now().Before(u.until)
}

// well says that it was reached when it was last tried: what is told to others.
// An upstream that hangs may be tried again long before it is well.
func (u *upstream) well() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.fails == 0
}

// look asks an upstream whether it is well.
func (u *upstream) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, u.limits.ConnectTime)
	defer cancel()
	path := u.HealthPath
	if path == "" {
		path = "/health"
	}
	h := http.Header{}
	u.showKey(h, "")
	x, err := u.begin(ctx, &call{method: http.MethodGet, target: path, header: h})
	if err != nil {
		if ctx.Err() == nil || context.Cause(ctx) == context.DeadlineExceeded {
			u.bad()
		}
		return
	}
	defer x.close()
	if x.answer.status >= 500 {
		u.bad()
		return
	}
	u.good()
}

// ring is the upstreams of a configuration.
type ring struct {
	ups     []*upstream
	byModel bool // some serve only the models that they name
	mu      sync.Mutex
	next    int
}

// order returns the upstreams that serve a model, the one whose turn it is
// first and those that are not well last.
func (r *ring) order(model string) []*upstream {
	r.mu.Lock()
	start := r.next
	r.next++
	r.mu.Unlock()
	return r.from(start, model)
}

func (r *ring) from(start int, model string) []*upstream {
	if len(r.ups) == 1 && !r.byModel {
		return r.ups
	}
	named := r.byModel && slices.ContainsFunc(r.ups, func(u *upstream) bool { return slices.Contains(u.Models, model) })
	var well, ill []*upstream
	for i := range r.ups {
		u := r.ups[(start+i)%len(r.ups)]
		switch {
		case named && !slices.Contains(u.Models, model), !u.serves(model):
		case u.up() && u.judges(u.now()):
			well = append(well, u)
		default:
			ill = append(ill, u)
		}
	}
	return append(well, ill...)
}
