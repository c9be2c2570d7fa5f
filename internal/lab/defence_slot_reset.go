package lab

import "github.com/kvcanary/kvcanary/internal/lab/node"

// slotReset is the cure of dirty slots. Without a fault it is on.
var slotReset = Switch{
	Name: "slot_reset",
	Does: "what goes with a slot beside pages is cleared when a request gets it, and of a prompt that it has kept only as " +
		"much is used as matches",
	Reports: []string{"https://github.com/ikawrakow/ik_llama.cpp/pull/1696", "https://github.com/ggml-org/llama.cpp/pull/27624"},
	apply:   func(_ string, s *Settings) { s.Node.Defences |= node.SlotReset },
}
