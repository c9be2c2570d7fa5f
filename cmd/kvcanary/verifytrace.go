package main

import (
	"fmt"
	"os"

	"github.com/kvcanary/kvcanary/internal/explore"
)

// traceReport is the JSON of verify trace.
type traceReport struct {
	Schema  string `json:"schema"`
	Verdict string `json:"verdict"` // holds or broken
	Reason  string `json:"reason,omitempty"`
	explore.TraceReport
}

func (c verifyTraceCmd) Run(s *session) error {
	in := s.stdin
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return unreachable(fmt.Errorf("trace: %w", err))
		}
		defer f.Close()
		in = f
	}
	r, err := explore.CheckTrace(in)
	if explore.Unreadable(err) {
		return unreachable(fmt.Errorf("trace: %w", err))
	}
	report := traceReport{Schema: "kvcanary.verify.trace/v1", Verdict: "holds", TraceReport: r}
	if err != nil {
		report.Verdict, report.Reason = "broken", err.Error()
	}
	if err := show(s, c.Format, report, func() error { return report.text(s) }); err != nil {
		return err
	}
	if report.Verdict == "broken" {
		return exitError{code: exitFound}
	}
	return nil
}

func (t traceReport) text(s *session) error {
	fmt.Fprintf(s.stdout, "%s in %s: %s, %s, %s, %s, %s\n", count(t.Steps, "step", "steps"), count(t.Engines, "engine", "engines"),
		count(t.Requests, "request", "requests"), count(t.Answers, "answer", "answers"), count(t.Refusals, "refusal", "refusals"),
		count(t.Cancels, "cancelled", "cancelled"), count(t.Restarts, "node started anew", "nodes started anew"))
	if t.Faults != 0 {
		fmt.Fprintf(s.stdout, "started with faults: %v\n", t.Faults)
	}
	_, err := fmt.Fprintf(s.stdout, "%s", t.Verdict)
	if t.Reason != "" {
		_, err = fmt.Fprintf(s.stdout, ": %s", t.Reason)
	}
	fmt.Fprintln(s.stdout)
	return err
}
