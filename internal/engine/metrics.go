package engine

import (
	"bytes"
	"context"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// maxMetrics is how much of /metrics is read, bytes. An engine with more has
// labels without bound, and is not understood.
const maxMetrics = 32 << 20

// samples are the metrics of an engine by name.
type samples map[string]*dto.MetricFamily

// metrics reads /metrics once for all engines that look there.
func (a *asker) metrics(ctx context.Context) samples {
	if a.scraped == nil {
		a.scraped = parseMetrics(a.readUpTo(ctx, "/metrics", maxMetrics))
	}
	return a.scraped
}

// parseMetrics reads the Prometheus text format. What stands before a mistake
// counts.
func parseMetrics(text []byte) samples {
	if len(text) > maxMetrics {
		return samples{}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	found, _ := parser.TextToMetricFamilies(bytes.NewReader(text))
	if found == nil {
		return samples{}
	}
	return found
}

// each calls f for every series of a metric with its labels.
func (s samples) each(name string, f func(value float64, label func(string) string)) bool {
	family := s[name]
	if family == nil {
		return false
	}
	for _, m := range family.GetMetric() {
		f(valueOf(m), func(name string) string {
			for _, l := range m.GetLabel() {
				if l.GetName() == name {
					return l.GetValue()
				}
			}
			return ""
		})
	}
	return len(family.GetMetric()) > 0
}

// least is the smallest value of all series of a gauge, 0 if there are none.
func (s samples) least(name string) count {
	var n Number
	s.each(name, func(v float64, _ func(string) string) { n.least(countOf(v), name) })
	return count(n.Value)
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	case m.Counter != nil:
		return m.Counter.GetValue()
	}
	return m.Untyped.GetValue()
}

// countOf is a number of tokens that stands as a float; what is none reads as 0.
func countOf(v float64) count {
	if !(v >= 1 && v <= maxCount) {
		return 0
	}
	return count(v)
}

// times multiplies counts; 0 if one is not known or the product is no count.
func times(a, b count) count {
	if a <= 0 || b <= 0 || a > maxCount/b {
		return 0
	}
	return a * b
}
