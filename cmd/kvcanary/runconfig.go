package main

import (
	"cmp"
	"os"
	"strings"

	"github.com/kvcanary/kvcanary/internal/config"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// identity is a tenant before its key is read: variable is the environment
// variable that holds it, empty for none.
type identity struct{ name, variable string }

// complete fills in what the flags leave open: from the file first, then from
// an interrupted run, then with defaults.
func (c *runCmd) complete(s *session) error {
	if c.APIKeyEnv != "" && len(c.Tenant) > 0 {
		return usageErrorf("--api-key-env and --tenant exclude each other: name each identity with --tenant")
	}
	for _, t := range c.Tenant {
		name, variable, ok := strings.Cut(t, "=")
		if !ok || name == "" || variable == "" {
			return usageErrorf("--tenant %q: write NAME=ENVVAR, the name of an environment variable that holds the key", name)
		}
		c.identities = append(c.identities, identity{name, variable})
	}
	if c.APIKeyEnv != "" {
		c.identities = []identity{{"default", c.APIKeyEnv}}
	}
	if c.Config != "" {
		f, err := readConfig(c.Config)
		if err != nil {
			return err
		}
		c.fill(f)
	}
	if err := c.goOn(s); err != nil {
		return err
	}
	var missing []string
	if c.BaseURL == "" {
		missing = append(missing, "--base-url=URL")
	}
	if c.Model == "" {
		missing = append(missing, "--model=NAME")
	}
	if len(missing) > 0 {
		return usageErrorf("missing flags: %s, or --config with a file that says it", strings.Join(missing, ", "))
	}
	c.Dialect, c.Concurrency = cmp.Or(c.Dialect, "auto"), cmp.Or(c.Concurrency, 4)
	if len(c.identities) == 0 {
		c.identities = []identity{{name: "default"}}
	}
	return nil
}

func readConfig(path string) (*config.Run, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, unreachable(err)
	}
	f, err := config.ReadRun(path, b, config.Known{Protocols: protocolNames(), Dialects: append([]string{"auto"}, wire.Dialects()...)})
	if err != nil {
		return nil, exitError{exitUsage, err}
	}
	return f, nil
}

// fill takes from the file what no flag says.
func (c *runCmd) fill(f *config.Run) {
	c.BaseURL, c.Model, c.Dialect = cmp.Or(c.BaseURL, f.BaseURL), cmp.Or(c.Model, f.Model), cmp.Or(c.Dialect, f.Dialect)
	if len(c.identities) == 0 {
		for _, t := range f.Tenants {
			c.identities = append(c.identities, identity{t.Name, t.KeyEnv})
		}
	}
	if len(c.Protocols) == 0 {
		c.Protocols = f.Protocols
	}
	c.Context, c.Pool = cmp.Or(c.Context, f.Context), cmp.Or(c.Pool, f.Pool)
	c.BudgetTokens, c.BudgetRequests = cmp.Or(c.BudgetTokens, given(&f.Tokens)), cmp.Or(c.BudgetRequests, given(&f.Requests))
	c.MaxTime = cmp.Or(c.MaxTime, given(&f.Time))
	c.Concurrency, c.Seed = cmp.Or(c.Concurrency, f.Concurrency), cmp.Or(c.Seed, f.Seed)
	c.reach.fill(f)
	c.KeyFile, c.Out = cmp.Or(c.KeyFile, f.KeyFile), cmp.Or(c.Out, f.Out)
}

// given is p, nil if it points to zero: what the file does not say.
func given[T comparable](p *T) *T {
	if *p == *new(T) {
		return nil
	}
	return p
}

// orZero is what a flag says, zero if it was not given.
func orZero[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}
