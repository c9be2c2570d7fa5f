package lab

import "github.com/kvcanary/kvcanary/internal/lab/handoff"

// checksum is what engines have begun to ship. It answers whether the bytes
// have arrived, not whose they are.
var checksum = Switch{
	Name:  "checksum",
	Modes: []string{"receiver", "sender"},
	Does: "a checksum of a prompt's pages, taken when they are computed, goes with them; decode compares it with all " +
		"that it has reserved, or with as much as was sent",
	Reports: []string{
		"https://github.com/sgl-project/sglang/pull/39500",
		"https://github.com/sgl-project/sglang/pull/39729",
	},
	apply: func(mode string, s *Settings) {
		if mode == "sender" {
			s.Handoff.Defences |= handoff.ChecksumSender
		} else {
			s.Handoff.Defences |= handoff.ChecksumReceiver
		}
	},
}

// checksumAbsent is the switch inside that one which decides about the incident.
var checksumAbsent = Switch{
	Name:  "checksum_absent",
	Modes: []string{"reject", "skip"},
	Does: "the checksum is left out for a prompt that prefill has refused, and decode refuses what comes without one, " +
		"or compares nothing then; implies checksum",
	Reports: []string{"https://github.com/sgl-project/sglang/pull/39500"},
	apply: func(mode string, s *Settings) {
		if mode == "skip" {
			s.Handoff.Defences |= handoff.AbsentSkipped
		} else {
			s.Handoff.Defences |= handoff.AbsentRefused
		}
	},
}
