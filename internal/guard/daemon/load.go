// Package daemon runs a guard from its file: it reads what the file names,
// listens, says how it is, reads the file again when it changes, and ends
// without cutting an answer off that can end by itself.
package daemon

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/config"
	"github.com/kvcanary/kvcanary/internal/engine"
	"github.com/kvcanary/kvcanary/internal/guard"
	"github.com/kvcanary/kvcanary/internal/guard/admit"
	"github.com/kvcanary/kvcanary/internal/guard/request"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// Setup is a file with all that it names.
type Setup struct {
	Config  config.Guard
	Options guard.Options     // without clock, log and observer
	TLS     *tls.Config       // of the listener; nil for none
	Headers map[string]string // of spans: secrets

	digest [sha256.Size]byte
}

// Problems is all that is wrong with a setup, one line each.
type Problems []error

func (p Problems) Error() string {
	var lines []string
	for _, err := range p {
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap is for errors.Is and errors.As.
func (p Problems) Unwrap() []error { return p }

// Load reads a file and all that it names: certificates, keys, environment
// variables. It connects to nothing and writes nothing. An error is Problems,
// and fs.ErrNotExist or the like where the file itself cannot be read.
func Load(file string, getenv func(string) string) (*Setup, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, Problems{err}
	}
	c, err := config.ReadGuard(file, b, config.GuardKnown{Engines: engine.Names(), Allow: append([]string{allowStored, allowSharing, allowMedia}, request.Paths()...)})
	if bad, ok := errors.AsType[*config.Error](err); ok {
		var all Problems
		for _, e := range bad.All() {
			all = append(all, e)
		}
		return nil, all
	} else if err != nil {
		return nil, Problems{err}
	}
	l := loader{file: file, getenv: getenv, setup: &Setup{Config: *c, digest: digestOf(file, b, c)}}
	l.upstreams()
	l.tenants()
	l.limits()
	l.admission()
	l.isolation()
	l.watch()
	l.synthetic()
	if c.Overlap.Memory > 0 && c.Watch.Mode == "off" {
		l.problem("overlap is looked for in answers that the watch reads, and its mode is off: choose strict or audit, or leave overlap out")
	}
	l.listener()
	l.setup.Headers = map[string]string{}
	for _, h := range c.Traces.Headers {
		l.setup.Headers[h.Name] = l.variable(h.Env, "traces header "+h.Name)
	}
	if len(l.wrong) > 0 {
		return nil, l.wrong
	}
	if _, err := guard.New(l.setup.Options); err != nil {
		return nil, Problems{fmt.Errorf("%s: %w", file, err)}
	}
	return l.setup, nil
}

// loader collects what is wrong instead of ending at the first.
type loader struct {
	file   string
	getenv func(string) string
	setup  *Setup
	wrong  Problems
}

func (l *loader) problem(format string, args ...any) {
	l.wrong = append(l.wrong, fmt.Errorf(l.file+": "+format, args...))
}

// variable is the value of an environment variable: a secret.
func (l *loader) variable(name, what string) string {
	v := l.getenv(name)
	if v == "" {
		l.problem("%s: environment variable %s is not set: export it", what, name)
	}
	if strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }) {
		l.problem("%s: environment variable %s holds blanks, line ends or other characters that no key has: export the key alone", what, name)
	}
	return v
}

func (l *loader) upstreams() {
	for _, u := range l.setup.Config.Upstreams {
		o := guard.Upstream{
			Name: u.Name, BaseURL: u.BaseURL, Socket: u.Socket, Engine: u.Engine, Models: u.Models, ForwardKey: u.ForwardKey, HealthPath: u.HealthPath,
		}
		o.Workers, o.Given = u.Workers, admit.Given{Tokens: u.Limits.Prompt, Pool: u.Limits.Pool, Context: u.Limits.Context, Decode: u.Limits.DecodePool}
		if u.KeyEnv != "" {
			o.Key = l.variable(u.KeyEnv, "upstream "+u.Name)
		}
		var err error
		if o.TLS, err = wire.LoadTLS(u.CA, u.Cert, u.ClientKey); err != nil {
			l.problem("upstream %s: %w", u.Name, err)
		}
		l.setup.Options.Upstreams = append(l.setup.Options.Upstreams, o)
	}
}

func (l *loader) tenants() {
	t := l.setup.Config.Tenancy
	out := &l.setup.Options.Tenants
	out.Header, out.Any = t.Header, len(t.Tenants) == 0 && t.Header == ""
	if len(t.Tenants) > 0 {
		out.Keys = map[[sha256.Size]byte]guard.Tenant{}
	}
	for _, c := range t.Tenants {
		var sum [sha256.Size]byte
		copy(sum[:], c.KeySHA256)
		if c.KeyEnv != "" {
			key := l.variable(c.KeyEnv, "tenant "+c.Name)
			if key == "" {
				continue
			}
			sum = sha256.Sum256([]byte(key))
		}
		if c.Name == syntheticName {
			l.problem("a tenant is called %s, as the guard's own: choose another name", c.Name)
		}
		if o, taken := out.Keys[sum]; taken {
			l.problem("tenants %s and %s have the same key: they would be one tenant", o.Name, c.Name)
		}
		out.Keys[sum] = guard.Tenant{Name: c.Name, Concurrency: c.Concurrency}
	}
}

func (l *loader) limits() {
	c := l.setup.Config.Limits
	l.setup.Options.Limits = guard.Limits{
		BodyBytes: int64(c.Body), HeaderBytes: c.Headers, Concurrency: c.Concurrency, TenantConcurrency: c.TenantAtOnce, Buffered: int64(c.Buffered),
		HeaderTime: c.HeaderTime, BodyTime: c.BodyTime, BodyRate: int64(c.BodyRate), ConnectTime: c.ConnectTime, StallTime: c.StallTime,
		WriteTime: c.WriteTime, IdleTime: c.IdleTime, HealthTime: c.HealthTime,
	}
}

