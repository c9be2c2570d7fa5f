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
	BaseURL string // http or https; with or without the version ("/v1") at its end
	Dialect string // one of [Dialects]; "openai" by default

	HTTP *http.Client // in place of one of our own; its redirects and its timeout are not used
	TLS  *tls.Config  // for a client of our own; nil for the system's authorities

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

// dialTimeout bounds the set-up of a connection.
const dialTimeout = 30 * time.Second

// Client speaks to one target. It follows no redirect, repeats no request by
// itself but for a refused field, and is safe for concurrent use.
type Client struct {
	o       Options
	http    *http.Client
	dialect dialect
	api     string // versioned base URL: the prompts go below it
	root    string // unversioned base URL: /tokenize stands there
	host    string // host and port, for messages

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
	if err := c.setURL(o.BaseURL); err != nil {
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
	c.http = &http.Client{Transport: newTransport(o.TLS)}
	if o.HTTP != nil {
		c.http = &http.Client{Transport: o.HTTP.Transport, Jar: o.HTTP.Jar}
	}
	// A key must not travel to a host that the user has not named.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// Close gives up idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

var version = regexp.MustCompile(`^v\d+[a-z0-9]*$`)

// setURL takes a base URL apart. A path without a version gets "/v1".
func (c *Client) setURL(base string) error {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil {
		return errors.New("the base URL cannot be parsed: write it like http://127.0.0.1:8000/v1")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("the base URL has scheme %q: write it like http://127.0.0.1:8000/v1", u.Scheme)
	case u.Hostname() == "":
		return errors.New("the base URL names no host: write it like http://127.0.0.1:8000/v1")
	case u.User != nil:
		return errors.New("the base URL holds a user or password: give the key by an environment variable")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("the base URL holds a query or fragment: leave it out")
	}
	c.host = u.Host
	path := strings.TrimRight(u.Path, "/")
	path = strings.TrimRight(strings.TrimSuffix(path, c.dialect.path), "/")
	parts := strings.Split(path, "/")
	u.Path, u.RawPath = path, ""
	c.api = u.String()
	if !anyVersion(parts) {
		c.root, c.api = c.api, c.api+"/v1"
		return nil
	}
	if version.MatchString(parts[len(parts)-1]) {
		u.Path = strings.Join(parts[:len(parts)-1], "/")
	}
	c.root = u.String()
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

// newTransport is made for few hosts and long exchanges.
func newTransport(t *tls.Config) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &patientConn{Conn: conn}, nil
		},
		TLSClientConfig:     t,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConns:        256,
		MaxIdleConnsPerHost: 256,
		// Uvicorn, under vLLM and SGLang, and Node close idle connections after
		// five seconds. A prompt cannot be sent twice, so a connection that is
		// about to be closed must not be taken.
		IdleConnTimeout:        4 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
		WriteBufferSize:        64 << 10,
		ReadBufferSize:         32 << 10,
	}
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
