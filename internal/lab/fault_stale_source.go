package lab

import (
	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/prefix"
)

// staleSource makes faithful copies of the wrong bytes: no checksum of the way
// between the nodes notices.
var staleSource = Switch{
	Name:  "stale_source",
	Modes: []string{"transfer", "tier"},
	Does: "prefill gives its pages to the next prompt when their transfer has begun, so that what is sent may be " +
		"what the next prompt has written there; or what was put away in the second tier is read where it was put, " +
		"whatever is there by now",
	Reports: []string{
		"https://github.com/NVIDIA/TensorRT-LLM/issues/8813",
		"https://github.com/sgl-project/sglang/pull/35769",
		"https://github.com/LMCache/LMCache/issues/4385",
		"https://github.com/kvcache-ai/Mooncake/issues/850",
	},
	apply: func(mode string, s *Settings) {
		if mode == "tier" {
			s.Prefix.Faults |= prefix.StaleBlob
		} else {
			s.Handoff.Faults |= handoff.StaleSource
		}
	},
}
