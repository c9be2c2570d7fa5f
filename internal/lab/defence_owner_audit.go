package lab

import "github.com/kvcanary/kvcanary/internal/lab/node"

// ownerAudit notices what the free list has got wrong. Without a fault it is on.
var ownerAudit = Switch{
	Name: "owner_audit",
	Does: "before each step decode looks for pages that are in two tables, and ends the requests that share one",
	Reports: []string{
		"https://github.com/sgl-project/sglang-omni/issues/1704",
		"https://github.com/sgl-project/sglang-omni/pull/1780",
	},
	apply: func(_ string, s *Settings) { s.Node.Defences |= node.OwnerAudit },
}
