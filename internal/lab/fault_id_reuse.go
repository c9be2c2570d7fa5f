package lab

import (
	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/node"
)

// idReuse tells requests apart by what comes again: what clients call them, the
// time, or the number of a slot.
var idReuse = Switch{
	Name:  "id_reuse",
	Modes: []string{"client", "trace_id", "coarse_clock", "metadata_slot"},
	Does: "a request is known inside the engine by what its client calls it (X-Request-Id, rid or request_id), or by its " +
		"trace (traceparent), so that what is late for one that was cancelled finds the next of the same name; or answers " +
		"find their clients by the second in which they have come; or what ends a transfer is written into a numbered slot, " +
		"and when its request has gone the next to get the slot takes it for its own (shows with --write-lag)",
	Reports: []string{
		"https://github.com/vllm-project/vllm/pull/27987",
		"https://github.com/vllm-project/vllm/issues/10583",
		"https://github.com/sgl-project/sglang/pull/12205",
		"https://github.com/sgl-project/sglang/issues/17259",
		"https://github.com/sgl-project/sglang/pull/27374",
		"https://github.com/vllm-project/vllm-omni/issues/2048",
		"https://github.com/ai-dynamo/dynamo/issues/8601",
	},
	apply: func(mode string, s *Settings) {
		switch mode {
		case "coarse_clock":
			s.IDs.Clock = true
			return
		case "metadata_slot":
			s.Node.Faults |= node.MetadataSlot
			return
		}
		s.Handoff.Faults |= handoff.IDReuse
		s.IDs.Traces, s.IDs.Outbox = mode == "trace_id", true
	},
}
