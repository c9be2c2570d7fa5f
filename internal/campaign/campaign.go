// Package campaign runs protocols on a target under a budget and turns what
// came back into a verdict.
//
// It is the only package that knows time, concurrency and money. Protocols
// decide what to send and oracles what it means; both are pure. A campaign
// given the same seed, key and answers makes the same exchanges and comes to
// the same result: only timings differ.
package campaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// Client is what a campaign needs of an endpoint; *wire.Client is one.
type Client interface {
	// Do makes one exchange; whatever goes wrong is in the answer.
	Do(ctx context.Context, r wire.Request) *wire.Answer
	// CountTokens asks the target's own tokenizer; ok is false if it has none.
	CountTokens(ctx context.Context, key, model string, messages []wire.Message) (n int, ok bool, err error)
}

// Tenant is an identity under which requests are sent.
type Tenant struct {
	Name string
	Key  string // bearer token; empty sends none; never printed or stored
}

// Facts are what is known of the target beforehand; 0 for what is not.
type Facts struct {
	Context   int `json:"context,omitempty"`   // context window, tokens
	Pool      int `json:"pool,omitempty"`      // smallest KV pool, tokens
	PageSize  int `json:"page_size,omitempty"` // tokens a page
	MaxAnswer int `json:"max_answer"`          // longest answer asked for, tokens; 0 takes 192
	Pairs     int `json:"pairs,omitempty"`     // how many pairs straddle makes; 0 leaves it to the protocol
	// Adapters are names that follow the model's, "model:adapter", as the target lists them.
	Adapters []string `json:"adapters,omitempty"`
}

// Budget is what a campaign may spend; 0 stands for no limit.
type Budget struct {
	Tokens   int           `json:"tokens,omitempty"`   // prompt and answer tokens together
	Requests int           `json:"requests,omitempty"` // retries count
	Time     time.Duration `json:"time,omitempty"`     // wall time
}

// Before is what was spent before a campaign starts.
type Before struct {
	Requests int `json:"requests,omitempty"`
	Tokens   int `json:"tokens,omitempty"`
	// Time counts against that of this sitting.
	Time time.Duration `json:"-"`
}

// Config is a campaign before it starts.
type Config struct {
	Target    Target
	Tenants   []Tenant // at least one
	Protocols []probe.Protocol
	Oracles   []oracle.Oracle
	Choices   []Choice // why the protocols were chosen, if nobody has named them
	Facts     Facts
	Budget    Budget
	// Before is what the target was asked before the campaign, for instance to
	// find out its dialect; it counts against the budget.
	Before Before
	Pairs  int // pairs that straddle makes; 0 leaves it to the protocol
	// Concurrency is how many exchanges of a batch are under way at once; 0 takes 4.
	Concurrency int
	Seed        uint64
	Key         canary.Key
	// OutDir is the run directory to make; it must not exist, be empty or come
	// from MakeDir. Empty keeps nothing on disk.
	OutDir string
	// Resume goes on with the interrupted run in OutDir: what it has made is not
	// sent again. Its plan must be the same.
	Resume bool
	// Planned is told that the plan is in OutDir, before anything is sent; what it
	// returns ends the campaign. nil tells nobody.
	Planned func(dir string) error
	Version string // of kvcanary, for the record
	Client  Client
	// Progress is told about every finished exchange, one call at a time; nil tells nobody.
	Progress func(Progress)
	// Observe is given every finished exchange with the prompt that was sent,
	// one call at a time; nil gives them to nobody.
	Observe func(wire.Exchange, []wire.Message)
	Now     func() time.Time // nil takes the system's clock
}

// Progress is how far a campaign is.
type Progress struct {
	Protocol     string // under way
	Sent         int    // exchanges finished
	Requests     int    // requests made, retries included
	PromptTokens int    // sent so far, as in Spent
	SpentTokens  int    // what counts against the budget
	BudgetTokens int    // 0 for no limit
	BudgetCalls  int    // 0 for no limit
	Findings     int    // of the protocols that have ended
}

// ErrConfig is wrapped by every error that says a Config makes no sense: the
// caller has to change it, nothing was sent.
var ErrConfig = errors.New("configuration")

