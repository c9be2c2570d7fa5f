package lab

import "github.com/kvcanary/kvcanary/internal/lab/handoff"

// coverage compares lengths, which the incident's engine did not. Without a
// fault it is on.
var coverage = Switch{
	Name:    "coverage",
	Does:    "decode compares how much was sent with how much it has reserved before it answers",
	Reports: []string{"https://github.com/sgl-project/sglang/pull/38704"},
	apply:   func(_ string, s *Settings) { s.Handoff.Defences |= handoff.Coverage },
}
