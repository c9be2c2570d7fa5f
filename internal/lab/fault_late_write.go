package lab

import "github.com/kvcanary/kvcanary/internal/lab/handoff"

// lateWrite is the second way that disaggregated engines have leaked: nothing
// was wrong with any request, one just went away.
var lateWrite = Switch{
	Name: "late_write",
	Does: "the pages of a request that is aborted before its transfer has ended are given to the next one at once, " +
		"and a one-sided write that is under way lands in them (shows with --transport shm)",
	Reports: []string{
		"https://github.com/sgl-project/sglang/issues/24527",
		"https://github.com/sgl-project/sglang/pull/27372",
		"https://github.com/sgl-project/sglang/pull/35049",
		"https://github.com/vllm-project/vllm/pull/32255",
		"https://github.com/vllm-project/vllm/pull/56104",
	},
	OneSided: true,
	apply:    func(_ string, s *Settings) { s.Handoff.Faults |= handoff.LateWrite },
}
