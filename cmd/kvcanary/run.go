package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/engine"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/report"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// askAbove is how many prompt tokens a run may send to a host that is not this
// machine without being told to.
const askAbove = 1_000_000

type runCmd struct {
	Protocols []string `arg:"" optional:"" name:"protocol" help:"Protocols to run: ${protocols}. All of them if none is named."`

	BaseURL   string   `name:"base-url" required:"" placeholder:"URL" help:"Where the API is; most end in /v1."`
	Model     string   `required:"" placeholder:"NAME" help:"Model to ask for."`
	Dialect   string   `enum:"auto,openai" default:"auto" help:"How the API speaks: auto or openai (chat completions)."`
	APIKeyEnv string   `name:"api-key-env" placeholder:"VAR" help:"Environment variable that holds the API key."`
	Tenant    []string `placeholder:"NAME=ENVVAR" help:"An identity to send as, and the environment variable that holds its key. Repeat for more."`

	Context int  `placeholder:"N" help:"Context window of the model, tokens, if you know it."`
	Pool    int  `placeholder:"N" help:"Smallest KV pool of the engine, tokens, if you know it."`
	Classic bool `help:"Let smoke send exactly what the published script sends."`

	BudgetTokens   int           `name:"budget-tokens" placeholder:"N" help:"Most tokens to spend, prompts and answers together."`
	BudgetRequests int           `name:"budget-requests" placeholder:"N" help:"Most requests to make."`
	MaxTime        time.Duration `name:"max-time" placeholder:"D" help:"Longest time to run, for example 10m."`
	Concurrency    int           `default:"4" placeholder:"N" help:"Most exchanges under way at once. Default: 4."`
	Seed           *uint64       `placeholder:"N" help:"Makes the same plan and the same prompts again. Default: chosen anew."`

	KeyFile string `name:"key-file" placeholder:"FILE" help:"Key that canaries are made with; made on first use. Default: kvcanary/key in the user's configuration directory."`
	Out     string `placeholder:"DIR" help:"Directory for all of the run. Default: a new one under kvcanary-runs/."`
	DryRun  bool   `name:"dry-run" help:"Print what would be sent and how many tokens it would cost; send nothing."`
	Yes     bool   `help:"Send more than a million prompt tokens to a host that is not this machine without asking."`
	Format  string `enum:"text,json" default:"text" help:"text or json."`
}

func (c runCmd) Run(s *session) error {
	cfg, err := c.config(s)
	if err != nil {
		return err
	}
	if !c.DryRun {
		if err := c.ask(s.ctx, &cfg); err != nil {
			return err
		}
	}
	plan, err := campaign.DryRun(cfg)
	if err != nil {
		return exitError{exitUsage, err}
	}
	if c.DryRun {
		return show(s, c.Format, plan, func() error { return report.Plan(s.stdout, plan) })
	}
	if err := c.consent(s, plan.PromptTokens); err != nil {
		return err
	}
	if cfg.Client, err = c.client(cfg.OutDir); err != nil {
		return exitError{exitUsage, err}
	}
	result, err := campaign.Run(s.ctx, cfg)
	endProgress(s)
	return c.conclude(s, cfg.OutDir, result, err)
}

// conclude shows what a run came to and returns its exit code.
func (c runCmd) conclude(s *session, out string, result *campaign.Result, err error) error {
	if result == nil {
		if errors.Is(err, campaign.ErrConfig) {
			return exitError{exitUsage, err}
		}
		return unreachable(err)
	}
	if err := show(s, c.Format, result, func() error { return report.Text(s.stdout, result) }); err != nil {
		return unreachable(err)
	}
	fmt.Fprintf(s.stderr, "kvcanary: all of the run is in %s\n", out)
	var target *campaign.TargetError
	if errors.As(err, &target) {
		return unreachable(target)
	}
	if code := result.Verdict.ExitCode(); code != exitClean {
		return exitError{code: code}
	}
	return nil
}

// config turns flags and environment into a campaign that lacks only its client.
func (c runCmd) config(s *session) (campaign.Config, error) {
	tenants, err := c.tenants(s)
	if err != nil {
		return campaign.Config{}, err
	}
	protocols, err := c.protocols()
	if err != nil {
		return campaign.Config{}, err
	}
	if _, err := wire.NewClient(wire.Options{BaseURL: c.BaseURL}); err != nil {
		return campaign.Config{}, exitError{exitUsage, err}
	}
	key, err := loadKey(s, c.KeyFile)
	if err != nil {
		return campaign.Config{}, err
	}
	seed := rand.Uint64()
	if c.Seed != nil {
		seed = *c.Seed
	}
	out := c.Out
	if out == "" {
		out = filepath.Join("kvcanary-runs", fmt.Sprintf("%s-%08x", time.Now().UTC().Format("20060102-150405"), uint32(seed)))
	}
	cfg := campaign.Config{
		Target:      campaign.Target{BaseURL: c.BaseURL, Model: c.Model, Dialect: "openai"},
		Tenants:     tenants,
		Protocols:   protocols,
		Oracles:     oracle.All(),
		Facts:       campaign.Facts{Context: c.Context, Pool: c.Pool},
		Budget:      campaign.Budget{Tokens: c.BudgetTokens, Requests: c.BudgetRequests, Time: c.MaxTime},
		Concurrency: c.Concurrency,
		Seed:        seed,
		Key:         key,
		OutDir:      out,
		Version:     version(),
		Progress:    progress(s),
	}
	if err := cfg.Check(); err != nil {
		return campaign.Config{}, exitError{exitUsage, err}
	}
	return cfg, nil
}

