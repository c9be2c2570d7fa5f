package lab

import (
	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/prefix"
)

// zeroOnAlloc takes the harm out of reading a page that was not written, at
// the price of a pass over memory for every page.
var zeroOnAlloc = Switch{
	Name:  "zero_on_alloc",
	Modes: []string{"paged", "all"},
	Does: "both nodes clear a page when they give it to a request, so that a page nobody wrote holds nobody's text; " +
		"the pages of their pools, or those of the prefix cache too",
	apply: func(mode string, s *Settings) {
		s.Handoff.Defences |= handoff.ZeroOnAlloc
		if mode == "all" {
			s.Prefix.Defences |= prefix.ZeroOnAlloc
		}
	},
}
