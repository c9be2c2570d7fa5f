package lab

import "github.com/kvcanary/kvcanary/internal/lab/node"

// rowSkew gives tokens to the wrong request of a batch, where nothing is wrong
// with any of their pages.
var rowSkew = Switch{
	Name: "row_skew",
	Does: "when an answer of a batch ends, the computation fills its row with the last one, and who gives results back " +
		"closes up the rows behind it: until these answers end, their tokens go to each other's clients",
	Reports: []string{
		"https://github.com/vllm-project/vllm/pull/14645",
		"https://github.com/vllm-project/vllm/issues/43810",
		"https://github.com/mudler/vllm.cpp/pull/2672",
		"https://github.com/vllm-project/vllm/pull/22896",
	},
	apply: func(_ string, s *Settings) { s.Node.Faults |= node.RowSkew },
}
