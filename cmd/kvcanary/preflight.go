package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/kvcanary/kvcanary/internal/engine"
	"github.com/kvcanary/kvcanary/internal/preflight"
	"github.com/kvcanary/kvcanary/internal/report"
	"github.com/kvcanary/kvcanary/internal/wire"
)

type preflightCmd struct {
	URL string `arg:"" optional:"" placeholder:"URL" help:"Where the engine or its router answers."`

	Prefill    []string      `placeholder:"URL" help:"A prefill worker; repeat for more."`
	Decode     []string      `placeholder:"URL" help:"A decode worker; repeat for more."`
	Engine     string        `default:"auto" placeholder:"NAME" help:"What answers there: auto, or one of ${engines}."`
	Manifest   []string      `sep:"none" placeholder:"FILE" help:"Kubernetes YAML, compose file, systemd unit or command line that starts the engine; repeat for more."`
	StartupLog string        `name:"startup-log" placeholder:"FILE" help:"What the engine logged when it started."`
	Context    int           `placeholder:"N" help:"Context window, tokens, where nothing says it."`
	Pool       int           `placeholder:"N" help:"Smallest KV pool, tokens, where nothing says it."`
	APIKeyEnv  string        `name:"api-key-env" placeholder:"VAR" help:"Environment variable that holds the key."`
	Alone      bool          `help:"All requests are of one customer."`
	Salted     bool          `help:"A gateway gives each customer a prefix-cache salt of its own."`
	Strict     bool          `help:"Exit with 1 also for a warning rule that failed and for an error rule that could not be checked."`
	Timeout    time.Duration `default:"5s" placeholder:"D" help:"How long a worker may take to answer. Default: ${default}."`
	Format     string        `enum:"text,json,junit,sarif" default:"text" help:"text, json, junit or sarif."`
	At         string        `placeholder:"FILE" help:"With sarif: the file that results of running workers are put at. Default: the first --manifest, else preflight."`
	Probe      bool          `help:"Send prompts: find the limit, straddle it once. Needs --model."`
	Model      string        `placeholder:"NAME" help:"Model to ask for, with --probe."`
	KeyFile    string        `name:"key-file" placeholder:"FILE" help:"Key that canaries are made with, with --probe."`
	Out        string        `placeholder:"DIR" help:"Keep the report as DIR/preflight.json, and seal it."`
	sealFlags
}

// Help says what is checked and what the exit codes mean.
func (preflightCmd) Help() string {
	var b strings.Builder
	b.WriteString("Compares what an engine says of its KV pool, window and settings, and what is reported of its version, before it is given traffic.\n\nRules:\n")
	for _, r := range preflight.Rules {
		fmt.Fprintf(&b, "\n%s (%s): %s\n", r.ID, r.Severity, r.Why)
	}
	fmt.Fprintf(&b, "\nand %d public reports by engine, version and setting.\n", len(preflight.Advisories()))
	b.WriteString("\nExit codes: 0 may be deployed, 1 an error rule failed, 2 wrong flags, 3 an error rule could not be checked, 4 nothing could be reached or a file not be read.\n")
	return b.String()
}

func (c preflightCmd) Run(s *session) error {
	d, err := c.deployment(s)
	if err != nil {
		return err
	}
	if c.Probe {
		if d.Probe, err = c.probe(s, d); err != nil {
			return err
		}
	}
	result := preflight.Check(d)
	kept := c.keep(s, &result)
	if err := c.write(s, &result); err != nil {
		return unreachable(err)
	}
	if code := result.ExitCode(); code != exitClean {
		return exitError{code: code, err: kept} // that it is not kept makes it no better
	}
	if kept != nil {
		return unreachable(kept)
	}
	return nil
}

func (c preflightCmd) write(s *session, r *preflight.Report) error {
	switch c.Format {
	case "junit":
		return report.PreflightJUnit(s.stdout, r)
	case "sarif":
		at := c.At
		if at == "" && len(c.Manifest) > 0 {
			at = c.Manifest[0]
		}
		return report.PreflightSARIF(s.stdout, r, version(), cmp.Or(at, "preflight"))
	}
	return show(s, c.Format, r, func() error { return preflight.Text(s.stdout, r) })
}