// TargetError says that the target could not be used at all: it could not be
// reached, would not let anybody in, has no such model or is no such API.
type TargetError struct {
	Reason string // one line: what happened and what to do
}

func (e *TargetError) Error() string { return e.Reason }

const (
	defaultConcurrency = 4
	defaultMaxAnswer   = 192
	// openAnswer is reserved in the budget for an answer whose length is left
	// to the target, tokens.
	openAnswer = 4096
	// controlIDs are minted and never sent; one of them coming back means that
	// the scanner or the run is broken.
	controlIDs = 16
	// seqSpace is how many exchanges a run can name: 17 bits of canary id. The
	// controls take the top of it.
	seqSpace   = 1 << 17
	maxTenants = 1 << 4
)

// Run makes a campaign. Cancelling ctx ends it early; what was found by then
// is kept and judged. The result is there also with an error, unless nothing
// was sent: a *TargetError, or what could not be written to the run directory.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	r := newRunner(cfg)
	if cfg.OutDir != "" {
		if err := r.open(); err != nil {
			return nil, err
		}
		defer r.dir.close()
	}
	targetErr := r.run(ctx)
	if r.broken != nil {
		return nil, r.broken
	}
	if r.dir != nil {
		// Of a disk that takes no more the first thing that it did not take is said.
		if err := cmp.Or(r.dir.failed(), r.dir.writeResult(r.result)); err != nil {
			return r.result, err
		}
	}
	if targetErr != nil {
		return r.result, targetErr
	}
	return r.result, nil
}

// open makes the run directory, or goes on in it.
func (r *runner) open() (err error) {
	if !r.cfg.Resume {
		if r.dir, err = createDir(r.cfg.OutDir); err != nil {
			return err
		}
		err := r.dir.writePlan(r.record())
		if err == nil && r.cfg.Planned != nil {
			err = r.cfg.Planned(r.cfg.OutDir)
		}
		if err != nil {
			r.dir.close()
		}
		return err
	}
	if r.dir, r.past, err = reopen(r.cfg.OutDir); err != nil {
		return err
	}
	if err := r.past.fits(r.record()); err != nil {
		r.dir.close()
		return err
	}
	r.result.Started = r.past.plan.Started
	if len(r.past.done) == 0 && r.cfg.Planned != nil { // it may have been killed before
		if err := r.cfg.Planned(r.cfg.OutDir); err != nil {
			r.dir.close()
			return err
		}
	}
	return nil
}

// Check says what makes no sense about a Config, wrapping [ErrConfig]. Run and
// DryRun check it too.
func (c Config) Check() error {
	_, err := c.complete()
	return err
}

// complete checks a Config and fills in its defaults.
func (c Config) complete() (Config, error) {
	bad := func(format string, args ...any) (Config, error) {
		return c, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...)
	}
	switch {
	case len(c.Protocols) == 0:
		return bad("no protocol to run: name at least one")
	case len(c.Tenants) == 0:
		return bad("no tenant to send as: give at least one")
	case len(c.Tenants) > maxTenants:
		return bad("%d tenants: at most %d can be told apart", len(c.Tenants), maxTenants)
	case c.Facts.Context < 0 || c.Facts.Pool < 0 || c.Facts.PageSize < 0 || c.Facts.MaxAnswer < 0:
		return bad("context, pool, page size and answer length cannot be negative")
	case c.Pairs < 0 || c.Budget.Tokens < 0 || c.Budget.Requests < 0 || c.Budget.Time < 0 || c.Concurrency < 0:
		return bad("pairs, budgets and concurrency cannot be negative")
	}
	seen := map[string]bool{}
	for _, t := range c.Tenants {
		if t.Name == "" || seen[t.Name] {
			return bad("tenant names must be there and differ; %q does not", t.Name)
		}
		seen[t.Name] = true
	}
	if c.Concurrency == 0 {
		c.Concurrency = defaultConcurrency
	}
	if c.Facts.MaxAnswer == 0 {
		c.Facts.MaxAnswer = defaultMaxAnswer
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Target.BaseURL = bareURL(c.Target.BaseURL)
	return c, nil
}
