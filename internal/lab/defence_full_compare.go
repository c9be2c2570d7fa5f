package lab

import (
	"github.com/kvcanary/kvcanary/internal/lab/node"
	"github.com/kvcanary/kvcanary/internal/lab/prefix"
)

// fullCompare makes the hash a hint. Without a fault it is on.
var fullCompare = Switch{
	Name: "full_compare",
	Does: "a block that is found in the prefix cache is used only if its tokens, and all before it, are the prompt's; " +
		"so is what a slot was restored with, and an answer that was kept",
	Reports: []string{"https://github.com/InternLM/lmdeploy/pull/3353"},
	apply: func(_ string, s *Settings) {
		s.Prefix.Defences |= prefix.FullCompare
		s.Node.Defences |= node.CompareRestored
		s.Gateway.Defences |= CompareTokens
	},
}
