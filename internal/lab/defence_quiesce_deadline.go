package lab

import (
	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/node"
)

// quiesceDeadline is what engines have that would rather not keep pages from
// everybody for as long as another process likes.
var quiesceDeadline = Switch{
	Name: "quiesce_deadline",
	Does: "as quiesce, but for 5 ms at most: then the pages are given out, whatever is still written to them, as a " +
		"write that takes longer than anybody thought is",
	Reports: []string{
		"https://github.com/sgl-project/sglang/pull/35049",
		"https://github.com/vllm-project/vllm/pull/32255",
	},
	apply: func(_ string, s *Settings) {
		s.Handoff.Defences |= handoff.QuiesceFirst
		s.Node.Defences |= node.DrainDeadline
	},
}
