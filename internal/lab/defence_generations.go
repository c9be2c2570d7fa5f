package lab

import "github.com/kvcanary/kvcanary/internal/lab/handoff"

// generations tell a page that was given out again from itself. Without a
// fault they are on.
var generations = Switch{
	Name: "generations",
	Does: "each reservation has a number, and a page is written, sent and read only if it is still under the " +
		"number that this was meant for; a one-sided write cannot be asked; so have the gateway's buffers",
	Reports: []string{
		"https://github.com/kvcache-ai/Mooncake/issues/850",
		"https://github.com/sgl-project/sglang/pull/32564",
	},
	apply: func(_ string, s *Settings) {
		s.Handoff.Defences |= handoff.Generations
		s.Gateway.Defences |= BufferGenerations
	},
}
