package main

import (
	"fmt"
	"os"

	"github.com/kvcanary/kvcanary/internal/preflight"
)

const gib = 1 << 30

type sizeCmd struct {
	Config string `arg:"" placeholder:"CONFIG.json" help:"The model's config.json."`

	GPUMemory float64 `name:"gpu-memory" required:"" placeholder:"GIB" help:"Memory of one GPU, GiB."`
	Weights   float64 `required:"" placeholder:"GIB" help:"Weights on all GPUs together, GiB."`
	GPUs      int     `name:"gpus" default:"1" placeholder:"N" help:"GPUs that share the heads of a layer. Default: ${default}."`
	Fraction  float64 `default:"0.9" placeholder:"F" help:"Share of a GPU that the engine may take. Default: ${default}."`
	Other     float64 `default:"2" placeholder:"GIB" help:"What each GPU needs beside weights and KV, GiB. Default: ${default}."`
	KVDtype   string  `name:"kv-dtype" enum:"fp8,bf16,fp16,fp32" default:"bf16" help:"Numbers of KV: fp8, bf16, fp16 or fp32. Default: ${default}."`
	PageSize  int     `name:"page-size" default:"16" placeholder:"N" help:"Tokens a page. Default: ${default}."`
	Context   int     `placeholder:"N" help:"A window that shall fit: says what it needs, and fails if it does not fit."`
	Format    string  `enum:"text,json" default:"text" help:"text or json."`
}

// Help says where the formula stands.
func (sizeCmd) Help() string {
	return "How many tokens a KV pool holds, and which context window is safe with it. docs/sizing.md has the formula and examples.\n\nExit codes: 0 done, or the window fits; 1 it does not fit; 2 wrong flags; 4 the file cannot be read.\n"
}

func (c sizeCmd) Run(s *session) error {
	f, err := os.Open(c.Config)
	if err != nil {
		return unreachable(err)
	}
	defer f.Close()
	shape, err := preflight.ReadShape(f)
	if err != nil {
		return unreachable(fmt.Errorf("%s: %w", c.Config, err))
	}
	bytes := map[string]float64{"fp8": 1, "bf16": 2, "fp16": 2, "fp32": 4}[c.KVDtype]
	z, err := preflight.Size(shape, preflight.Memory{
		GPU: c.GPUMemory * gib, Weights: c.Weights * gib, Fraction: c.Fraction, Other: c.Other * gib,
		GPUs: c.GPUs, KVBytes: bytes, PageSize: c.PageSize,
	})
	if err != nil {
		return exitError{exitUsage, err}
	}
	if err := show(s, c.Format, z, func() error { return c.text(s, z) }); err != nil {
		return unreachable(err)
	}
	if c.Context > z.Pool {
		return exitError{code: exitFound}
	}
	return nil
}

func (c sizeCmd) text(s *session, z preflight.Sizing) error {
	_, err := fmt.Fprintf(s.stdout, "a token takes %.0f bytes on each GPU; %.2f GiB are left for KV\nthe pool holds %d tokens\nsafe context window: %d or less\n",
		z.BytesPerToken, z.PoolBytes/gib, z.Pool, z.Context)
	if err != nil || c.Context == 0 {
		return err
	}
	verdict := "fits"
	if c.Context > z.Pool {
		verdict = "does not fit: do not serve it"
	}
	_, err = fmt.Fprintf(s.stdout, "a window of %d needs %.2f GiB: %s\n", c.Context, z.Needs(c.Context)/gib, verdict)
	return err
}
