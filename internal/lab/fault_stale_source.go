package lab

import "github.com/kvcanary/kvcanary/internal/lab/handoff"

// staleSource makes faithful copies of the wrong bytes: no checksum of the way
// between the nodes notices.
var staleSource = Switch{
	Name: "stale_source",
	Does: "prefill gives its pages to the next prompt when their transfer has begun, so that what is sent may be " +
		"what the next prompt has written there",
	Reports: []string{
		"https://github.com/NVIDIA/TensorRT-LLM/issues/8813",
		"https://github.com/sgl-project/sglang/pull/35769",
		"https://github.com/LMCache/LMCache/issues/4385",
		"https://github.com/kvcache-ai/Mooncake/issues/850",
	},
	apply: func(_ string, s *Settings) { s.Handoff.Faults |= handoff.StaleSource },
}
