package daemon

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kvcanary/kvcanary/internal/guard"
)

// closeTime is what sending the last spans may take.
const closeTime = 5 * time.Second

// sinks starts what findings and spans go to.
func (d *Daemon) sinks(s *Setup) error {
	c := s.Config
	k := guard.Keeping{Version: "kvcanary " + d.o.Version, Log: d.log, Metrics: d.metrics}
	if c.Findings != "" {
		lines := appender(c.Findings)
		if err := lines.try(); err != nil {
			return fmt.Errorf("findings_file: %w", err)
		}
		k.Lines = lines
	}
	if c.Receipts.Dir != "" {
		if err := os.MkdirAll(filepath.Join(c.Receipts.Dir, "findings"), 0o700); err != nil {
			return fmt.Errorf("receipts: %w", err)
		}
		seal, err := d.o.Seal(filepath.Join(c.Receipts.Dir, "log"), c.Receipts.KeyFile)
		if err != nil {
			return fmt.Errorf("receipts: %w", err)
		}
		k.Seal, k.Dir = seal, filepath.Join(c.Receipts.Dir, "findings")
	}
	d.keeper = guard.NewKeeper(k)
	if c.Traces.Endpoint != "" {
		d.tracer = guard.NewTracer(guard.Tracing{
			URL: tracesURL(c.Traces.Endpoint), Headers: s.Headers, Client: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone(), CheckRedirect: noRedirect},
			Random: d.o.Random, Ratio: c.Traces.Ratio, Version: d.o.Version, Instance: c.Listen.Address + c.Listen.Socket,
			Upstreams: d.whereIs, Log: d.log, Metrics: d.metrics,
		})
	}
	return nil
}

func (d *Daemon) closeSinks() {
	d.keeper.Close()
	if d.tracer != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		d.tracer.Close(ctx)
	}
}

// noRedirect keeps headers, which may be secret, where they were sent.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// tracesURL is where a collector takes spans: OTLP has a path for them, unless
// the operator names one.
func tracesURL(endpoint string) string {
	if u, err := url.Parse(endpoint); err == nil && strings.Trim(u.Path, "/") != "" {
		return endpoint
	}
	return strings.TrimRight(endpoint, "/") + "/v1/traces"
}

// whereIs is what spans say of an upstream of the file that is in force.
func (d *Daemon) whereIs(name string) (t guard.TracedUpstream) {
	for _, u := range d.setup.Load().Config.Upstreams {
		if at, err := url.Parse(u.BaseURL); u.Name == name && err == nil {
			t.Host = at.Hostname()
			t.Port, _ = strconv.Atoi(at.Port()) // 0 where it is not said
		}
	}
	return t
}

// appender is a file that is opened for each line, so that it can be moved away
// by whoever keeps logs short. Findings are rare.
type appender string

func (a appender) Write(p []byte) (int, error) {
	f, err := os.OpenFile(string(a), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := f.Write(p)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return n, err
}

// try finds out at the start whether the file can be written.
func (a appender) try() error {
	f, err := os.OpenFile(string(a), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}
