package lab

import "github.com/kvcanary/kvcanary/internal/lab/handoff"

// admission is the cheapest defence: who cannot be served is not let in. It is
// worth what it knows, which is why it looks at the smallest limit of all roles.
var admission = Switch{
	Name:    "admission",
	Does:    "the router refuses a prompt that either node would refuse, before anybody hears of it",
	Reports: []string{"https://github.com/sgl-project/sglang/pull/35421", "https://github.com/sgl-project/sglang/pull/30325"},
	apply:   func(_ string, s *Settings) { s.Admission = true },
}

// admit refuses a prompt that fits the context and not a node. Others are the
// router's to refuse.
func (e *Engine) admit(r Request) handoff.Refusal {
	h, n := e.setup.Handoff, len(r.Tokens)
	if e.on.Faulty && !e.on.Admission || h.AutoTruncate || n >= h.Context || n+r.MaxTokens > h.Context || n < h.MaxInput() {
		return handoff.Refusal{}
	}
	return handoff.Refusal{Reason: handoff.OverInput, Have: n, Limit: h.MaxInput()}
}
