package lab

import "github.com/kvcanary/kvcanary/internal/lab/handoff"

// uniqueIDs is the cure of reused ids. Without a fault it is on.
var uniqueIDs = Switch{
	Name:    "unique_ids",
	Does:    "requests are numbered inside the engine, whatever their clients call them, and no number comes twice",
	Reports: []string{"https://github.com/vllm-project/vllm/pull/27987"},
	apply: func(_ string, s *Settings) {
		s.Handoff.Defences |= handoff.UniqueIDs
		s.IDs.Unique = true
	},
}
