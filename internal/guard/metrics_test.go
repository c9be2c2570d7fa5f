package guard

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

var metricLabels = Labels{
	Upstreams: []string{"glm", "small"}, Tenants: []string{"alpha"},
	Changed: []string{"cache_salt", "rid", "X-Session-"}, Reasons: []string{"fits", "prompt_too_long"},
}

func newTestMetrics(state State) (*prometheus.Registry, *Metrics) {
	reg := prometheus.NewPedanticRegistry()
	at := time.Unix(1_000_000, 0)
	return reg, NewMetrics(reg, metricLabels, func() State { return state }, func() time.Time { return at })
}

func TestMetricsFollowTheConventions(t *testing.T) {
	reg, m := newTestMetrics(State{Upstreams: []UpstreamState{{Name: "glm", Up: true, Limit: 10, At: time.Unix(999_990, 0)}}})
	m.Observe(&Record{Upstream: "glm", Dialect: "openai", Status: 200})
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	families, err := reg.Gather()
	if err != nil || len(families) < 20 {
		t.Fatalf("%d families, %v", len(families), err)
	}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "kvcanary_guard_") || !strings.HasSuffix(f.GetHelp(), ".") {
			t.Errorf("%s: %q", f.GetName(), f.GetHelp())
		}
	}
}

// Counters are there before the first event, so that increase() shows it.
func TestCountersStartAtZero(t *testing.T) {
	reg, _ := newTestMetrics(State{})
	for _, c := range []struct {
		name string
		want int
	}{
		{"kvcanary_guard_requests_total", 3 * len(metricDialects) * len(metricClasses)},
		{"kvcanary_guard_findings_total", 3 * len(metricFindings)},
		{"kvcanary_guard_admissions_total", 3 * len(metricVerdicts) * 3},
		{"kvcanary_guard_changed_fields_total", 4},
		{"kvcanary_guard_tenant_requests_total", 1},
		{"kvcanary_guard_config_reloads_total", 2},
		{"kvcanary_guard_findings_dropped_total", 1},
	} {
		if n, err := testutil.GatherAndCount(reg, c.name); err != nil || n != c.want {
			t.Errorf("%s has %d series, want %d, %v", c.name, n, c.want, err)
		}
	}
}

func TestWhatIsCounted(t *testing.T) {
	reg, m := newTestMetrics(State{
		InFlight: 3, HeldBytes: 17, Ready: true,
		Upstreams: []UpstreamState{{Name: "glm", Up: true, Limit: 10_640, At: time.Unix(999_970, 0)}, {Name: "small"}, {Name: "off", Unjudged: true}},
	})
	m.Observe(&Record{
		Upstream: "glm", Tenant: "alpha", Dialect: "openai", Status: 200, Verdict: "pass", Reason: "fits",
		Total: 2 * time.Second, Blocked: 2*time.Second - 12*time.Microsecond, FirstByte: time.Second,
		Changed: []string{"X-Session-Planted", "cache_salt", "rid"}, Findings: []Finding{{Kind: "leak"}, {Kind: "leak"}, {Kind: "fail_open"}}, Held: 40,
	})
	m.Reloaded(true, time.Unix(999_000, 0))
	m.Reloaded(false, time.Unix(999_999, 0))
	m.Dropped()
	shown := exposition(t, reg)
	for _, want := range []string{
		`kvcanary_guard_requests_total{code="2xx",dialect="openai",upstream="glm"} 1`,
		`kvcanary_guard_tenant_requests_total{tenant="alpha"} 1`,
		`kvcanary_guard_admissions_total{reason="fits",upstream="glm",verdict="pass"} 1`,
		`kvcanary_guard_findings_total{kind="leak",upstream="glm"} 2`,
		`kvcanary_guard_findings_total{kind="fail_open",upstream="glm"} 1`,
		`kvcanary_guard_changed_fields_total{field="cache_salt"} 1`,
		`kvcanary_guard_changed_fields_total{field="X-Session-"} 1`,
		`kvcanary_guard_overhead_seconds_bucket{upstream="glm",le="1e-05"} 0`,
		`kvcanary_guard_overhead_seconds_bucket{upstream="glm",le="2e-05"} 1`,
		`kvcanary_guard_held_bytes_bucket{le="64"} 1`,
		`kvcanary_guard_in_flight_requests 3`,
		`kvcanary_guard_held_bytes_now 17`,
		`kvcanary_guard_ready 1`,
		`kvcanary_guard_upstream_up{upstream="glm"} 1`,
		`kvcanary_guard_upstream_up{upstream="small"} 0`,
		`kvcanary_guard_limit_tokens{upstream="glm"} 10640`,
		`kvcanary_guard_limit_age_seconds{upstream="glm"} 30`,
		`kvcanary_guard_config_reloads_total{result="success"} 1`,
		`kvcanary_guard_config_reloads_total{result="failure"} 1`,
		`kvcanary_guard_config_last_reload_successful 0`,
		`kvcanary_guard_config_last_reload_success_timestamp_seconds 999000`,
		`kvcanary_guard_findings_dropped_total 1`,
	} {
		if !strings.Contains(shown, want+"\n") {
			t.Errorf("lacks %s", want)
		}
	}
	for _, not := range []string{`limit_age_seconds{upstream="small"}`, `limit_tokens{upstream="off"}`} {
		if strings.Contains(shown, not) {
			t.Errorf("shows %s", not)
		}
	}
}

// Nobody outside decides how many series there are, or writes into one.
func TestStrangeWordsMakeNoSeries(t *testing.T) {
	reg, m := newTestMetrics(State{})
	before := exposition(t, reg)
	for _, word := range []string{"planted", "planted2", `planted"} 1`} {
		m.Observe(&Record{Upstream: word, Tenant: word, Dialect: word, Model: word, Verdict: word, Reason: word, ID: word, Trouble: word,
			Changed: []string{word}, Findings: []Finding{{Kind: word, From: word, Explain: word}}, Status: 999, Code: word})
	}
	after := exposition(t, reg)
	if strings.Contains(after, "planted") {
		t.Error("a word of the outside shows")
	}
	if a, b := strings.Count(before, "\n"), strings.Count(after, "\n"); a != b {
		t.Errorf("%d lines before, %d after", a, b)
	}
	if !strings.Contains(after, `kvcanary_guard_requests_total{code="none",dialect="other",upstream="other"} 3`) {
		t.Error("strangers are not counted as other")
	}
}

func TestSeriesFollowTheConfiguration(t *testing.T) {
	reg, m := newTestMetrics(State{})
	m.Observe(&Record{Upstream: "glm", Tenant: "alpha", Dialect: "openai", Status: 200})
	m.Relabel(Labels{Upstreams: []string{"glm", "large"}, Tenants: []string{"beta"}, Reasons: metricLabels.Reasons})
	shown := exposition(t, reg)
	for want, is := range map[string]bool{
		`requests_total{code="2xx",dialect="openai",upstream="glm"} 1`:   true,
		`requests_total{code="2xx",dialect="openai",upstream="large"} 0`: true,
		`upstream="small"`:                       false,
		`tenant_requests_total{tenant="alpha"}`:  false,
		`tenant_requests_total{tenant="beta"} 0`: true,
	} {
		if strings.Contains(shown, want) != is {
			t.Errorf("%s: want %v", want, is)
		}
	}
}

func exposition(t *testing.T, reg *prometheus.Registry) string {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d", w.Code)
	}
	return w.Body.String()
}
