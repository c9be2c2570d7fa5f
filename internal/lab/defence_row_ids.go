package lab

import "github.com/kvcanary/kvcanary/internal/lab/node"

// rowIDs is the cure of rows out of step. Without a fault it is on.
var rowIDs = Switch{
	Name: "row_ids",
	Does: "each row of a batch carries the id of its request, and a result is given back only to that one; a request " +
		"that would get another's ends with an error",
	Reports: []string{"https://github.com/vllm-project/vllm/pull/14645"},
	apply:   func(_ string, s *Settings) { s.Node.Defences |= node.RowIDs },
}
