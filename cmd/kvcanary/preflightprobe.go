package main

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/preflight"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// sglangMargin is how far below its pool SGLang refuses a prompt, tokens.
const sglangMargin = 6

// probe finds the limit of the endpoint and straddles it once. Nothing of it
// is kept.
func (c preflightCmd) probe(s *session, d preflight.Deployment) (*preflight.Probe, error) {
	if c.URL == "" || c.Model == "" {
		return nil, usageErrorf("--probe sends prompts to URL for --model: give both")
	}
	cfg, err := c.campaign(s, d)
	if err != nil {
		return nil, err
	}
	out := &preflight.Probe{At: c.URL}
	cfg.Observe = func(e wire.Exchange, _ []wire.Message) {
		if r := e.Answer.Refusal; r != nil && r.Kind == wire.RefusedPool && r.Limit > 0 {
			out.Pool = r.Limit + sglangMargin
		}
	}
	result, err := campaign.Run(s.ctx, cfg)
	endProgress(s)
	var target *campaign.TargetError
	switch {
	case result == nil && errors.Is(err, campaign.ErrConfig):
		return nil, exitError{exitUsage, err}
	case errors.As(err, &target):
		return nil, unreachable(target)
	case result == nil:
		return nil, unreachable(err)
	}
	out.AcceptedMax, out.RejectedMin = result.Limits.AcceptedMax, result.Limits.RejectedMin
	out.Findings, out.Missing = len(result.Findings), result.Reason
	if len(result.Findings) > 0 {
		f := result.Findings[0]
		out.Finding = fmt.Sprintf("%s: %s", f.Kind, f.Explain)
	}
	return out, nil
}

// campaign is one boundary and one straddle.
func (c preflightCmd) campaign(s *session, d preflight.Deployment) (campaign.Config, error) {
	key, err := loadKey(s, c.KeyFile)
	if err != nil {
		return campaign.Config{}, err
	}
	client, err := wire.NewClient(wire.Options{BaseURL: c.URL, UserAgent: "kvcanary/" + version()})
	if err != nil {
		return campaign.Config{}, exitError{exitUsage, err}
	}
	facts := campaign.Facts{Context: c.Context, Pool: c.Pool, Pairs: 1}
	for _, w := range d.Workers {
		least(&facts.Context, w.Facts.Context.Value)
		least(&facts.Pool, w.Facts.Pool.Value)
		least(&facts.PageSize, w.Facts.PageSize.Value)
	}
	secret := ""
	if c.APIKeyEnv != "" {
		secret = s.getenv(c.APIKeyEnv)
	}
	cfg := campaign.Config{
		Target:  campaign.Target{BaseURL: c.URL, Model: c.Model, Dialect: "openai"},
		Tenants: []campaign.Tenant{{Name: "default", Key: secret}},
		Oracles: oracle.All(), Facts: facts, Pairs: 1, Seed: rand.Uint64(), Key: key,
		Version: version(), Client: client, Progress: progress(s),
	}
	for _, p := range probe.All() {
		if p.Name == "boundary" || p.Name == "straddle" {
			cfg.Protocols = append(cfg.Protocols, p)
		}
	}
	return cfg, nil
}

// least takes a number that is known and smaller.
func least(to *int, n int) {
	if n > 0 && (*to == 0 || n < *to) {
		*to = n
	}
}
