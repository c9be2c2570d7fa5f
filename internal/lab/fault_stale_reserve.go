package lab

import "github.com/kvcanary/kvcanary/internal/lab/handoff"

// staleReserve is the incident: 155 answers with HTTP 200 built from other
// requests' pages.
var staleReserve = Switch{
	Name:  "stale_reserve",
	Modes: []string{"prefill_usage", "decode_usage", "other_abort"},
	Does: "a prompt too long for prefill lives on as a placeholder of one token, while decode has reserved pages " +
		"for all of it and reads them; usage is what prefill has counted (1), or decode (all). other_abort: so does a prompt of any length that prefill refuses " +
		"for a broken picture, while one that is too long is refused",
	Reports: []string{
		"https://github.com/sgl-project/sglang/issues/30233",
		"https://github.com/sgl-project/sglang/pull/30325",
		"https://github.com/sgl-project/sglang/pull/34208",
		"https://github.com/sgl-project/sglang/pull/35421",
		"https://github.com/sgl-project/sglang/pull/38704",
	},
	apply: func(mode string, s *Settings) {
		if mode == "other_abort" {
			s.Handoff.Faults |= handoff.OtherAbort
			return
		}
		s.Handoff.Faults |= handoff.StaleReserve
		if mode == "decode_usage" {
			s.Handoff.Faults |= handoff.DecodeUsage
		}
	},
}
