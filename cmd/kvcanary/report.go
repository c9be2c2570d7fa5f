package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/prose"
	"github.com/kvcanary/kvcanary/internal/report"
	"github.com/kvcanary/kvcanary/internal/wholefile"
)

type reportCmd struct {
	Dir string `arg:"" placeholder:"DIR" help:"A run directory."`

	Format  string `default:"text" placeholder:"F" help:"One of ${reports}; json with --compare. Default: ${default}."`
	Output  string `placeholder:"FILE" help:"Write to this file. Default: standard output."`
	Compare string `placeholder:"DIR" help:"An earlier run: list what is new, gone and the same instead of a report."`
	FailOn  string `name:"fail-on" enum:",leak,violation,inconclusive" default:"" placeholder:"V" help:"Exit with 1 if the verdict is leak, at least violation, or not clean; with --compare only new findings count. Default: the report never fails."`
	Foreign bool   `name:"show-foreign-text" help:"Show what stands around leaked words in answers, up to 2,000 characters each: it may be somebody's. In text, html and markdown. Default: its length and digest."`
	At      string `placeholder:"FILE:LINE" help:"Where sarif and github put findings: the line of a file that names the target."`
}

// Help says what is in a report.
func (reportCmd) Help() string {
	return "Reports are made from a run directory, and never from what a run has in memory. They hold words that kvcanary planted itself and, unless --show-foreign-text says so, no other text of answers.\n\nExit codes: 0 written, 1 as --fail-on says, 2 wrong flags, 4 a file cannot be read or written.\n"
}

func (c reportCmd) Run(s *session) error {
	format, ok := report.FindFormat(c.Format)
	if !ok && !(c.Compare != "" && c.Format == "json") {
		return usageErrorf("--format %q: use one of %s", c.Format, strings.Join(report.FormatNames(), ", "))
	}
	if c.Format == "disclosure" && c.Output == "" {
		return usageErrorf("--format disclosure is an archive: name it with --output FILE.zip")
	}
	if c.Foreign && (!format.Foreign || c.Compare != "") {
		return usageErrorf("--show-foreign-text: only text, html and markdown show it, since the other forms are handed on")
	}
	run, err := report.Open(c.Dir)
	if err != nil {
		return unreachable(err)
	}
	run.ShowForeign = c.Foreign
	if run.Place, err = c.place(run.Place); err != nil {
		return err
	}
	if c.Compare != "" {
		return c.compare(s, run)
	}
	if err := c.write(s, func(w io.Writer) error { return format.Write(w, run) }); err != nil {
		return unreachable(err)
	}
	return c.verdict(run.Result.Verdict)
}

func (c reportCmd) place(p report.Place) (report.Place, error) {
	if c.At == "" {
		return p, nil
	}
	i := strings.LastIndexByte(c.At, ':')
	n, err := strconv.Atoi(c.At[i+1:])
	if i < 1 || err != nil || n < 1 {
		return p, usageErrorf("--at %q: write FILE:LINE", c.At)
	}
	return report.Place{File: c.At[:i], Line: n}, nil
}

// write writes to the output, which is whole or not there at all.
func (c reportCmd) write(s *session, to func(io.Writer) error) error {
	if c.Output == "" {
		return to(s.stdout)
	}
	return wholefile.Write(c.Output, 0o600, to)
}

// verdict is the exit code that --fail-on wants.
func (c reportCmd) verdict(v campaign.Verdict) error {
	rank := map[campaign.Verdict]int{campaign.Leak: 3, campaign.Violation: 2, campaign.Inconclusive: 1, campaign.Clean: 0}
	least := map[string]int{"leak": 3, "violation": 2, "inconclusive": 1}[c.FailOn]
	if c.FailOn != "" && rank[v] >= least {
		return exitError{code: exitFound}
	}
	return nil
}

func (c reportCmd) compare(s *session, run *report.Run) error {
	old, err := report.Open(c.Compare)
	if err != nil {
		return unreachable(err)
	}
	changes := report.Compare(run, old)
	err = c.write(s, func(w io.Writer) error {
		if c.Format == "json" {
			return prose.JSON(w, changes)
		}
		for _, x := range changes {
			if _, err := fmt.Fprintf(w, "%s: %s (%d, was %d)\n", x.State(), prose.Printable(x.What), x.Now, x.Was); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(w, "verdict: %s, was %s\n", run.Result.Verdict, old.Result.Verdict)
		return err
	})
	if err != nil {
		return unreachable(err)
	}
	if run.Result.Verdict == campaign.Inconclusive {
		return c.verdict(run.Result.Verdict) // what was not looked for is not gone
	}
	for _, x := range changes {
		if x.State() == "new" && c.FailOn != "" {
			return c.verdict(run.Result.Verdict)
		}
	}
	return nil
}
