package guard

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kvcanary/kvcanary/internal/guard/overlap"
	"github.com/kvcanary/kvcanary/internal/guard/watch"
)

// Words that labels take. Whatever is not among them is counted as other, so
// that nobody outside decides how many series there are.
var (
	metricDialects = []string{"openai", "completions", "responses", "anthropic", "ollama", other}
	metricVerdicts = []string{"pass", "count", "refuse", other}
	metricFindings = []string{watch.Leak, watch.FailOpen, watch.OverSize, watch.Trouble, watch.Broken, watch.Unseen, overlap.Kind, other}
	metricClasses  = []string{"2xx", "3xx", "4xx", "5xx", "none"}
)

const other = "other"

// Metrics counts what a guard does, under names kvcanary_guard_*. A nil Metrics
// counts nothing.
type Metrics struct {
	requests   *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	overhead   *prometheus.HistogramVec
	firstByte  *prometheus.HistogramVec
	admissions *prometheus.CounterVec
	findings   *prometheus.CounterVec
	changed    *prometheus.CounterVec
	tenants    *prometheus.CounterVec
	held       prometheus.Histogram
	bodies     prometheus.Histogram
	reloads    *prometheus.CounterVec
	reloaded   prometheus.Gauge
	inForce    prometheus.Gauge
	dropped    prometheus.Counter
	spans      prometheus.Counter

	state *stateCollector

	mu     sync.Mutex
	known  map[string]bool // upstreams
	names  map[string]bool // tenants
	fields map[string]bool // that may be counted as changed
	reason map[string]bool
}

// Labels are the words that labels may take: names of the configuration and of
// tables, all of them few.
type Labels struct {
	Upstreams, Tenants []string
	Changed            []string // fields and headers that are stripped or overwritten; one that ends in - stands for all that begin so
	Reasons            []string // of admission
}

// State is what is the case at a moment.
type State struct {
	InFlight  int  // requests
	HeldBytes int  // of all streams together
	Ready     bool // /readyz says so
	Upstreams []UpstreamState
}

// UpstreamState is State of one upstream.
type UpstreamState struct {
	Name     string
	Up       bool
	Unjudged bool      // no limit is asked for: admission is off
	Limit    int       // tokens; 0 for unknown
	At       time.Time // when the limit was known last; zero for never
}

// NewMetrics makes the metrics and registers them. state is asked at each
// collection; now is its clock.
func NewMetrics(reg prometheus.Registerer, l Labels, state func() State, now func() time.Time) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "kvcanary", Subsystem: "guard", Name: name, Help: help}, labels)
	}
	buckets := func(name, help string, buckets []float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Namespace: "kvcanary", Subsystem: "guard", Name: name, Help: help, Buckets: buckets}
	}
	times := func(name, help string, least float64, n int) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(buckets(name, help, prometheus.ExponentialBuckets(least, 2, n)), []string{"upstream"})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "kvcanary", Subsystem: "guard", Name: name, Help: help})
	}
	bytes := prometheus.ExponentialBuckets(64, 4, 12) // 64 bytes to 256 MiB
	m := &Metrics{
		requests:  counter("requests_total", "Requests that have ended, by class of the status that the client was given; none for a client that had gone.", "upstream", "dialect", "code"),
		tenants:   counter("tenant_requests_total", "Requests that have ended, by tenant of the configuration.", "tenant"),
		duration:  times("request_duration_seconds", "Time from a request's arrival to the last byte of its answer.", 0.01, 14),
		firstByte: times("first_byte_seconds", "Time from a request's arrival to the first byte of its answer.", 0.001, 16),
		overhead: prometheus.NewHistogramVec(buckets("overhead_seconds",
			"The guard's own share of a request: its time without that spent waiting for the upstream or the client.", shares()), []string{"upstream"}),
		admissions: counter("admissions_total", "Decisions on prompts, by verdict and reason.", "upstream", "verdict", "reason"),
		findings:   counter("findings_total", "Findings in answers, by kind.", "upstream", "kind"),
		changed:    counter("changed_fields_total", "Requests in which a field or header was removed or overwritten, by its name.", "field"),
		held:       prometheus.NewHistogram(buckets("held_bytes", "Most bytes of an answer that were held back at once.", bytes)),
		bodies:     prometheus.NewHistogram(buckets("request_body_bytes", "Bytes of the bodies that clients sent.", bytes)),
		reloads:    counter("config_reloads_total", "Attempts to read the configuration again, by result.", "result"),
		reloaded:   gauge("config_last_reload_success_timestamp_seconds", "When the configuration in force was read."),
		inForce:    gauge("config_last_reload_successful", "Whether the last attempt to read the configuration succeeded."),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{Namespace: "kvcanary", Subsystem: "guard", Name: "findings_dropped_total",
			Help: "Findings that were counted and logged but could not be written or sealed."}),
		spans: prometheus.NewCounter(prometheus.CounterOpts{Namespace: "kvcanary", Subsystem: "guard", Name: "spans_dropped_total",
			Help: "Spans of traces that could not be sent to the collector."}),
		state: newStateCollector(state, now),
	}
	reg.MustRegister(m.requests, m.tenants, m.duration, m.firstByte, m.overhead, m.admissions, m.findings, m.changed,
		m.held, m.bodies, m.reloads, m.reloaded, m.inForce, m.dropped, m.spans, m.state)
	for _, r := range []string{"success", "failure"} {
		m.reloads.WithLabelValues(r)
	}
	m.Relabel(l)
	return m
}

