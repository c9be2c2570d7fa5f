package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Options configure a [Client]. The zero value of every field but BaseURL is
// good for use.
type Options struct {
	BaseURL string // http or https, with or without the version ("/v1") at its end; or unix:///path of a socket
	Dialect string // one of [Dialects]; "openai" by default

	HTTP *http.Client // in place of one of our own; its redirects and its timeout are not used
	TLS  *tls.Config  // for a client of our own; nil for the system's authorities
	// Socket is a Unix socket to connect to in place of the base URL's host, for
	// a client of our own.
	Socket string

	// Headers and Query are sent with every request, beside and in place of what
	// the dialect sends: Azure's api-key and api-version. Their values are
	// secrets, and blotted out of what comes back.
	Headers, Query map[string]string

	SpillDir       string // existing directory for raw answers over KeepInMemory; empty keeps their beginning only
	KeepInMemory   int64  // bytes of a raw answer held in memory, 64 KiB by default
	MaxAnswerBytes int64  // bytes of an answer that are read, after decompression, 64 MiB by default

	// HeaderTimeout bounds the silence from the end of the upload to the first
	// byte of the body, and every pause of the upload: a prefill of a million
	// tokens takes minutes. 10 minutes by default.
	HeaderTimeout time.Duration
	IdleTimeout   time.Duration // bounds every later silence, 5 minutes by default
	TotalTimeout  time.Duration // bounds the whole exchange, 1 hour by default

	Now       func() time.Time // time.Now by default
	UserAgent string           // "kvcanary" by default
}

// Client speaks to one target. It follows no redirect, repeats no request by
// itself but for a refused field, and is safe for concurrent use.
type Client struct {
	o       Options
	http    *http.Client
	dialect dialect
	api     string // versioned base URL
	prompts string // where the prompts go
	root    string // unversioned base URL: /tokenize stands there
	host    string // host and port, for messages

	shown certificate

	mu     sync.Mutex
	quirks quirks
	count  countState
}

// NewClient checks the options and makes a client; it sends nothing.
func NewClient(o Options) (*Client, error) {
	d, ok := findDialect(cmp.Or(o.Dialect, "openai"))
	if !ok {
		return nil, fmt.Errorf("dialect %q is not known: use one of %s", o.Dialect, strings.Join(Dialects(), ", "))
	}
	c := &Client{dialect: d}
	if err := c.setURL(o.BaseURL, &o.Socket); err != nil {
		return nil, err
	}
	if err := checkExtras(o.Headers, o.Query); err != nil {
		return nil, err
	}
	if o.SpillDir != "" {
		if st, err := os.Stat(o.SpillDir); err != nil {
			return nil, fmt.Errorf("spill directory: %w", err)
		} else if !st.IsDir() {
			return nil, fmt.Errorf("spill directory %s is not a directory", o.SpillDir)
		}
	}
	o.KeepInMemory = cmp.Or(o.KeepInMemory, 64<<10)
	o.MaxAnswerBytes = cmp.Or(o.MaxAnswerBytes, 64<<20)
	o.HeaderTimeout = cmp.Or(o.HeaderTimeout, 10*time.Minute)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 5*time.Minute)
	o.TotalTimeout = cmp.Or(o.TotalTimeout, time.Hour)
	o.UserAgent = cmp.Or(o.UserAgent, "kvcanary")
	if o.Now == nil {
		o.Now = time.Now
	}
	c.o = o
	c.http = &http.Client{Transport: newTransport(o.TLS, o.Socket, &c.shown)}
	if o.HTTP != nil {
		c.http = &http.Client{Transport: o.HTTP.Transport, Jar: o.HTTP.Jar}
	}
	if len(o.Headers)+len(o.Query) > 0 {
		c.http.Transport = &dressed{orDefault(c.http.Transport), o.Headers, o.Query}
	}
	// A key must not travel to a host that the user has not named.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

