package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/engine"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/prose"
	"github.com/kvcanary/kvcanary/internal/receipt"
	"github.com/kvcanary/kvcanary/internal/report"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// askAbove is how many prompt tokens a run may send to a host that is not this
// machine without being told to.
const askAbove = 1_000_000

type runCmd struct {
	Protocols []string `arg:"" optional:"" name:"protocol" help:"Protocols to run: ${protocols}. If none is named, those that make sense for the target and the budget."`

	Config    string   `placeholder:"FILE" help:"YAML file that says what these flags say; flags win over it. See docs/config.md."`
	BaseURL   string   `name:"base-url" placeholder:"URL" help:"Where the API is; most end in /v1. Needed, here or in the file."`
	Model     string   `placeholder:"NAME" help:"Model to ask for. Needed, here or in the file."`
	Dialect   string   `enum:",auto,openai,responses,anthropic,ollama" default:"" placeholder:"NAME" help:"How the API speaks: openai (chat completions), responses, anthropic (messages), ollama (its own chat) or auto, which finds out. Default: auto."`
	APIKeyEnv string   `name:"api-key-env" placeholder:"VAR" help:"Environment variable that holds the API key."`
	Tenant    []string `placeholder:"NAME=ENVVAR" help:"An identity to send as, and the environment variable that holds its key. Repeat for more."`
	reach

	Context int  `placeholder:"N" help:"Context window of the model, tokens, if you know it."`
	Pool    int  `placeholder:"N" help:"Smallest KV pool of the engine, tokens, if you know it."`
	Classic bool `help:"Let smoke send exactly what the published script sends."`

	BudgetTokens   *int           `name:"budget-tokens" placeholder:"N" help:"Most tokens to spend, prompts and answers together; 0 sets no limit."`
	BudgetRequests *int           `name:"budget-requests" placeholder:"N" help:"Most requests to make; 0 sets no limit."`
	MaxTime        *time.Duration `name:"max-time" placeholder:"D" help:"Longest time to run, for example 10m; 0 sets no limit."`
	Concurrency    int            `placeholder:"N" help:"Most exchanges under way at once. Default: 4."`
	Seed           *uint64        `placeholder:"N" help:"Makes the same plan and the same prompts again; what an earlier run with the same key and seed has left at the target cannot be told from this run's. Default: chosen anew."`

	KeyFile   string `name:"key-file" placeholder:"FILE" help:"Key that canaries are made with; made on first use. Default: kvcanary/key in the user's configuration directory."`
	Out       string `placeholder:"DIR" help:"Directory for all of the run; that of an interrupted one goes on. Default: a new one under kvcanary-runs/."`
	Resume    bool   `help:"Go on with the interrupted run that --out names; an error if there is none. Without this flag --out does so where it can."`
	DryRun    bool   `name:"dry-run" help:"Print what would be sent and how many tokens it would cost; send nothing."`
	Yes       bool   `help:"Send more than a million prompt tokens to a host that is not this machine without asking."`
	Reason    string `placeholder:"TEXT" help:"Who asked for this run, and why: sealed with the plan."`
	NoReceipt bool   `name:"no-receipt" help:"Seal nothing."`
	sealFlags

	Format string `enum:"text,json" default:"text" help:"text or json."`

	identities []identity       // who to send as, from flags or file
	plan       *campaign.Record // of the interrupted run that goes on; nil for a new one
}

func (c runCmd) Run(s *session) error {
	if err := c.complete(s); err != nil {
		return err
	}
	if err := c.load(s); err != nil {
		return err
	}
	cfg, err := c.config(s)
	if err != nil {
		return err
	}
	if !c.DryRun {
		if err := c.askInTime(s, &cfg); err != nil {
			return err
		}
	}
	plan, err := c.forecast(s, &cfg)
	if s.ctx.Err() != nil {
		return exitError{exitInconclusive, errors.New("interrupted before the run began")}
	}
	if err != nil {
		return exitError{exitUsage, err}
	}
	if c.DryRun {
		fmt.Fprintf(s.stderr, "kvcanary: seed %d\n", cfg.Seed)
		if cfg.Facts.Context == 0 {
			fmt.Fprintln(s.stderr, "kvcanary: the context window is not known, so a very large one is assumed: say --context, or set --budget-tokens")
		}
		return show(s, c.Format, plan, func() error { return report.Plan(s.stdout, plan) })
	}
	if err := c.consent(s, plan.PromptTokens, &cfg); err != nil {
		return err
	}
	if cfg.Client, err = c.client(cfg.OutDir, cfg.Target.Dialect); err != nil {
		return fileError(err)
	}
	seal, err := c.seal(s, &cfg)
	if err != nil {
		return err
	}
	result, err := campaign.Run(s.ctx, cfg)
	endProgress(s)
	if seal != nil && result != nil {
		if sealErr := sealResult(seal, cfg.OutDir, result); sealErr != nil {
			if err == nil {
				if err = c.conclude(s, cfg.OutDir, result, nil); err != nil {
					fmt.Fprintf(s.stderr, "kvcanary: %v\n", sealErr)
					return err // it says more than that nothing is sealed
				}
				return unreachable(sealErr)
			}
			fmt.Fprintf(s.stderr, "kvcanary: %v\n", sealErr)
		}
	}
	return c.conclude(s, cfg.OutDir, result, err)
}

