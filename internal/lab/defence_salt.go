package lab

import "github.com/kvcanary/kvcanary/internal/lab/prefix"

// salt is the cure of shared prefixes. Without a fault it is on in both tiers.
var salt = Switch{
	Name:  "salt",
	Modes: []string{"all", "gpu_only", "client"},
	Does: "the keys of the prefix cache begin with the tenant, as the server knows it, in both tiers or only in the " +
		"first; or with what the client says in cache_salt, which anybody else can say",
	Reports: []string{
		"https://github.com/vllm-project/vllm/pull/17045",
		"https://github.com/sgl-project/sglang/issues/37160",
		"https://github.com/vllm-project/vllm/pull/53347",
	},
	apply: func(mode string, s *Settings) {
		switch mode {
		case "gpu_only":
			s.Prefix.Defences |= prefix.SaltCacheOnly
		case "client":
			s.Prefix.Defences |= prefix.SaltByClient
		default:
			s.Prefix.Defences |= prefix.Salt
		}
	},
}