// shares are the buckets of the guard's own share, seconds: closer where most of
// them lie.
func shares() []float64 {
	all := append(prometheus.ExponentialBuckets(5e-6, 2, 16), 7.5e-6, 15e-6, 25e-6, 30e-6, 35e-6, 60e-6)
	slices.Sort(all)
	return all
}

// Relabel takes the labels of a new configuration. Series of labels that are
// left keep their counts, those of new ones start at 0, so that increases show
// from the first; those of upstreams and tenants that are gone end.
func (m *Metrics) Relabel(l Labels) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(l)
	m.known, m.names = setOf(l.Upstreams, other), setOf(l.Tenants)
	m.fields, m.reason = setOf(l.Changed, other), setOf(l.Reasons, other)
	for u := range m.known {
		for _, d := range metricDialects {
			for _, c := range metricClasses {
				m.requests.WithLabelValues(u, d, c)
			}
		}
		for _, k := range metricFindings {
			m.findings.WithLabelValues(u, k)
		}
		for _, v := range metricVerdicts {
			for r := range m.reason {
				m.admissions.WithLabelValues(u, v, r)
			}
		}
		m.duration.WithLabelValues(u)
		m.firstByte.WithLabelValues(u)
		m.overhead.WithLabelValues(u)
	}
	for t := range m.names {
		m.tenants.WithLabelValues(t)
	}
	for f := range m.fields {
		m.changed.WithLabelValues(f)
	}
}

// forget ends the series of what the new labels lack.
func (m *Metrics) forget(l Labels) {
	now := setOf(l.Upstreams, other)
	for u := range m.known {
		if now[u] {
			continue
		}
		gone := prometheus.Labels{"upstream": u}
		m.requests.DeletePartialMatch(gone)
		m.findings.DeletePartialMatch(gone)
		m.admissions.DeletePartialMatch(gone)
		m.duration.DeletePartialMatch(gone)
		m.firstByte.DeletePartialMatch(gone)
		m.overhead.DeletePartialMatch(gone)
	}
	tenants := setOf(l.Tenants)
	for t := range m.names {
		if !tenants[t] {
			m.tenants.DeleteLabelValues(t)
		}
	}
}