// seal sees to it that the plan is sealed before anything is sent. It returns
// what seals the result, nil if nothing shall be sealed.
func (c runCmd) seal(s *session, cfg *campaign.Config) (*receipt.Sealer, error) {
	if c.NoReceipt {
		return nil, nil
	}
	seal, err := c.sealer(s)
	if err != nil {
		return nil, err
	}
	cfg.Planned = func(dir string) error {
		if err := seal.Plan(dir, c.Reason, cfg.Version); err != nil {
			return fmt.Errorf("seal the plan: %w (nothing was sent; --no-receipt does without, --log names another place)", err)
		}
		return nil
	}
	return seal, nil
}

// Help says what the protocols do and what the exit codes mean.
func (runCmd) Help() string {
	var b strings.Builder
	b.WriteString("Protocols:\n")
	for _, p := range probe.All() {
		fmt.Fprintf(&b, "\n%s: %s\n", p.Name, p.Does)
	}
	b.WriteString("\nExit codes: 0 clean, 1 leak or violation, 2 wrong flags, 3 inconclusive or interrupted, 4 the target could not be used or a file not be written.\n")
	return b.String()
}

// conclude shows what a run came to and returns its exit code.
func (c runCmd) conclude(s *session, out string, result *campaign.Result, err error) error {
	if result == nil {
		return fileError(err)
	}
	if err := show(s, c.Format, result, func() error { return report.Text(s.stdout, result) }); err != nil {
		return unkept(result, fmt.Errorf("show the result: %w; it is in %s", err, out))
	}
	var target *campaign.TargetError
	if err != nil && !errors.As(err, &target) {
		return unkept(result, fmt.Errorf("%w; what was kept before is in %s, and --resume goes on from there", err, out))
	}
	fmt.Fprintf(s.stderr, "kvcanary: all of the run is in %s\n", out)
	if result.Resumable {
		fmt.Fprintf(s.stderr, "kvcanary: it was stopped before its end: kvcanary run --resume --out %s goes on\n", out)
	}
	if target != nil {
		return unreachable(target)
	}
	if code := result.Verdict.ExitCode(); code != exitClean {
		return exitError{code: code}
	}
	return nil
}

// unkept is the exit code of a run whose result could not be shown or kept: what
// was found stands all the same.
func unkept(r *campaign.Result, err error) error {
	if r.Verdict.ExitCode() == exitFound {
		return exitError{exitFound, err}
	}
	return unreachable(err)
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
	if len(tenants) < 2 && slices.Contains(c.Protocols, "tenants") {
		return campaign.Config{}, usageErrorf("protocol tenants compares identities, and %d was given: name more with --tenant, or leave it out", len(tenants))
	}
	if _, err := wire.NewClient(c.options(c.Dialect)); err != nil {
		return campaign.Config{}, exitError{exitUsage, err}
	}
	var key canary.Key
	if !c.DryRun { // what a run would cost does not depend on the key
		if key, err = loadKey(s, c.KeyFile); err != nil {
			return campaign.Config{}, err
		}
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
		Target:      campaign.Target{BaseURL: c.BaseURL, Model: c.Model, Dialect: c.Dialect},
		Tenants:     tenants,
		Protocols:   protocols,
		Oracles:     oracle.All(),
		Facts:       c.facts(),
		Budget:      campaign.Budget{Tokens: orZero(c.BudgetTokens), Requests: orZero(c.BudgetRequests), Time: orZero(c.MaxTime)},
		Concurrency: c.Concurrency,
		Seed:        seed,
		Key:         key,
		OutDir:      out,
		Resume:      c.plan != nil,
		Version:     version(),
		Progress:    progress(s),
	}
	if err := cfg.Check(); err != nil {
		return campaign.Config{}, exitError{exitUsage, err}
	}
	return cfg, nil
}

