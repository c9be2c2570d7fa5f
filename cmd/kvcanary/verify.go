package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/kvcanary/kvcanary/internal/explore"
	"github.com/kvcanary/kvcanary/internal/lab"
	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

type verifyCmd struct {
	Model verifyModelCmd `cmd:"" help:"Explore everything that the handoff can do, in every order, and look for what breaks an invariant."`
	Trace verifyTraceCmd `cmd:"" help:"Check that a run of the lab is a behaviour of the handoff and keeps the invariants."`
}

type verifyTraceCmd struct {
	File   string `arg:"" help:"Trace that kvcanary lab --trace has written; - is standard input."`
	Format string `enum:"text,json" default:"text" help:"text or json."`
}

type verifyModelCmd struct {
	Config    []string `placeholder:"NAME" help:"Setups to explore; repeat for more. Default: all of them; with a fault, those that show it."`
	Fault     []string `sep:"none" placeholder:"NAME[:MODE]" help:"Explore an engine with this fault; repeat for more. Faults and defences are those of kvcanary lab."`
	Defence   []string `sep:"none" placeholder:"NAME[:MODE]" help:"Switch a defence on; repeat for more."`
	Without   []string `sep:"none" placeholder:"NAME[:MODE]" help:"Switch a defence off that is on in an engine without faults; repeat for more."`
	Invariant []string `placeholder:"NAME" help:"Look only at these, of ${invariants}; repeat for more. Default: ${standing}."`
	States    int      `placeholder:"N" help:"Give up on a setup after this many states. Default: never."`
	Workers   int      `placeholder:"N" help:"Threads. Default: one a core."`
	Table     bool     `help:"Find what each defence does about each fault, and print it as a table; with --format json, with a trace for each."`
	SVG       string   `name:"svg" placeholder:"FILE" help:"Draw a counterexample as a sequence diagram into this file."`
	Format    string   `enum:"text,json" default:"text" help:"text or json."`
}

// Help lists what can be explored and what is looked at.
func (verifyModelCmd) Help() string {
	var b strings.Builder
	b.WriteString("Runs the machines that serve in the lab, not a copy. A counterexample is a shortest one.\n\nSetups:\n")
	for _, s := range explore.Setups {
		fmt.Fprintf(&b, "\n%s: %s\n", s.Name, s.About)
	}
	b.WriteString("\nInvariants:\n")
	for i, text := range explore.Invariants {
		fmt.Fprintf(&b, "\n%v: %s\n", explore.Invariant(i), text)
	}
	b.WriteString("\nWithout --invariant a counterexample ends at the first invariant that breaks; --invariant I6 goes on until a client is sent what is another's.\n")
	b.WriteString("\nExit codes: 0 holds, or the table is made; 1 broken; 2 wrong flags; 3 not everything was explored; 4 a file cannot be written.\n")
	return b.String()
}

// Help says what the exit codes mean.
func (verifyTraceCmd) Help() string {
	return "Exit codes: 0 holds, 1 broken, or no trace at all; 2 wrong flags; 4 the file cannot be read."
}

// modelReport is the JSON of verify model.
type modelReport struct {
	Schema  string           `json:"schema"`
	Results []explore.Result `json:"results"`
	States  int              `json:"states"`
	Verdict string           `json:"verdict"` // holds, broken or inconclusive
}

func (c verifyModelCmd) Run(s *session) error {
	if c.Table {
		return c.table(s)
	}
	setups, err := c.setups()
	if err != nil {
		return err
	}
	only, err := c.invariants()
	if err != nil {
		return err
	}
	o := c.options()
	o.Only = only
	report := modelReport{Schema: "kvcanary.verify.model/v1", Verdict: "holds"}
	for _, setup := range setups {
		if s.tty {
			said := time.Duration(-1)
			o.Progress = func(p explore.Progress) {
				if said >= 0 && p.Elapsed-said < 100*time.Millisecond {
					return
				}
				said = p.Elapsed
				fmt.Fprintf(s.stderr, "\r\x1b[K%s: %d states, depth %d, %.0f s", setup.Name, p.States, p.Depth, p.Elapsed.Seconds())
			}
		}
		r, err := explore.Explore(s.ctx, setup, o)
		endProgress(s)
		if err != nil {
			return usageErrorf("--config %s: %w", setup.Name, err)
		}
		report.add(r)
		if c.Format == "text" {
			fmt.Fprint(s.stdout, r.Text())
		}
		if r.Counterexample != nil {
			if err := c.draw(r.Counterexample); err != nil {
				return unreachable(err)
			}
			break
		}
		if s.ctx.Err() != nil {
			break
		}
	}
	if err := show(s, c.Format, report, func() error { return report.text(s) }); err != nil {
		return err
	}
	switch report.Verdict {
	case "broken":
		return exitError{code: exitFound}
	case "inconclusive":
		return exitError{exitInconclusive, errors.New("not everything was explored")}
	}
	return nil
}

