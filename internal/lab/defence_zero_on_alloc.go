package lab

import (
	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/node"
	"github.com/kvcanary/kvcanary/internal/lab/prefix"
)

// zeroOnAlloc takes the harm out of reading what was not written, at the price
// of a pass over memory for every page. What it covers decides what it is worth.
var zeroOnAlloc = Switch{
	Name:  "zero_on_alloc",
	Modes: []string{"paged", "all"},
	Does: "both nodes clear a page when they give it to a request, so that a page nobody wrote holds nobody's text; " +
		"the pages of their pools, or those of the prefix cache and what slots hold too",
	Reports: []string{"https://github.com/vllm-project/vllm/pull/56524"},
	apply: func(mode string, s *Settings) {
		s.Handoff.Defences |= handoff.ZeroOnAlloc
		if mode == "all" {
			s.Prefix.Defences |= prefix.ZeroOnAlloc
			s.Node.Defences |= node.ZeroSlots
		}
	},
}
