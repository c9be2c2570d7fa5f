package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// dialTimeout bounds the set-up of a connection.
const dialTimeout = 30 * time.Second

// newTransport is made for few hosts and long exchanges. With a socket every
// connection goes there, whatever the host.
func newTransport(t *tls.Config, socket string, shown *certificate) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	proxy := http.ProxyFromEnvironment
	if socket != "" {
		proxy = nil
	}
	return &http.Transport{
		Proxy: proxy,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if socket != "" {
				network, addr = "unix", socket
			}
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &patientConn{Conn: conn}, nil
		},
		TLSClientConfig:     shown.watch(t),
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

// certificate is what is known of a server's wish for one: with TLS 1.3 a
// client learns only after its handshake that it needed to show one, and if the
// connection breaks while it sends a prompt it does not learn it at all.
type certificate struct{ state atomic.Int32 }

const (
	certificateAsked    = 1 // one was asked for, and there was none to show
	certificateNeedless = 2 // an answer came all the same
)

// errUnshown is what can be said of a connection that broke after a certificate
// was asked for.
var errUnshown = errors.New("tls: certificate required, or broken off for another reason")

// watch returns settings as t that notice when a certificate is asked for.
func (c *certificate) watch(t *tls.Config) *tls.Config {
	if t != nil && (len(t.Certificates) > 0 || t.GetClientCertificate != nil) {
		return t
	}
	if t = t.Clone(); t == nil {
		t = &tls.Config{}
	}
	t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		c.state.CompareAndSwap(0, certificateAsked)
		return &tls.Certificate{}, nil
	}
	return t
}

// explain takes how a request went: one that was hung up on may have lacked a
// certificate.
func (c *certificate) explain(err error) error {
	if err == nil {
		c.state.Store(certificateNeedless)
	} else if c.state.Load() == certificateAsked && isHangup(err) {
		return fmt.Errorf("%w: %w", errUnshown, err)
	}
	return err
}

// dressed adds to every request what the target wants besides a key.
type dressed struct {
	http.RoundTripper
	headers, query map[string]string
}

// RoundTrip implements [http.RoundTripper].
func (d *dressed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, v := range d.headers {
		r.Header.Set(name, v)
	}
	q := r.URL.Query()
	for name, v := range d.query {
		q.Set(name, v)
	}
	r.URL.RawQuery = q.Encode()
	return d.RoundTripper.RoundTrip(r)
}

// CloseIdleConnections lets [http.Client] do what its name says.
func (d *dressed) CloseIdleConnections() {
	if c, ok := d.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// checkExtras says what of the extra headers and parameters cannot be sent.
// Their values are secrets and stand in no message.
func checkExtras(headers, query map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		switch canonical := textproto.CanonicalMIMEHeaderKey(name); {
		case name == "" || strings.ContainsFunc(name, func(r rune) bool {
			return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
		}):
			return fmt.Errorf("%q is no name of a header", name)
		case slices.Contains([]string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Content-Type", "Accept-Encoding"}, canonical):
			return fmt.Errorf("header %s is set by the client: leave it out", canonical)
		case strings.ContainsFunc(headers[name], func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return fmt.Errorf("the value of header %s holds a character that no header can carry, a line break perhaps: look at the variable it comes from", canonical)
		}
	}
	if _, ok := query[""]; ok {
		return errors.New("a query parameter needs a name")
	}
	return nil
}

// LoadTLS makes the TLS settings of a client from PEM files: an authority to
// trust besides those of the system, and a certificate with its key to show to
// the server. Empty names are left out; with none it returns nil.
func LoadTLS(ca, cert, key string) (*tls.Config, error) {
	if ca == "" && cert == "" && key == "" {
		return nil, nil
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if (cert == "") != (key == "") {
		return nil, errors.New("a client certificate and its key belong together: name both files")
	}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("read the authority's certificate: %w", err)
		}
		if t.RootCAs, err = x509.SystemCertPool(); err != nil {
			t.RootCAs = x509.NewCertPool()
		}
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate in PEM form", ca)
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("read the client certificate: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

// HTTP is a client that reaches the target in the same way, with the same extra
// headers and parameters: for questions that are no prompts.
func (c *Client) HTTP() *http.Client { return c.http }

// Root is the base URL without a version and without a dialect's path, for
// questions that are no prompts.
func (c *Client) Root() string { return c.root }

// socketURL takes a base URL of the form unix:///path apart.
func socketURL(u *url.URL) (socket string, err error) {
	switch {
	case u.Host != "" || u.Path == "" || u.Path == "/":
		return "", errors.New("a base URL of a socket has three slashes and its path: write it like unix:///run/engine.sock")
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return "", errors.New("the base URL of a socket is its path and nothing else")
	}
	return u.Path, nil
}
