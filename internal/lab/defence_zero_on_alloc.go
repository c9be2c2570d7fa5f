package lab

import "github.com/kvcanary/kvcanary/internal/lab/handoff"

// zeroOnAlloc takes the harm out of reading a page that was not written, at
// the price of a pass over memory for every page.
var zeroOnAlloc = Switch{
	Name:  "zero_on_alloc",
	Does:  "both nodes clear a page when they give it to a request, so that a page nobody wrote holds nobody's text",
	apply: func(_ string, s *Settings) { s.Handoff.Defences |= handoff.ZeroOnAlloc },
}