// client makes the run directory and a client that keeps long answers there.
func (c runCmd) client(out, dialect string) (*wire.Client, error) {
	spill := campaign.Spill(out)
	if c.plan == nil {
		var err error
		if spill, err = campaign.MakeDir(out); err != nil {
			return nil, err
		}
	}
	o := c.options(dialect)
	o.SpillDir = spill
	return wire.NewClient(o)
}

// How long a target may take for what it is asked before a run. What it leaves
// unanswered is done without.
const (
	listPatience  = 15 * time.Second // for its list of models
	greetPatience = 2 * time.Minute  // for greetings in all dialects
)

// askInTime asks the target as ask does, and counts the time that takes against
// that of the run.
func (c runCmd) askInTime(s *session, cfg *campaign.Config) error {
	asking := *s
	if limit := orZero(c.MaxTime); limit > 0 {
		var cancel context.CancelFunc
		asking.ctx, cancel = context.WithTimeout(s.ctx, limit)
		defer cancel()
	}
	began := time.Now()
	err := c.ask(&asking, cfg)
	cfg.Before.Time = time.Since(began)
	switch {
	case s.ctx.Err() != nil:
		return exitError{exitInconclusive, errors.New("interrupted before the run began")}
	case asking.ctx.Err() != nil:
		return exitError{exitInconclusive, fmt.Errorf("time limit of %v reached before the run began: the target answers late or never; --dialect saves a question", orZero(c.MaxTime))}
	}
	return err
}

// ask finds out whether anybody is there, and fills in what the flags leave
// open from what the target says about itself.
func (c runCmd) ask(s *session, cfg *campaign.Config) error {
	client, err := wire.NewClient(c.options(c.Dialect))
	if err != nil {
		return exitError{exitUsage, err}
	}
	defer client.Close()
	key := cfg.Tenants[0].Key
	ctx, cancel := context.WithTimeout(s.ctx, listPatience)
	models, err := client.Models(ctx, key)
	cancel()
	var call *wire.CallError
	if errors.As(err, &call) && call.Failure != nil && (call.Failure.Kind == wire.FailedConnect || call.Failure.Kind == wire.FailedTLS) {
		return unreachable(call)
	}
	if c.plan != nil {
		cfg.Target.Engine, cfg.Before = c.plan.Target.Engine, c.plan.Before
		return nil
	}
	facts := engine.Ask(s.ctx, client.HTTP(), client.Root(), key)
	cfg.Target.Engine = facts.Engine
	if cfg.Target.Dialect, err = c.dialectOf(s, cfg, facts.Engine); err != nil {
		return err
	}
	if models == nil { // some list their models only to who asks in their own way
		models = c.models(s, cfg.Target.Dialect, key)
	}
	cfg.Facts.Context = prefer(s, "context", cfg.Facts.Context, cmp.Or(facts.ContextOf(c.Model), listed(models, c.Model)))
	pool := facts.Pool.Value
	if facts.Pool.Basis == engine.Inferred && pool == facts.Context.Value {
		pool = 0 // it is the window again
	}
	cfg.Facts.Pool = prefer(s, "pool", cfg.Facts.Pool, pool)
	cfg.Facts.PageSize = facts.PageSize.Value
	cfg.Facts.Adapters = adapters(models, c.Model, facts.Engine)
	return nil
}

// mostAdapters is how many adapters are looked at: two are enough for a pair.
const mostAdapters = 2

// adapters are those that a list of models names after the model, "model:adapter".
// What follows the colon elsewhere is a tag of the model's own name: on Ollama
// always, and whatever is "latest". A tag may well be the same model once more,
// which nothing has to keep apart from itself.
func adapters(models []wire.ModelInfo, name, engine string) []string {
	var out []string
	if engine == "ollama" || slices.ContainsFunc(models, func(m wire.ModelInfo) bool { return strings.HasSuffix(m.ID, ":latest") }) {
		return nil
	}
	for _, m := range models {
		if a, ok := strings.CutPrefix(m.ID, name+":"); ok && a != "" && len(out) < mostAdapters {
			out = append(out, a)
		}
	}
	return out
}

