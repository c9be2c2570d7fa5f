package guard

import (
	"context"
	"net/http"
	"time"

	"github.com/kvcanary/kvcanary/internal/guard/admit"
	"github.com/kvcanary/kvcanary/internal/guard/request"
	"github.com/kvcanary/kvcanary/internal/guard/shape"
)

// Admission says which prompts may reach an engine. Zero numbers get the
// defaults of [admit.GateOptions].
type Admission struct {
	admit.Policy
	NoCount bool          // what bytes do not decide is not counted, and so not judged
	Margin  int           // tokens kept free below every limit
	Refresh time.Duration // between two measurements of the limits
	Timeout time.Duration // of a measurement, and of a count
	AtOnce  int           // counts of one upstream at once
	Keep    int           // counts that are remembered
}

// makeGate makes what decides over the prompts for an upstream.
func (u *upstream) makeGate(o *Options) {
	a := o.Admission
	u.gate = admit.NewGate(admit.GateOptions{
		Upstream: u.Name, URL: u.BaseURL, Engine: u.Engine, Key: u.Key, Workers: u.Workers, Policy: a.Policy, Given: u.Given,
		Client: &http.Client{Transport: u.asking(), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		Margin: a.Margin, Refresh: a.Refresh, NoCount: a.NoCount, AtOnce: a.AtOnce, Keep: a.Keep, Timeout: a.Timeout, Now: o.Now, Log: o.Log,
	})
}

// asking is for what the guard itself asks an upstream. Each question has a
// connection of its own, for the reason that conn has.
func (u *upstream) asking() *http.Transport {
	return &http.Transport{
		DialContext:       u.reach,
		TLSClientConfig:   u.tls,
		DisableKeepAlives: true,
		// An upstream is reached as it is configured, by requests as by questions.
		Proxy:                  nil,
		MaxResponseHeaderBytes: int64(u.limits.HeaderBytes),
	}
}

// engine is what the upstream is, as configured or as it turned out; "" while
// that is not known.
func (u *upstream) engine() string {
	if u.Engine != "" && u.Engine != "auto" {
		return u.Engine
	}
	return u.gate.Limiter.Engine()
}

// judges says that a limit is known to judge by, or that none is called for.
func (u *upstream) judges(now time.Time) bool {
	p := u.gate.Policy
	if p.Off || p.Open {
		return true
	}
	l := u.gate.Limiter.Limit("")
	return l.Tokens > 0 && (l.At.IsZero() || p.MaxAge == 0 || now.Sub(l.At) <= p.MaxAge)
}

// admit decides whether a prompt may go to an upstream. body is nil where it is
// not there to be counted.
func (t *trip) admit(u *upstream, f *request.Facts, length int64, header http.Header, body []byte) error {
	if t.route.counts {
		return nil
	}
	b := admit.BodyOf(*f)
	b.Bytes = max(b.Bytes, length)
	limit := u.gate.Limiter.Limit(f.Model)
	d, s := u.gate.Decide(f.Model, b), admit.Size{}
	if d.Verdict == admit.Count && body != nil {
		from := t.s.Now()
		d, s = u.gate.Count(t.ctx, f.Model, b, admit.Question{Dialect: t.route.dialect, Tenant: t.tenant.Name, Header: header, Body: body})
		t.rec.Blocked += t.s.Now().Sub(from)
		if err := context.Cause(t.ctx); err != nil {
			return err
		}
	}
	t.rec.LimitTokens, t.counted, t.exact = limit.Tokens, 0, false
	switch {
	case d.Reason == admit.ByCount && s.AtLeast == s.AtMost:
		t.counted, t.exact = s.AtMost, true
	case f.Opaque == 0:
		t.counted = int(f.Bytes)
	}
	t.rec.CountedTokens = 0
	if t.exact {
		t.rec.CountedTokens = t.counted
	}
	t.rec.Verdict, t.rec.Reason = string(d.Verdict), string(d.Reason)
	switch d.Verdict {
	case admit.Pass:
		return nil
	case admit.Refuse:
		if s.AtLeast > 0 && s.AtLeast == s.AtMost {
			t.rec.CountedTokens = s.AtLeast
		}
		return d.Error
	}
	t.rec.Verdict = string(admit.Refuse)
	if t.s.Admission.Open {
		t.rec.Verdict, t.rec.Reason = string(admit.Pass), string(admit.NotCounted)
		return nil
	}
	return shape.Error{Status: http.StatusBadRequest, Code: "not_counted",
		Message: "a request this long is sent on while it comes, and its tool definitions may make it longer than the engine can hold: send fewer, or set structured_factor"}
}

// admission is the value of the header that says how a request was judged.
func admission(verdict, reason string) string {
	switch {
	case verdict != string(admit.Pass):
		return verdict
	case reason == string(admit.ByCount):
		return "counted"
	case reason == string(admit.ByBound):
		return "pass"
	case reason == string(admit.NotAsked):
		return "off"
	}
	return "unjudged"
}

// measure has every upstream's limits measured once.
func (s *setup) measure(ctx context.Context) {
	s.each(func(u *upstream) {
		if !u.gate.Policy.Off {
			u.gate.Limiter.Measure(ctx)
		}
	})
}
