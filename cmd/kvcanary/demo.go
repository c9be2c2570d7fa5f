package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kvcanary/kvcanary/internal/demo"
	"github.com/kvcanary/kvcanary/internal/report"
	"github.com/kvcanary/kvcanary/internal/wholefile"
)

type demoCmd struct {
	Scale  string `enum:"small,full" default:"small" help:"small, or full for the incident's own numbers: a context of 1,048,576 tokens, half a minute to two minutes, and 2 GiB at the most."`
	Report string `placeholder:"FILE.html" help:"Write a page that draws what happened."`
	Format string `enum:"text,json" default:"text" help:"text or json."`
	Seed   uint64 `default:"1" placeholder:"N" help:"Makes the same prompts again. Default: 1."`
}

// Help says what the exit codes mean.
func (demoCmd) Help() string {
	return "Exit codes: 0 all acts ended as told, 1 one did not, 2 wrong flags, 3 interrupted, 4 the engine did not start or the page could not be written."
}

func (c demoCmd) Run(s *session) error {
	exe, err := os.Executable()
	if err != nil {
		return unreachable(fmt.Errorf("find the program to start the engine with: %w", err))
	}
	if c.Report != "" {
		// Said now, not after two minutes.
		if _, err := os.Stat(filepath.Dir(c.Report)); err != nil {
			return unreachable(fmt.Errorf("write the report: %w", err))
		}
		if info, err := os.Stat(c.Report); err == nil && info.IsDir() {
			return usageErrorf("write the report: %s is a directory: name a file", c.Report)
		}
	}
	o := demo.Options{Exe: exe, Full: c.Scale == "full", Seed: c.Seed, Version: version(), Progress: progress(s)}
	if c.Format == "text" {
		acts := 0
		demoOpening(s, o)
		o.Act = func(a demo.Act) {
			acts++
			endProgress(s)
			demoAct(s, acts, a)
		}
	}
	result, err := demo.Play(s.ctx, o)
	endProgress(s)
	if err != nil {
		if s.ctx.Err() != nil {
			return exitError{exitInconclusive, fmt.Errorf("interrupted")}
		}
		return unreachable(err)
	}
	if err := show(s, c.Format, result, func() error { return demoClosing(s, c, result) }); err != nil {
		return err
	}
	if err := c.page(s, result); err != nil {
		return err
	}
	if !result.AsTold {
		return exitError{code: exitFound}
	}
	return nil
}

func demoOpening(s *session, o demo.Options) {
	e := demo.Scale(o.Full)
	fmt.Fprintf(s.stdout, `An inference engine starts on this machine: a router, a prefill and a decode
process, paged KV cache, real attention. Context %d tokens, prefill
pool %d, decode pool %d, pages of %d. It has the bug of the incident.
`, e.Context, e.PrefillPool, e.DecodePool, e.PageSize)
}

func demoAct(s *session, n int, a demo.Act) {
	fmt.Fprintf(s.stdout, "\nAct %d of 4. %s\n", n, a.Title)
	for _, line := range a.Told {
		report.Paragraph(s.stdout, "  ", line)
	}
	fmt.Fprintf(s.stdout, "  verdict: %s", a.Verdict)
	if len(a.Findings) > 0 {
		fmt.Fprintf(s.stdout, " (%s)", count(len(a.Findings), "finding", "findings"))
	}
	if !a.AsTold() {
		fmt.Fprintf(s.stdout, ", but the story expects %s", a.Expected)
	}
	fmt.Fprintln(s.stdout)
}

func demoClosing(s *session, c demoCmd, r *demo.Result) error {
	if r.AsTold {
		fmt.Fprintf(s.stdout, "\nAll four acts ended as told, in %.1f seconds.\n", r.Seconds)
	} else {
		fmt.Fprintf(s.stdout, "\nThe demo did NOT end as told, see above. Say so in an issue, with seed %d.\n", r.Seed)
	}
	if c.Report == "" {
		fmt.Fprintln(s.stdout, "--report demo.html draws the pages. Now point kvcanary run at your own endpoint.")
	}
	return nil
}

// page writes the page of the demo, whole or not at all.
func (c demoCmd) page(s *session, r *demo.Result) error {
	if c.Report == "" {
		return nil
	}
	page := r.Page(fmt.Sprintf("kvcanary demo --scale %s --seed %d", c.Scale, c.Seed), version())
	if err := wholefile.Write(c.Report, 0o644, func(w io.Writer) error { return report.WriteDemo(w, page) }); err != nil {
		return unreachable(err)
	}
	fmt.Fprintf(s.stderr, "kvcanary: wrote %s\n", c.Report)
	return nil
}
