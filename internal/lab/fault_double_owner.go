package lab

import "github.com/kvcanary/kvcanary/internal/lab/handoff"

// doubleOwner puts pages on the free list twice.
var doubleOwner = Switch{
	Name: "double_owner",
	Does: "the pages of an answer that is aborted within a step are freed at once and again when the step ends, " +
		"so that two requests may get the same page",
	Reports: []string{
		"https://github.com/sgl-project/sglang-omni/issues/1704",
		"https://github.com/sgl-project/sglang-omni/pull/1607",
		"https://github.com/sgl-project/sglang/pull/30937",
	},
	apply: func(_ string, s *Settings) { s.Handoff.Faults |= handoff.DoubleOwner },
}
