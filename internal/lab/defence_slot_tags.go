package lab

import "github.com/kvcanary/kvcanary/internal/lab/node"

// slotTags is the cure of reused metadata slots. Without a fault it is on.
var slotTags = Switch{
	Name: "slot_tags",
	Does: "the record of a finished transfer says which request it is of, and a request takes no other from its slot: " +
		"it waits for its own",
	Reports: []string{
		"https://github.com/sgl-project/sglang/pull/27374",
		"https://github.com/sgl-project/sglang/issues/17259",
	},
	apply: func(_ string, s *Settings) { s.Node.Defences |= node.SlotTags },
}
