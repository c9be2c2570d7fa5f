package main

import (
	"fmt"

	"github.com/kvcanary/kvcanary/internal/campaign"
)

// progress returns what shows how far a run is: one line that is written over
// and over on a terminal, nothing when there is none.
func progress(s *session) func(campaign.Progress) {
	if !s.tty {
		return nil
	}
	return func(p campaign.Progress) {
		budget := ""
		if p.BudgetTokens > 0 {
			budget = fmt.Sprintf(" of %d", p.BudgetTokens)
		}
		fmt.Fprintf(s.stderr, "\r\x1b[K%s: %s, %d tokens%s, %s",
			p.Protocol, count(p.Sent, "exchange", "exchanges"), p.SpentTokens, budget, count(p.Findings, "finding", "findings"))
	}
}

// endProgress clears the line that progress wrote.
func endProgress(s *session) {
	if s.tty {
		fmt.Fprint(s.stderr, "\r\x1b[K")
	}
}