// models are those that the target lists, nil if it does not.
func (c runCmd) models(s *session, dialect, key string) []wire.ModelInfo {
	client, err := wire.NewClient(c.options(dialect))
	if err != nil {
		return nil
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(s.ctx, listPatience)
	defer cancel()
	models, _ := client.Models(ctx, key)
	return models
}

// listed is the context window of a model in a list, tokens, 0 if it is not
// stated.
func listed(models []wire.ModelInfo, name string) int {
	for _, m := range models {
		if m.ID == name {
			return m.MaxContext
		}
	}
	return 0
}

// prefer is what the flag says, else what the engine says; that they differ is
// worth a word.
func prefer(s *session, what string, flag, engine int) int {
	if flag == 0 {
		return engine
	}
	if engine != 0 && engine != flag {
		fmt.Fprintf(s.stderr, "kvcanary: --%s says %d tokens, the engine says %d: going by the flag\n", what, flag, engine)
	}
	return flag
}

func (c runCmd) tenants(s *session) ([]campaign.Tenant, error) {
	var all []campaign.Tenant
	for _, id := range c.identities {
		key, err := c.secret(s, id.variable)
		if err != nil {
			return nil, err
		}
		for _, other := range all {
			if other.Key == key {
				return nil, usageErrorf("tenants %s and %s have the same key: they would be one tenant", other.Name, id.name)
			}
		}
		all = append(all, campaign.Tenant{Name: id.name, Key: key})
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

// forecast is what the run would send. Where no protocol was named it also
// chooses those that make sense, and says why.
func (c runCmd) forecast(s *session, cfg *campaign.Config) (*campaign.Forecast, error) {
	if len(c.Protocols) > 0 {
		if c.plan != nil {
			cfg.Choices = c.plan.Choices
		}
		return campaign.DryRun(*cfg)
	}
	chosen, why, plan, err := campaign.Choose(s.ctx, *cfg, cfg.Protocols)
	if err != nil {
		return nil, err
	}
	cfg.Protocols, cfg.Choices = chosen, why
	for _, w := range why {
		if w.Runs {
			fmt.Fprintf(s.stderr, "kvcanary: %s: %s\n", w.Protocol, w.Reason)
		} else {
			fmt.Fprintf(s.stderr, "kvcanary: %s is left out: %s\n", w.Protocol, w.Reason)
		}
	}
	return plan, nil
}

// protocols are those that were named, else all there are to choose of.
func (c runCmd) protocols() ([]probe.Protocol, error) {
	if c.Classic && len(c.Protocols) > 0 && !slices.Contains(c.Protocols, "smoke") {
		return nil, usageErrorf("--classic is a way to run smoke: name smoke, or leave it out")
	}
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
			return nil, usageErrorf("no protocol %q: choose of %s", name, strings.Join(protocolNames(), ", "))
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

// consent asks before a run becomes dear at somebody else's place. The forecast
// may be wrong, so a run that nobody was asked about ends where it would have been.
func (c runCmd) consent(s *session, tokens int, cfg *campaign.Config) error {
	if c.Yes || c.isLocal() || cfg.Budget.Tokens > 0 && cfg.Budget.Tokens <= askAbove {
		return nil
	}
	if tokens <= askAbove {
		if cfg.Budget.Tokens == 0 {
			cfg.Budget.Tokens = askAbove
		}
		return nil
	}
	question := fmt.Sprintf("this sends about %d prompt tokens to %s", tokens, hostOf(c.BaseURL))
	if !s.tty {
		return usageErrorf("%s: add --yes, or set --budget-tokens", question)
	}
	fmt.Fprintf(s.stderr, "kvcanary: %s. Go on? [y/N] ", question)
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(s.stdin).ReadString('\n')
		said <- line
	}()
	var line string
	select {
	case line = <-said:
	case <-s.ctx.Done():
		return exitError{exitInconclusive, errors.New("interrupted, nothing was sent")}
	}
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

// isLocal reports whether nothing leaves this machine, a proxy apart.
func (c runCmd) isLocal() bool {
	return c.Socket != "" || strings.HasPrefix(c.BaseURL, "unix:") || isLoopback(c.BaseURL)
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
	return prose.JSON(s.stdout, v)
}