// client makes the run directory and a client that keeps long answers there.
func (c runCmd) client(out string) (*wire.Client, error) {
	spill, err := campaign.MakeDir(out)
	if err != nil {
		return nil, err
	}
	return wire.NewClient(wire.Options{BaseURL: c.BaseURL, SpillDir: spill, UserAgent: "kvcanary/" + version()})
}

// ask finds out whether anybody is there, and fills in what the flags leave
// open from what the target says about itself.
func (c runCmd) ask(ctx context.Context, cfg *campaign.Config) error {
	client, err := wire.NewClient(wire.Options{BaseURL: c.BaseURL, UserAgent: "kvcanary/" + version()})
	if err != nil {
		return exitError{exitUsage, err}
	}
	defer client.Close()
	key := cfg.Tenants[0].Key
	_, err = client.Models(ctx, key)
	var call *wire.CallError
	if errors.As(err, &call) && call.Failure != nil && (call.Failure.Kind == wire.FailedConnect || call.Failure.Kind == wire.FailedTLS) {
		return unreachable(call)
	}
	facts := engine.Ask(ctx, http.DefaultClient, c.BaseURL, key)
	cfg.Target.Engine = facts.Engine
	if cfg.Facts.Context == 0 {
		cfg.Facts.Context = facts.ContextOf(c.Model)
	}
	if cfg.Facts.Pool == 0 {
		cfg.Facts.Pool = facts.Pool.Value
	}
	cfg.Facts.PageSize = facts.PageSize.Value
	return nil
}

func (c runCmd) tenants(s *session) ([]campaign.Tenant, error) {
	if c.APIKeyEnv != "" && len(c.Tenant) > 0 {
		return nil, usageErrorf("--api-key-env and --tenant exclude each other: name each identity with --tenant")
	}
	if len(c.Tenant) == 0 {
		key, err := c.secret(s, c.APIKeyEnv)
		return []campaign.Tenant{{Name: "default", Key: key}}, err
	}
	var all []campaign.Tenant
	for _, t := range c.Tenant {
		name, variable, ok := strings.Cut(t, "=")
		if !ok || name == "" || variable == "" {
			return nil, usageErrorf("--tenant %q: write NAME=ENVVAR, the name of an environment variable that holds the key", name)
		}
		key, err := c.secret(s, variable)
		if err != nil {
			return nil, err
		}
		all = append(all, campaign.Tenant{Name: name, Key: key})
	}
	return all, nil
}

func (c runCmd) secret(s *session, variable string) (string, error) {
	if variable == "" {
		return "", nil
	}
	key := s.getenv(variable)
	if key == "" {
		return "", usageErrorf("environment variable %s is not set: export it with the API key", variable)
	}
	return key, nil
}

func (c runCmd) protocols() ([]probe.Protocol, error) {
	var chosen []probe.Protocol
	for _, p := range probe.All() {
		if c.Classic && p.Name == "smoke" {
			p = probe.Classic()
		}
		if len(c.Protocols) == 0 || slices.Contains(c.Protocols, p.Name) {
			chosen = append(chosen, p)
		}
	}
	for _, name := range c.Protocols {
		if !slices.Contains(protocolNames(), name) {
			return nil, usageErrorf("no protocol %q: there are %s", name, strings.Join(protocolNames(), ", "))
		}
	}
	return chosen, nil
}

func protocolNames() []string {
	var names []string
	for _, p := range probe.All() {
		names = append(names, p.Name)
	}
	return names
}

// consent asks before a run becomes dear at somebody else's place.
func (c runCmd) consent(s *session, tokens int) error {
	if tokens <= askAbove || c.Yes || isLoopback(c.BaseURL) {
		return nil
	}
	question := fmt.Sprintf("this sends about %d prompt tokens to %s", tokens, hostOf(c.BaseURL))
	if !s.tty {
		return usageErrorf("%s: add --yes, or set --budget-tokens", question)
	}
	fmt.Fprintf(s.stderr, "kvcanary: %s. Go on? [y/N] ", question)
	line, _ := bufio.NewReader(s.stdin).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return usageErrorf("not sent")
	}
	return nil
}

func hostOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return base
	}
	return u.Hostname()
}

func isLoopback(base string) bool {
	host := hostOf(base)
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	return host == "localhost"
}

// show prints v as JSON, or as text.
func show(s *session, format string, v any, text func() error) error {
	if format == "text" {
		return text()
	}
	enc := json.NewEncoder(s.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