func (c verifyModelCmd) options() explore.Options {
	o := explore.Options{Workers: c.Workers, Limit: c.States}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	return o
}

// table explores every defence against every fault.
func (c verifyModelCmd) table(s *session) error {
	var cells []explore.Cell
	err := explore.Cells(s.ctx, c.options(), func(x explore.Cell) {
		cells = append(cells, x)
		if s.tty {
			fmt.Fprintf(s.stderr, "\r\x1b[K%s with %s: %s", x.Fault, x.Defence, x.Verdict)
		}
	})
	endProgress(s)
	if err != nil {
		return exitError{exitInconclusive, err}
	}
	return show(s, c.Format, struct {
		Schema string         `json:"schema"`
		Cells  []explore.Cell `json:"cells"`
	}{"kvcanary.verify.table/v1", cells}, func() error {
		_, err := fmt.Fprint(s.stdout, explore.Markdown(cells))
		return err
	})
}

func (m *modelReport) add(r explore.Result) {
	m.Results = append(m.Results, r)
	m.States += r.States
	switch {
	case r.Counterexample != nil:
		m.Verdict = "broken"
	case !r.Complete || r.Endless != "":
		m.Verdict = "inconclusive"
	}
}

func (m *modelReport) text(s *session) error {
	_, err := fmt.Fprintf(s.stdout, "%s in %s: %s\n", count(m.States, "state", "states"), count(len(m.Results), "setup", "setups"), m.Verdict)
	return err
}

func (c verifyModelCmd) draw(x *explore.Counterexample) error {
	if c.SVG == "" {
		return nil
	}
	if err := os.WriteFile(c.SVG, []byte(x.SVG()), 0o644); err != nil {
		return fmt.Errorf("--svg: %w", err)
	}
	return nil
}

// setups are those asked for, with the engine asked for.
func (c verifyModelCmd) setups() ([]explore.Setup, error) {
	switches, err := c.switches()
	if err != nil {
		return nil, err
	}
	chosen := explore.Setups
	if switches.Faults != 0 {
		chosen = explore.SetupsFor(switches.Faults)
	}
	if len(c.Config) > 0 {
		chosen = nil
	}
	for _, name := range c.Config {
		setup, ok := explore.Find(name)
		if !ok {
			return nil, usageErrorf("--config %q: use one of %s", name, strings.Join(explore.Names(), ", "))
		}
		chosen = append(chosen, setup)
	}
	var out []explore.Setup
	for _, setup := range chosen {
		out = append(out, setup.With(switches))
	}
	return out, nil
}

func (c verifyModelCmd) switches() (handoff.Switches, error) {
	on, err := handoffSettings(c.Fault, c.Defence)
	if err != nil {
		return on, err
	}
	off, err := handoffSettings(nil, c.Without)
	on.Without = off.Defences
	return on, err
}

// handoffSettings reads names of faults and defences, which must be the handoff's.
func handoffSettings(faults, defences []string) (handoff.Switches, error) {
	var all handoff.Switches
	for _, kind := range []string{"fault", "defence"} {
		parse, specs := lab.ParseFault, faults
		if kind == "defence" {
			parse, specs = lab.ParseDefence, defences
		}
		for _, spec := range specs {
			apply, err := parse(spec)
			if err != nil {
				return all, exitError{exitUsage, err}
			}
			var on lab.Settings
			apply(&on)
			if on.Handoff == (handoff.Switches{}) {
				return all, usageErrorf("%s %s is not the handoff's: the model does not have it", kind, spec)
			}
			all.Faults, all.Defences = all.Faults|on.Handoff.Faults, all.Defences|on.Handoff.Defences
		}
	}
	return all, nil
}

func (c verifyModelCmd) invariants() ([]explore.Invariant, error) {
	var only []explore.Invariant
	for _, name := range c.Invariant {
		i, ok := explore.ParseInvariant(name)
		if !ok {
			return nil, usageErrorf("--invariant %q: use any of %s", name, strings.Join(explore.InvariantNames(), ", "))
		}
		only = append(only, i)
	}
	return only, nil
}
