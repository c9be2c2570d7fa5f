package lab

import "github.com/kvcanary/kvcanary/internal/lab/prefix"

// earlyPublish poisons the prefix cache: what is found under the right key was
// never written, or not all of it.
var earlyPublish = Switch{
	Name:  "early_publish",
	Modes: []string{"never_written", "last_slot", "copy_race"},
	Does: "a block of the prefix cache can be found from the moment its prompt is scheduled, and stays so when that is " +
		"aborted; or when all but its last slot is computed; or it is copied while half of it is still to be computed: " +
		"who finds it reads what the page held before",
	Reports: []string{
		"https://github.com/vllm-project/vllm/pull/56525",
		"https://github.com/sgl-project/sglang/issues/38319",
		"https://github.com/vllm-project/vllm/issues/54193",
		"https://github.com/vllm-project/vllm/issues/45704",
		"https://github.com/LMCache/LMCache/issues/207",
	},
	apply: func(mode string, s *Settings) {
		switch mode {
		case "last_slot":
			s.Prefix.Faults |= prefix.LastSlot
		case "copy_race":
			s.Prefix.Faults |= prefix.CopyRace
		default:
			s.Prefix.Faults |= prefix.NeverWritten
		}
	},
}
