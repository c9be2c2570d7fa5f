package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/internal/matrix"
)

type matrixCmd struct {
	Trials    int    `default:"20" placeholder:"N" help:"Trials of each pair of fault and protocol. Default: ${default}."`
	Faults    string `placeholder:"LIST" help:"Faults, separated by commas; ${nofault} is an engine without one. Default: all of them."`
	Protocols string `placeholder:"LIST" help:"Protocols, separated by commas, of: ${probes}. Default: all of them."`
	Seed      uint64 `default:"1" placeholder:"N" help:"Seed of the first trial. Default: ${default}."`
	Format    string `enum:"text,json,markdown" default:"text" help:"text, json or markdown."`
}

func (c matrixCmd) Run(s *session) error {
	o := matrix.Options{Trials: c.Trials, Faults: matrix.Faults(), Probes: matrix.Probes(), Seed: c.Seed}
	if c.Trials < 1 {
		return usageErrorf("--trials %d: at least 1 is needed", c.Trials)
	}
	if c.Faults != "" {
		o.Faults = nil
		for _, name := range strings.Split(c.Faults, ",") {
			rows := matrix.Modes(strings.TrimSpace(name))
			if rows == nil {
				return usageErrorf("no fault %q: choose of %s", name, strings.Join(matrix.Faults(), ", "))
			}
			o.Faults = append(o.Faults, rows...)
		}
	}
	if c.Protocols != "" {
		chosen, err := choose("protocol", strings.Split(c.Protocols, ","), probeNames(o.Probes))
		if err != nil {
			return err
		}
		o.Probes = slices.DeleteFunc(o.Probes, func(p matrix.Probe) bool { return !slices.Contains(chosen, p.Name) })
	}
	if s.tty {
		o.Done = func(fault, probe string, _ int) { fmt.Fprintf(s.stderr, "\r\x1b[K%s, %s", fault, probe) }
	}
	table, err := matrix.Run(s.ctx, o)
	endProgress(s)
	if s.ctx.Err() != nil {
		return exitError{exitInconclusive, fmt.Errorf("interrupted")}
	}
	if err != nil {
		return unreachable(err)
	}
	if c.Format == "markdown" {
		return table.Markdown(s.stdout)
	}
	return show(s, c.Format, table, func() error { return table.Text(s.stdout) })
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