// Observe counts a request that has ended.
func (m *Metrics) Observe(r *Record) {
	if m == nil {
		return
	}
	m.mu.Lock()
	u, dialect, reason := among(m.known, r.Upstream), r.Dialect, among(m.reason, r.Reason)
	tenant := m.names[r.Tenant]
	m.mu.Unlock()
	m.requests.WithLabelValues(u, word(metricDialects, dialect), class(r.Status)).Inc()
	if tenant {
		m.tenants.WithLabelValues(r.Tenant).Inc()
	}
	m.duration.WithLabelValues(u).Observe(r.Total.Seconds())
	m.overhead.WithLabelValues(u).Observe(own(r).Seconds())
	if r.FirstByte > 0 {
		m.firstByte.WithLabelValues(u).Observe(r.FirstByte.Seconds())
	}
	if r.Verdict != "" {
		m.admissions.WithLabelValues(u, word(metricVerdicts, r.Verdict), reason).Inc()
	}
	for _, f := range r.Findings {
		m.findings.WithLabelValues(u, word(metricFindings, f.Kind)).Inc()
	}
	for _, name := range r.Changed {
		m.changed.WithLabelValues(m.field(name)).Inc()
	}
	m.held.Observe(float64(r.Held))
	m.bodies.Observe(float64(r.BodyBytes))
}

// field is the label of what was changed: its name, or the beginning of it that
// the table knows.
func (m *Metrics) field(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at := name; at != ""; at = at[:len(at)-1] {
		if m.fields[at] && (at == name || at[len(at)-1] == '-') {
			return at
		}
	}
	return other
}

// Reloaded counts an attempt to read the configuration.
func (m *Metrics) Reloaded(ok bool, at time.Time) {
	if m == nil {
		return
	}
	if !ok {
		m.reloads.WithLabelValues("failure").Inc()
		m.inForce.Set(0)
		return
	}
	m.reloads.WithLabelValues("success").Inc()
	m.inForce.Set(1)
	m.reloaded.Set(float64(at.UnixNano()) / 1e9)
}

// Dropped counts a finding that could not be kept.
func (m *Metrics) Dropped() {
	if m != nil {
		m.dropped.Inc()
	}
}

// SpansDropped counts spans that could not be sent.
func (m *Metrics) SpansDropped(n int) {
	if m != nil {
		m.spans.Add(float64(n))
	}
}

func class(status int) string {
	if status < 200 || status > 599 {
		return "none"
	}
	return strconv.Itoa(status/100) + "xx"
}

// word is s if words has it.
func word(words []string, s string) string {
	for _, w := range words {
		if w == s {
			return s
		}
	}
	return other
}

func among(set map[string]bool, s string) string {
	if set[s] {
		return s
	}
	return other
}

func setOf(words []string, more ...string) map[string]bool {
	out := map[string]bool{}
	for _, w := range words {
		out[w] = true
	}
	for _, w := range more {
		out[w] = true
	}
	return out
}

// stateCollector turns a State into gauges when it is asked.
type stateCollector struct {
	state func() State
	now   func() time.Time

	inFlight, held, ready, up, limit, age *prometheus.Desc
}

func newStateCollector(state func() State, now func() time.Time) *stateCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("kvcanary_guard_"+name, help, labels, nil)
	}
	return &stateCollector{
		state: state, now: now,
		inFlight: desc("in_flight_requests", "Requests under way."),
		held:     desc("held_bytes_now", "Bytes of answers that are held back now, of all streams together."),
		ready:    desc("ready", "Whether /readyz says that requests can be served."),
		up:       desc("upstream_up", "Whether the upstream was reached when it was last tried.", "upstream"),
		limit:    desc("limit_tokens", "Most tokens that a prompt may have; 0 while that is not known, absent where admission is off.", "upstream"),
		age:      desc("limit_age_seconds", "Time since the limit was last confirmed; absent while none has been known.", "upstream"),
	}
}

// Describe is of prometheus.Collector.
func (c *stateCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.inFlight, c.held, c.ready, c.up, c.limit, c.age} {
		out <- d
	}
}

// Collect is of prometheus.Collector.
func (c *stateCollector) Collect(out chan<- prometheus.Metric) {
	s := c.state()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(c.inFlight, float64(s.InFlight))
	gauge(c.held, float64(s.HeldBytes))
	gauge(c.ready, truth(s.Ready))
	for _, u := range s.Upstreams {
		gauge(c.up, truth(u.Up), u.Name)
		if u.Unjudged {
			continue
		}
		gauge(c.limit, float64(u.Limit), u.Name)
		if !u.At.IsZero() {
			gauge(c.age, max(0, c.now().Sub(u.At).Seconds()), u.Name)
		}
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
