package lab

import "github.com/kvcanary/kvcanary/internal/lab/prefix"

// tierGenerations are the cure of stale reads of the second tier. Without a fault
// they are on.
var tierGenerations = Switch{
	Name: "tier_generations",
	Does: "what is put away in the second tier has a number, which is compared before it is read back and after",
	Reports: []string{
		"https://github.com/kvcache-ai/Mooncake/issues/850",
	},
	apply: func(_ string, s *Settings) { s.Prefix.Defences |= prefix.BlobGenerations },
}