func (l *loader) admission() {
	c := l.setup.Config.Admission
	l.setup.Options.Admission = guard.Admission{
		Policy: admit.Policy{
			Off: c.Policy == "off", Open: c.Policy == "open", CountOutput: c.CountOutput, MaxAge: c.MaxAge,
			TokensPerByte: c.TokensPerByte, WideFactor: c.Wide, TemplateTokens: c.Template, OpaqueTokens: c.Opaque, StructuredFactor: c.Structured,
		},
		NoCount: !c.Count, Margin: c.Margin, Refresh: c.Refresh,
	}
}

// What isolation may allow.
const (
	allowStored  = "stored"
	allowSharing = "shared_prompt_cache"
	allowMedia   = "private_media"
)

func (l *loader) isolation() {
	c := l.setup.Config.Isolation
	o := &l.setup.Options.Isolation
	o.RefuseUnknown = c.Unknown == "refuse"
	o.AllowStored, o.SharePromptCache = slices.Contains(c.Allow, allowStored), slices.Contains(c.Allow, allowSharing)
	o.AllowPrivateMedia = slices.Contains(c.Allow, allowMedia)
	for _, path := range request.Paths() {
		if slices.Contains(c.Allow, path) {
			o.Allow = append(o.Allow, path)
		}
	}
	if c.SaltKeyFile == "" {
		return
	}
	b, err := os.ReadFile(c.SaltKeyFile)
	switch {
	case err != nil:
		l.problem("read the key of the tenants' salts: %w", err)
	case len(b) < 32:
		l.problem("%s holds %d bytes: the key of the tenants' salts has 32 or more", c.SaltKeyFile, len(b))
	}
	o.SaltKey = b
}

func (l *loader) watch() {
	c := l.setup.Config.Watch
	o := guard.Watch{Off: c.Mode == "off", Audit: c.Mode == "audit", MaxHeld: c.MaxHeld, MaxDocument: l.setup.Config.Limits.Document}
	seen := map[string]bool{l.syntheticID(): true} // its coder is added by who plants
	for _, file := range c.KeyFiles {
		key, err := canary.LoadKey(file)
		if err != nil {
			l.problem("read a key of canaries: %w", err)
			continue
		}
		if seen[key.ID()] {
			continue // a canary is to be found once
		}
		seen[key.ID()] = true
		o.Coders = append(o.Coders, canary.New(key))
	}
	l.setup.Options.Watch = o
}

// syntheticID is that of the synthetic tenant's key, "" for none.
func (l *loader) syntheticID() string {
	if file := l.setup.Config.Synthetic.KeyFile; file != "" {
		if key, err := canary.LoadKey(file); err == nil {
			return key.ID()
		}
	}
	return ""
}

// synthetic looks whether the tenant of the guard's own can plant.
func (l *loader) synthetic() {
	c := l.setup.Config
	if c.Synthetic.KeyFile == "" {
		return
	}
	if _, err := canary.LoadKey(c.Synthetic.KeyFile); err != nil {
		l.problem("read the key of the synthetic tenant: %w", err)
	}
	if name := forwards(&c); name != "" {
		l.problem("upstream %s is shown the keys of clients (forward_key), and the synthetic tenant has none: give the upstream a key_env", name)
	}
}

func (l *loader) listener() {
	c := l.setup.Config.Listen
	if c.Cert == "" {
		return
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		l.problem("read the certificate to show: %w", err)
		return
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}
	if c.ClientCA != "" {
		pem, err := os.ReadFile(c.ClientCA)
		if err != nil {
			l.problem("read the authorities of clients: %w", err)
			return
		}
		t.ClientCAs, t.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !t.ClientCAs.AppendCertsFromPEM(pem) {
			l.problem("%s holds no certificate in PEM form", c.ClientCA)
		}
	}
	l.setup.TLS = t
}

// digestOf is that of a file with its text and of the files that it names: a
// certificate that was renewed is a change too. It is taken before they are read,
// so that a change meanwhile is seen at the next look.
func digestOf(file string, text []byte, c *config.Guard) (sum [sha256.Size]byte) {
	h := sha256.New()
	add := func(name string, b []byte) {
		fmt.Fprintf(h, "%q %d\n", name, len(b))
		h.Write(b)
	}
	add(file, text)
	for _, name := range named(c) {
		add(name, content(name))
	}
	h.Sum(sum[:0])
	return sum
}

// content is that of a file, or what is said of one that cannot be read.
func content(name string) []byte {
	b, err := os.ReadFile(name)
	if err != nil {
		return []byte(err.Error())
	}
	return b
}

// named are the files that a configuration is read with.
func named(c *config.Guard) (names []string) {
	if c == nil {
		return nil
	}
	names = append(names, c.Listen.Cert, c.Listen.Key, c.Listen.ClientCA, c.Isolation.SaltKeyFile, c.Synthetic.KeyFile)
	for _, u := range c.Upstreams {
		names = append(names, u.CA, u.Cert, u.ClientKey)
	}
	names = append(names, c.Watch.KeyFiles...)
	return slices.DeleteFunc(names, func(s string) bool { return s == "" })
}

// Unreadable reports whether an error of Load is that the file cannot be read,
// and not what is written in it.
func Unreadable(err error) bool {
	p, ok := errors.AsType[Problems](err)
	if !ok || len(p) != 1 {
		return false
	}
	_, ok = p[0].(*fs.PathError)
	return ok
}