// keep writes the report into a directory and seals it.
func (c preflightCmd) keep(s *session, r *preflight.Report) error {
	if c.Out == "" {
		return nil
	}
	seal, err := c.sealer(s)
	if err != nil {
		return fmt.Errorf("the report is not kept: %w", err)
	}
	if err := os.MkdirAll(c.Out, 0o700); err != nil {
		return fmt.Errorf("the report is not kept: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(c.Out, preflightFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the report is not kept: %s holds one already: name another --out", c.Out)
	}
	if err != nil {
		return fmt.Errorf("the report is not kept: %w", err)
	}
	e := json.NewEncoder(f)
	e.SetIndent("", "  ")
	if err := errors.Join(e.Encode(r), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("the report is not kept: %w", err)
	}
	properties := []string{"kvcanary/preflight/" + string(r.Verdict)}
	if err := seal.Preflight(c.Out, preflightFile, "kvcanary/"+version(), properties); err != nil {
		return fmt.Errorf("the report is in %s, and not sealed: %w", c.Out, err)
	}
	return nil
}

// preflightFile is the report that --out keeps.
const preflightFile = "preflight.json"

// deployment asks all workers and reads all files.
func (c preflightCmd) deployment(s *session) (preflight.Deployment, error) {
	d := preflight.Deployment{Context: c.Context, Pool: c.Pool, Alone: c.Alone, Salted: c.Salted, Strict: c.Strict}
	if c.URL == "" && len(c.Prefill)+len(c.Decode)+len(c.Manifest) == 0 && c.StartupLog == "" {
		return d, usageErrorf("nothing to check: give a URL, --prefill and --decode, --manifest or --startup-log")
	}
	name := c.Engine
	if name == "auto" {
		name = ""
	} else if _, ok := engine.Find(name); !ok {
		return d, usageErrorf("--engine %q: use auto, or one of %s", c.Engine, strings.Join(engine.Names(), ", "))
	}
	key := ""
	if c.APIKeyEnv != "" {
		if key = s.getenv(c.APIKeyEnv); key == "" {
			return d, usageErrorf("environment variable %s is not set: export it with the key", c.APIKeyEnv)
		}
	}
	for _, u := range append(append([]string{c.URL}, c.Prefill...), c.Decode...) {
		if u == "" {
			continue
		}
		if _, err := wire.NewClient(wire.Options{BaseURL: u}); err != nil {
			return d, exitError{exitUsage, err}
		}
	}
	if err := c.files(&d, name); err != nil {
		return d, err
	}
	d.Workers = c.workers(s.ctx, key, name)
	if last := len(d.Declared) - 1; len(d.Workers) == 0 && c.StartupLog != "" {
		// The log is of what ran; manifests fill in what it does not say.
		d.Workers, d.Declared = d.Declared[last:], d.Declared[:last:last]
	}
	reached := len(d.Workers) == 0
	for _, w := range d.Workers {
		reached = reached || w.Trouble == ""
	}
	if !reached && len(d.Declared) == 0 {
		return d, unreachable(fmt.Errorf("%s: %s", d.Workers[0].Name, d.Workers[0].Trouble))
	}
	return d, nil
}

// files reads manifests and the start-up log.
func (c preflightCmd) files(d *preflight.Deployment, name string) error {
	for _, path := range c.Manifest {
		f, err := os.Open(path)
		if err != nil {
			return unreachable(err)
		}
		workers, err := preflight.ReadManifest(path, f)
		f.Close()
		if err != nil {
			return unreachable(err)
		}
		d.Declared = append(d.Declared, workers...)
	}
	if c.StartupLog == "" {
		return nil
	}
	f, err := os.Open(c.StartupLog)
	if err != nil {
		return unreachable(err)
	}
	defer f.Close()
	facts, err := engine.ReadLog(f, name)
	if err != nil {
		return unreachable(fmt.Errorf("%s: %w", c.StartupLog, err))
	}
	d.Declared = append(d.Declared, preflight.Worker{Name: c.StartupLog, Facts: facts})
	return nil
}

// workers asks all of them at the same time.
func (c preflightCmd) workers(ctx context.Context, key, name string) []preflight.Worker {
	type place struct{ url, role, flag string }
	var places []place
	if c.URL != "" {
		places = append(places, place{c.URL, "", ""})
	}
	for _, u := range c.Prefill {
		places = append(places, place{u, "prefill", "--prefill"})
	}
	for _, u := range c.Decode {
		places = append(places, place{u, "decode", "--decode"})
	}
	out := make([]preflight.Worker, len(places))
	client := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	for i, p := range places {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, c.Timeout)
			defer cancel()
			facts, trouble := engine.Examine(ctx, client, p.url, key, name)
			// An engine that says which it is knows better than who lists it.
			if own := facts.Role.Value; p.role != "" && own != "prefill" && own != "decode" {
				facts.Role = engine.Text{Value: p.role, Source: p.flag, Basis: engine.Stated}
			}
			out[i] = preflight.Worker{Name: p.url, Facts: facts, Trouble: trouble}
		})
	}
	wg.Wait()
	return out
}
