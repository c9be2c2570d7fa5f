package lab

import "github.com/kvcanary/kvcanary/internal/lab/handoff"

// retire is the fix that the incident's engine arrived at.
var retire = Switch{
	Name: "retire",
	Does: "a refused request leaves at the door, before anything is reserved or sent, and its client gets HTTP 400",
	Reports: []string{
		"https://github.com/sgl-project/sglang/pull/36988",
		"https://github.com/sgl-project/sglang/pull/38935",
	},
	apply: func(_ string, s *Settings) { s.Handoff.Defences |= handoff.Retire },
}
