package lab

import "github.com/kvcanary/kvcanary/internal/lab/node"

// dirtySlot leaves in a slot what the request before has left there.
var dirtySlot = Switch{
	Name:  "dirty_slot",
	Modes: []string{"recurrent"},
	Does:  "an answer begins with the short state that the last one in its slot has ended with",
	Reports: []string{
		"https://github.com/ikawrakow/ik_llama.cpp/pull/1696",
		"https://github.com/vllm-project/vllm/pull/56524",
	},
	apply: func(_ string, s *Settings) { s.Node.Faults |= node.DirtyRecurrent },
}
