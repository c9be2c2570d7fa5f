package lab

import "github.com/kvcanary/kvcanary/internal/lab/node"

// dirtySlot leaves in a slot what the request before has left there.
var dirtySlot = Switch{
	Name:  "dirty_slot",
	Modes: []string{"lru", "recurrent", "tail"},
	Does: "a slot that matches nothing of a prompt is taken for restored and keeps the prompt before; or an answer begins " +
		"with the short state of the one before in its slot, unless nothing else was to be done before it; or a slot that " +
		"matches in part keeps what is behind the match up to the end of its page, whoever has left it there",
	Reports: []string{
		"https://github.com/ggml-org/llama.cpp/issues/27148",
		"https://github.com/ikawrakow/ik_llama.cpp/pull/1696",
		"https://github.com/vllm-project/vllm/pull/56524",
		"https://github.com/ml-explore/mlx-lm/issues/975",
		"https://github.com/waybarrios/vllm-mlx/pull/385",
	},
	apply: func(mode string, s *Settings) {
		switch mode {
		case "recurrent":
			s.Node.Faults |= node.DirtyRecurrent
		case "tail":
			s.Node.Faults |= node.DirtyTail
		default:
			s.Node.Faults |= node.DirtyRestore
		}
	},
}