func orDefault(t http.RoundTripper) http.RoundTripper {
	if t == nil {
		return http.DefaultTransport
	}
	return t
}

// blotter knows the secrets that a request carries.
func (c *Client) blotter(key string) *Blotter {
	secrets := []string{key}
	for _, extra := range []map[string]string{c.o.Headers, c.o.Query} {
		for _, v := range extra {
			secrets = append(secrets, v)
		}
	}
	return NewBlotter(secrets...)
}

// Close gives up idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

var version = regexp.MustCompile(`^v\d+[a-z0-9]*$`)

// setURL takes a base URL apart. A path without a version gets "/v1", unless it
// names a deployment, as Azure's do, or the very place of the prompts.
func (c *Client) setURL(base string, socket *string) error {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil {
		return errors.New("the base URL cannot be parsed: write it like http://127.0.0.1:8000/v1")
	}
	if u.Scheme == "unix" {
		if *socket, err = socketURL(u); err != nil {
			return err
		}
		u = &url.URL{Scheme: "http", Host: "localhost"}
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("the base URL has scheme %q: write it like http://127.0.0.1:8000/v1", u.Scheme)
	case u.Hostname() == "":
		return errors.New("the base URL names no host: write it like http://127.0.0.1:8000/v1")
	case u.User != nil:
		return errors.New("the base URL holds a user or password: give the key by an environment variable")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("the base URL holds a query or fragment: leave it out, and give parameters with --query NAME=ENVVAR")
	}
	c.host = u.Host
	if *socket != "" {
		c.host = *socket
	}
	path, whole := strings.CutSuffix(strings.TrimRight(u.Path, "/"), c.dialect.path)
	path = strings.TrimRight(path, "/")
	if c.dialect.atRoot {
		path = strings.TrimSuffix(path, "/"+strings.Split(c.dialect.path, "/")[1])
	}
	parts := strings.Split(path, "/")
	u.Path, u.RawPath = path, ""
	c.api = u.String()
	switch {
	case !anyVersion(parts) && !(whole && !c.dialect.atRoot) && !strings.Contains(path, "/deployments/"):
		c.root, c.api = c.api, c.api+"/v1"
	case version.MatchString(parts[len(parts)-1]):
		u.Path = strings.Join(parts[:len(parts)-1], "/")
		fallthrough
	default:
		c.root = u.String()
	}
	c.prompts = c.api + c.dialect.path
	if c.dialect.atRoot {
		c.prompts = c.root + c.dialect.path
	}
	return nil
}

func anyVersion(parts []string) bool {
	for _, p := range parts {
		if version.MatchString(p) {
			return true
		}
	}
	return false
}

// patientConn lets the answer arrive when the target stops reading. A server
// that refuses a prompt by its size answers and closes before it has read the
// body; the transport would report the broken pipe in place of that answer. So
// bytes that nobody takes are dropped, and the reading side decides: it sees
// the answer, or the end of the connection.
type patientConn struct{ net.Conn }

func (c *patientConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return len(p), nil
	}
	return n, err
}

// watchdog cancels an exchange that is silent for too long.
type watchdog struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer

	mu    sync.Mutex
	limit time.Duration
	doing string
	ended bool
}

func newWatchdog(ctx context.Context, limit time.Duration, doing string) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watchdog{cancel: cancel, limit: limit, doing: doing}
	w.timer = time.AfterFunc(limit, w.bark)
	return ctx, w
}

func (w *watchdog) bark() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel(&stalled{w.limit, w.doing})
}

// touch says that something has moved.
func (w *watchdog) touch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended { // the upload may go on after an early answer
		w.timer.Reset(w.limit)
	}
}

// phase sets what is waited for from now on.
func (w *watchdog) phase(limit time.Duration, doing string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit, w.doing = limit, doing
	w.timer.Reset(limit)
}

// stop ends the watch and whatever of the exchange is still under way.
func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.timer.Stop()
	w.cancel(nil)
}
