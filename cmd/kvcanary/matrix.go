package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/internal/matrix"
)

type matrixCmd struct {
	Trials      int      `default:"20" placeholder:"N" help:"Trials of each pair of fault and protocol. Default: ${default}."`
	Faults      string   `placeholder:"LIST" help:"Faults, separated by commas; ${nofault} is an engine without one. Default: all of them."`
	Protocols   string   `placeholder:"LIST" help:"Protocols, separated by commas, of: ${probes}. Default: all of them; with --defences the one that finds a fault most often."`
	Best        bool     `help:"Try each fault only with the protocol that has found it most often."`
	Defences    string   `placeholder:"LIST" help:"Defences, separated by commas, or all: what each does about each fault on its own. ${nofault} is an engine that has adopted none, and always there."`
	From        []string `sep:"none" placeholder:"FILE" help:"Measure nothing: take what was measured before, written with --format json. Repeat to join; of two cells of one kind the one with more trials counts."`
	Document    string   `placeholder:"FILE" help:"Put the tables between the marks of this Markdown file, as in docs/power.md."`
	Likelihoods string   `placeholder:"FILE" help:"Write there the table that diagnoses rest on, made of these trials."`
	Seed        uint64   `default:"1" placeholder:"N" help:"Seed of the first trial. Default: ${default}."`
	Format      string   `enum:"text,json,markdown" default:"text" help:"text, json or markdown."`
}

// Help says what the exit codes mean.
func (matrixCmd) Help() string {
	return "Exit codes: 0 measured, whatever was found; 2 wrong flags; 3 interrupted, with what was measured until then; 4 an engine did not start, or a file cannot be read or written."
}

func (c matrixCmd) Run(s *session) error {
	if len(c.From) > 0 {
		return c.again(s)
	}
	o, err := c.options()
	if err != nil {
		return err
	}
	if s.tty {
		o.Progress = func(p matrix.Progress) {
			fmt.Fprintf(s.stderr, "\r\x1b[K%d of %d trials: %s %s, %s", p.Done, p.Trials, p.Fault, p.Defence, p.Probe)
		}
	}
	table, err := matrix.Run(s.ctx, o)
	endProgress(s)
	if table == nil {
		return exitError{exitUsage, err}
	}
	if err := c.show(s, table); err != nil {
		return unreachable(err)
	}
	switch {
	case s.ctx.Err() != nil:
		return exitError{exitInconclusive, fmt.Errorf("interrupted: what was measured until then is above")}
	case err != nil:
		return unreachable(err)
	}
	return nil
}

// again shows what was measured before.
func (c matrixCmd) again(s *session) error {
	all := &matrix.Table{Schema: matrix.Schema, Seed: c.Seed}
	for _, name := range c.From {
		b, err := os.ReadFile(name)
		if err != nil {
			return unreachable(err)
		}
		t, err := matrix.Read(b)
		if err != nil {
			return unreachable(fmt.Errorf("%s: %w", name, err))
		}
		all.Merge(t)
	}
	if err := c.show(s, all); err != nil {
		return unreachable(err)
	}
	return nil
}

func (c matrixCmd) show(s *session, table *matrix.Table) error {
	if c.Document != "" {
		if err := document(c.Document, table); err != nil {
			return err
		}
	}
	if c.Likelihoods != "" {
		if err := os.WriteFile(c.Likelihoods, table.Likelihoods().JSON(), 0o644); err != nil {
			return err
		}
	}
	if c.Format == "markdown" {
		return table.Markdown(s.stdout)
	}
	return show(s, c.Format, table, func() error { return table.Text(s.stdout) })
}

// document renews the tables of a file.
func document(name string, table *matrix.Table) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if b, err = table.Document(b); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(name, b, 0o644)
}

// options reads the flags.
func (c matrixCmd) options() (o matrix.Options, err error) {
	o = matrix.Options{Trials: c.Trials, Faults: matrix.Faults(), Probes: matrix.Probes(), Seed: c.Seed}
	if c.Trials < 1 {
		return o, usageErrorf("--trials %d: at least 1 is needed", c.Trials)
	}
	if c.Faults != "" {
		if o.Faults, err = rows("fault", c.Faults, matrix.Faults()); err != nil {
			return o, err
		}
	}
	o.Best = c.Best || c.Defences != "" && c.Protocols == ""
	if c.Defences != "" {
		if o.Defences, err = c.defences(); err != nil {
			return o, err
		}
	}
	if c.Defences != "" || c.Best {
		o.Faults = slices.DeleteFunc(o.Faults, func(f string) bool { return f == matrix.NoFault || strings.HasPrefix(f, matrix.NoFault+":") })
		if len(o.Faults) == 0 {
			return o, usageErrorf("--defences and --best need a fault: name one with --faults, or leave it out for all")
		}
	}
	if c.Protocols != "" {
		chosen, err := choose("protocol", strings.Split(c.Protocols, ","), probeNames(o.Probes))
		if err != nil {
			return o, err
		}
		o.Probes = slices.DeleteFunc(o.Probes, func(p matrix.Probe) bool { return !slices.Contains(chosen, p.Name) })
	}
	return o, nil
}

// defences begin with none: what there is to be defended against.
func (c matrixCmd) defences() ([]string, error) {
	out := []string{matrix.NoDefence}
	if c.Defences == "all" {
		return append(out, matrix.Defences()...), nil
	}
	named, err := rows("defence", c.Defences, append(matrix.Defences(), matrix.NoDefence))
	for _, d := range named {
		if d != matrix.NoDefence {
			out = append(out, d)
		}
	}
	return out, err
}

// rows are what a list of names stands for; a name without a mode stands for all modes.
func rows(what, list string, all []string) (out []string, err error) {
	for name := range strings.SplitSeq(list, ",") {
		named := matrix.Modes(strings.TrimSpace(name), all)
		if named == nil {
			return nil, usageErrorf("no %s %q: choose of %s", what, name, strings.Join(all, ", "))
		}
		out = append(out, named...)
	}
	return out, nil
}

// choose returns the names asked for, or says which of them there is not.
func choose(what string, names, all []string) ([]string, error) {
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		if !slices.Contains(all, names[i]) {
			return nil, usageErrorf("no %s %q: choose of %s", what, names[i], strings.Join(all, ", "))
		}
	}
	return names, nil
}

func probeNames(probes []matrix.Probe) []string {
	var names []string
	for _, p := range probes {
		names = append(names, p.Name)
	}
	return names
}
