package lab

import "github.com/kvcanary/kvcanary/internal/lab/handoff"

// idReuse lets clients choose what requests are told apart by.
var idReuse = Switch{
	Name: "id_reuse",
	Does: "a request is known inside the engine by what its client calls it (header X-Request-Id), so that what is " +
		"late for one that was cancelled finds the next of the same name",
	Reports: []string{
		"https://github.com/vllm-project/vllm/pull/27987",
		"https://github.com/vllm-project/vllm/issues/10583",
		"https://github.com/sgl-project/sglang/pull/12205",
		"https://github.com/sgl-project/sglang/issues/17259",
		"https://github.com/vllm-project/vllm-omni/issues/2048",
	},
	apply: func(_ string, s *Settings) { s.Handoff.Faults |= handoff.IDReuse },
}
