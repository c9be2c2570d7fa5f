package lab

import "github.com/kvcanary/kvcanary/internal/lab/prefix"

// sharedPrefix reads no wrong byte: it tells one tenant what another has sent.
var sharedPrefix = Switch{
	Name:  "shared_prefix",
	Modes: []string{"all", "tier"},
	Does: "the keys of the prefix cache have no tenant, so that a prompt which begins like another tenant's is answered " +
		"sooner and counted as cached; or only those of the second tier have none",
	Reports: []string{
		"https://github.com/vllm-project/vllm/pull/17045",
		"https://github.com/vllm-project/vllm/pull/53347",
		"https://arxiv.org/abs/2502.07776",
		"https://arxiv.org/abs/2409.20002",
		"https://github.com/sgl-project/sglang/issues/37160",
		"https://github.com/LMCache/LMCache/issues/4825",
	},
	apply: func(mode string, s *Settings) {
		if mode == "tier" {
			s.Prefix.Faults |= prefix.SharedBlobs
		} else {
			s.Prefix.Faults |= prefix.SharedPrefix
		}
	},
}
