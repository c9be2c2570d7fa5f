package lab

import "github.com/kvcanary/kvcanary/internal/lab/prefix"

// thinKey takes different prompts for the same.
var thinKey = Switch{
	Name:  "thin_key",
	Modes: []string{"weak_hash", "omit_media", "omit_adapter"},
	Does: "the key of a block of the prefix cache has few bits, and nobody compares the tokens; or it leaves out the " +
		"pictures behind placeholder tokens, or the adapter: another prompt's KV is used. Keys have no tenant either, " +
		"unless salt is named",
	Reports: []string{
		"https://github.com/vllm-project/vllm/pull/12621",
		"https://github.com/NVIDIA/Megatron-LM/pull/4158",
		"https://github.com/LMCache/LMCache/issues/3301",
		"https://github.com/sgl-project/sglang/issues/2151",
		"https://github.com/ROCm/ATOM/pull/2183",
		"https://github.com/vllm-project/vllm/issues/42125",
		"https://github.com/ggml-org/llama.cpp/issues/26207",
	},
	apply: func(mode string, s *Settings) {
		switch mode {
		case "omit_media":
			s.Prefix.Faults |= prefix.OmitMedia
		case "omit_adapter":
			s.Prefix.Faults |= prefix.OmitAdapter
		default:
			s.Prefix.Faults |= prefix.WeakHash
		}
	},
}
