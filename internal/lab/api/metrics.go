package api

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// collector reads the engine's state when it is scraped, under SGLang's names.
type collector struct {
	backend lab.Backend
	model   string
}

// metric is one series of a role.
type metric struct {
	name, help string
	kind       prometheus.ValueType
	value      func(role) float64
}

// role is the state of one of the two nodes.
type role struct {
	lab.State
	name            string
	pool, used      int // tokens
	running, queued int // requests
	failed          int64
}

var metrics = []metric{
	{"sglang:max_total_num_tokens", "Size of the KV pool, tokens.", prometheus.GaugeValue, func(r role) float64 { return float64(r.pool) }},
	{"sglang:context_len", "Context window, tokens.", prometheus.GaugeValue, func(r role) float64 { return float64(r.Context) }},
	{"sglang:page_size", "Tokens a page of the KV pool holds.", prometheus.GaugeValue, func(r role) float64 { return float64(r.PageSize) }},
	{"sglang:num_used_tokens", "Tokens in pages that are owned.", prometheus.GaugeValue, func(r role) float64 { return float64(r.used) }},
	{"sglang:token_usage", "Share of the KV pool that is owned, 0 to 1.", prometheus.GaugeValue, func(r role) float64 { return share(r.used, r.pool) }},
	{"sglang:num_running_reqs", "Requests that are being decoded.", prometheus.GaugeValue, func(r role) float64 { return float64(r.running) }},
	{"sglang:num_queue_reqs", "Requests that wait.", prometheus.GaugeValue, func(r role) float64 { return float64(r.queued) }},
	{"sglang:num_transfer_failed_reqs_total", "Handoffs that did not end in a commit.", prometheus.CounterValue, func(r role) float64 { return float64(r.failed) }},
}

// Describe implements [prometheus.Collector].
func (c collector) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, out) }

// Collect implements [prometheus.Collector].
func (c collector) Collect(out chan<- prometheus.Metric) {
	s := c.backend.State()
	roles := []role{
		{State: s, name: "prefill", pool: s.PrefillPool, used: s.PrefillUsed, queued: s.Waiting},
		{State: s, name: "decode", pool: s.DecodePool, used: s.DecodeUsed, running: s.Running, failed: s.FailedTransfers},
	}
	for _, m := range metrics {
		desc := prometheus.NewDesc(m.name, m.help, []string{"engine_type"}, prometheus.Labels{"model_name": c.model})
		for _, r := range roles {
			out <- prometheus.MustNewConstMetric(desc, m.kind, m.value(r), r.name)
		}
	}
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
