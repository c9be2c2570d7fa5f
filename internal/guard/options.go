package guard

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/guard/admit"
	"github.com/kvcanary/kvcanary/internal/guard/overlap"
)

// Options make a [Guard]. What is left zero is filled in by New as the fields say.
type Options struct {
	Upstreams []Upstream // at least one
	Tenants   Tenants
	Limits    Limits
	Admission Admission
	Isolation Isolation
	Watch     Watch
	// Overlap remembers what tenants send, to notice answers that carry it; nil
	// for none. It needs the watch, and outlives a reload.
	Overlap *overlap.Index

	Now     func() time.Time                     // time.Now by default; deadlines of connections are set by it
	Random  io.Reader                            // of request ids; crypto/rand by default; used by many goroutines
	Log     *slog.Logger                         // nothing is logged by default; never given prompt text or keys
	Observe func(*Record)                        // called once for each request, when it has ended; may be nil
	Sleep   func(time.Duration) <-chan time.Time // time.After by default
}

// Upstream is an engine that the guard stands in front of.
type Upstream struct {
	Name    string      // for people and metrics; never sent to clients
	BaseURL string      // http or https, with or without /v1 at its end
	Socket  string      // Unix socket to connect to in place of the URL's host
	Engine  string      // name of an engine, as internal/engine knows them; "auto" asks
	Workers []string    // base URLs of those behind it that say how much they hold; by default BaseURL is asked
	Given   admit.Given // limits that the operator states
	Models  []string    // models that are served here and, if any upstream names them, only there; none: all
	// Key is shown to the upstream. A secret.
	Key string
	// ForwardKey shows the client's own key instead. With neither, none is shown.
	ForwardKey bool
	TLS        *tls.Config // for https; nil for the system's authorities
	// HealthPath is asked now and then; "/health" by default. An engine that does
	// not know it is taken for healthy: it answers.
	HealthPath string
}

// Tenants says how a request's tenant is known. A client's key is its
// Authorization: Bearer, X-Api-Key or Api-Key header.
type Tenants struct {
	// Keys are the tenants that are let in, by the SHA-256 digest of their keys.
	Keys map[[sha256.Size]byte]Tenant
	// Header, without Keys, names the header that holds the tenant's name; only
	// for a guard that none but a trusted gateway can reach.
	Header string
	// Any, without Keys and Header, lets everybody in: each key is a tenant, and
	// those without a key are one together.
	Any bool
}

// Tenant is a customer, between whom and others nothing may pass.
type Tenant struct {
	Name        string
	Concurrency int // requests at once; 0: Limits.TenantConcurrency
}

// Limits bound what clients and engines may take. Zero fields get the default.
type Limits struct {
	BodyBytes         int64 // of a request, 16 MiB
	HeaderBytes       int   // of a request, and of an answer's head, 32 KiB
	Concurrency       int   // requests at once, 1,024
	TenantConcurrency int   // of one tenant; 0: no bound of its own
	// Buffered bounds the bytes of bodies that are held at once, over all
	// requests, but for the first 64 KiB of each. 256 MiB.
	Buffered int64

	HeaderTime  time.Duration // for a request's head, 10 s
	BodyTime    time.Duration // for the beginning of a request's body, 30 s; then it must come at BodyRate
	BodyRate    int64         // bytes a second, 1,024
	ConnectTime time.Duration // to an upstream, TLS with it, 5 s
	StallTime   time.Duration // silence of an upstream, before its answer and within it, 10 min
	WriteTime   time.Duration // that a client may leave an answer unread, 1 min
	IdleTime    time.Duration // of a connection between requests, 2 min to clients, 30 s at most to upstreams
	HealthTime  time.Duration // between two looks at an upstream, 5 s
}

// Watch says how answers are looked at.
type Watch struct {
	Off, Audit bool            // not at all; without holding anything back. Otherwise strictly
	Coders     []*canary.Coder // of the keys whose canaries are looked for
	MaxHeld    int             // bytes of one stream that are held back at most; 0: watch.DefaultHeld
	// MaxDocument bounds an answer that is no stream, bytes; 0: watch.DefaultDocument.
	MaxDocument int
}

func (l Limits) filled() Limits {
	l.BodyBytes = cmp.Or(l.BodyBytes, 16<<20)
	l.HeaderBytes = cmp.Or(l.HeaderBytes, 32<<10)
	l.Concurrency = cmp.Or(l.Concurrency, 1024)
	l.Buffered = cmp.Or(l.Buffered, 256<<20)
	l.HeaderTime = cmp.Or(l.HeaderTime, 10*time.Second)
	l.BodyTime = cmp.Or(l.BodyTime, 30*time.Second)
	l.BodyRate = cmp.Or(l.BodyRate, 1024)
	l.ConnectTime = cmp.Or(l.ConnectTime, 5*time.Second)
	l.StallTime = cmp.Or(l.StallTime, 10*time.Minute)
	l.WriteTime = cmp.Or(l.WriteTime, time.Minute)
	l.IdleTime = cmp.Or(l.IdleTime, 2*time.Minute)
	l.HealthTime = cmp.Or(l.HealthTime, 5*time.Second)
	return l
}

func (o *Options) check() error {
	if len(o.Upstreams) == 0 {
		return errors.New("the guard has no upstream: name an engine to guard")
	}
	for i, u := range o.Upstreams {
		if _, err := parseBase(u.BaseURL); err != nil {
			return fmt.Errorf("upstream %q: %w", u.Name, err)
		}
		if u.Name == "" {
			return fmt.Errorf("upstream %d has no name: give it one", i+1)
		}
		if slices.ContainsFunc(o.Upstreams[:i], func(o Upstream) bool { return o.Name == u.Name }) {
			return fmt.Errorf("two upstreams are called %q: give each a name of its own", u.Name)
		}
		if u.Key != "" && !visible(u.Key) {
			return fmt.Errorf("upstream %q: its key has characters that no header can carry", u.Name)
		}
		if u.HealthPath != "" && !strings.HasPrefix(u.HealthPath, "/") {
			return fmt.Errorf("upstream %q: health path must begin with /", u.Name)
		}
	}
	if o.Overlap != nil && o.Watch.Off {
		return errors.New("overlap is looked for in answers that the watch reads, and it is off: switch it on, or leave overlap out")
	}
	t := &o.Tenants
	if n := count(len(t.Keys) > 0, t.Header != "", t.Any); n != 1 {
		return errors.New("say in one way who the tenants are: by their keys, by a header, or any")
	}
	return nil
}

func count(all ...bool) (n int) {
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
}

// parseBase takes a base URL without what belongs to the routes.
func parseBase(base string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(base))
	switch {
	case err != nil:
		return nil, errors.New("the base URL cannot be parsed: write it like http://127.0.0.1:8000")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("the base URL has scheme %q: write it like http://127.0.0.1:8000", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("the base URL names no host: write it like http://127.0.0.1:8000")
	case u.User != nil:
		return nil, errors.New("the base URL holds a user or password: give the key apart")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the base URL holds a query or fragment: leave it out")
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1")
	u.RawPath = ""
	return u, nil
}

// visible says that a text can stand in a header as it is.
func visible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != ""
}
