package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/kvcanary/kvcanary/internal/campaign"
)

// goOn looks whether --out names the directory of an interrupted run, and takes
// from its plan what flags and file leave open: the run goes on.
func (c *runCmd) goOn(s *session) error {
	if c.Out == "" || c.DryRun {
		if c.Resume {
			return usageErrorf("--resume goes on with the run that --out names: add --out, and leave out --dry-run")
		}
		return nil
	}
	plan, err := campaign.Unfinished(c.Out)
	if err != nil {
		return fileError(err)
	}
	if plan == nil {
		if c.Resume {
			return usageErrorf("--resume: there is no run in %s to go on with", c.Out)
		}
		return nil
	}
	c.plan = plan
	c.BaseURL, c.Model = cmp.Or(c.BaseURL, plan.Target.BaseURL), cmp.Or(c.Model, plan.Target.Model)
	if c.Dialect == "" || c.Dialect == "auto" {
		c.Dialect = plan.Target.Dialect
	}
	if len(c.Protocols) == 0 {
		c.Protocols = plan.Protocols
	}
	c.Context, c.Pool = cmp.Or(c.Context, plan.Facts.Context), cmp.Or(c.Pool, plan.Facts.Pool)
	c.BudgetTokens, c.BudgetRequests = cmp.Or(c.BudgetTokens, &plan.Budget.Tokens), cmp.Or(c.BudgetRequests, &plan.Budget.Requests)
	c.MaxTime, c.Seed = cmp.Or(c.MaxTime, &plan.Budget.Time), cmp.Or(c.Seed, &plan.Seed)
	c.Concurrency = cmp.Or(c.Concurrency, plan.Concurrency)
	fmt.Fprintf(s.stderr, "kvcanary: going on with the interrupted run in %s\n", c.Out)
	return nil
}

// facts are what flags, file and an interrupted run say of the target.
func (c *runCmd) facts() campaign.Facts {
	var f campaign.Facts
	if c.plan != nil {
		f = c.plan.Facts
	}
	f.Context, f.Pool = c.Context, c.Pool
	return f
}

// fileError gives an error about a run directory its exit code.
func fileError(err error) error {
	if errors.Is(err, campaign.ErrConfig) {
		return exitError{exitUsage, err}
	}
	return unreachable(err)
}
