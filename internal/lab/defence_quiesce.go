package lab

import "github.com/kvcanary/kvcanary/internal/lab/handoff"

// quiesce is the cure of late writes. Without a fault it is on.
var quiesce = Switch{
	Name: "quiesce",
	Does: "pages of a request that ends before its transfer has ended are nobody's until prefill says that nothing " +
		"is written to them any more; if it never says so they stay nobody's until it is known to be dead",
	Reports: []string{
		"https://github.com/sgl-project/sglang/pull/35049",
		"https://github.com/sgl-project/sglang/pull/38961",
		"https://github.com/vllm-project/vllm/pull/32255",
	},
	apply: func(_ string, s *Settings) { s.Handoff.Defences |= handoff.QuiesceFirst },
}
