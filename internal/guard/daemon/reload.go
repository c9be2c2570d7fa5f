package daemon

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/kvcanary/kvcanary/internal/config"
)

// watch reads the file again when it, or a file that it names, has changed and
// stays so for two looks, and at once on a hangup.
func (d *Daemon) watch(ctx context.Context) {
	var m memory
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.o.Hangup:
			d.reload(true)
		case <-d.o.Tick:
			d.look()
			m.tidy()
		}
	}
}

// look has a change taken at the second look that shows the same, so that no
// half written file is.
func (d *Daemon) look() {
	s := d.setup.Load()
	now := digestOf(d.o.File, content(d.o.File), &s.Config)
	stays := now == d.seen
	d.seen = now
	// What is in force is read again too once it stands where a refused file stood.
	changed := now != s.digest || d.refused != [32]byte{}
	if stays && changed && now != d.refused {
		d.reload(false)
	}
}

// reload has the file as it is now take effect, or says why not and leaves all
// as it was. Requests under way end as they began.
func (d *Daemon) reload(asked bool) {
	old := d.setup.Load()
	next, err := Load(d.o.File, d.o.Getenv)
	if err == nil {
		err = fixed(d.o.File, &old.Config, &next.Config)
	}
	if err == nil && next.digest == old.digest && asked {
		d.log.Info("the configuration is read again: nothing has changed")
	}
	if err == nil {
		err = d.guard.Reload(d.options(next))
	}
	d.refused = [32]byte{}
	if err != nil {
		d.refused = digestOf(d.o.File, content(d.o.File), &old.Config)
		d.metrics.Reloaded(false, d.o.Now())
		for line := range strings.Lines(err.Error()) {
			d.log.Error("the new configuration is refused, the old one stays in force", "trouble", strings.TrimSpace(line))
		}
		return
	}
	d.setup.Store(next)
	d.metrics.Relabel(labels(next))
	d.metrics.Reloaded(true, d.o.Now())
	if next.digest != old.digest {
		d.log.Info("the new configuration is in force")
		d.warn(next)
	}
}

// fixed says what a reload cannot change: what belongs to sockets and files
// that stay open.
func fixed(file string, old, next *config.Guard) error {
	var wrong Problems
	same := func(what string, a, b any) {
		if !reflect.DeepEqual(a, b) {
			wrong = append(wrong, errors.New(file+": "+what+" cannot change while the guard serves: restart it"))
		}
	}
	same("listen", old.Listen, next.Listen)
	same("synthetic", old.Synthetic, next.Synthetic)
	same("overlap", old.Overlap, next.Overlap)
	same("metrics", old.Metrics, next.Metrics)
	same("traces", old.Traces, next.Traces)
	same("receipts", old.Receipts, next.Receipts)
	same("findings_file", old.Findings, next.Findings)
	same("log", old.Log, next.Log)
	server := func(c *config.Guard) []any {
		return []any{c.Limits.Headers, c.Limits.HeaderTime, c.Limits.IdleTime}
	}
	same("header_bytes, header_time or idle_time of limits", server(old), server(next))
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

// Every is how often a file is looked at.
const Every = time.Second
