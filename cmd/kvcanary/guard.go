package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kvcanary/kvcanary/internal/guard/daemon"
	"github.com/kvcanary/kvcanary/internal/prose"
	"github.com/kvcanary/kvcanary/internal/receipt"
)

type guardCmd struct {
	Config string `required:"" placeholder:"FILE" help:"What to guard and how, as docs/guard.md says."`
	Check  bool   `help:"Say what is wrong with the file and what it names, and serve nothing. Nothing is connected to."`
	Ask    bool   `help:"With --check: ask the engines how long a prompt each may be sent, and say why."`
}

// Help says what the exit codes mean.
func (guardCmd) Help() string {
	return "Stands in front of engines, refuses prompts that they cannot hold, keeps tenants apart, and stops answers that carry another's canaries. It reads its file again when that changes, or on SIGHUP; a file that is wrong is refused and the old one stays in force. SIGTERM or an interrupt lets the requests under way end, for limits.drain_time at most; a second one ends it at once.\n\nExit codes: 0 drained, or the file is good; 2 wrong flags, or the file is not good; 3 --ask and a limit that is not known, or a second signal; 4 the file cannot be read, or an address is taken."
}

func (c guardCmd) Run(s *session) error {
	setup, err := daemon.Load(c.Config, s.getenv)
	switch {
	case daemon.Unreadable(err):
		return unreachable(err)
	case err != nil:
		return problems(s, err)
	case c.Check:
		return c.check(s, setup)
	case c.Ask:
		return usageErrorf("--ask goes with --check")
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	tick := time.NewTicker(daemon.Every)
	defer tick.Stop()
	if err := daemon.Run(s.ctx, setup, daemon.Options{
		File: c.Config, Getenv: s.getenv, Version: version(), Log: s.stderr, Now: time.Now, Random: rand.Reader, Hangup: hangup, Tick: tick.C,
		Processors: daemon.GoProcessors(s.getenv),
		Seal: func(dir, keyFile string) (*receipt.Sealer, error) {
			return sealFlags{Log: dir, ReceiptKey: keyFile}.sealer(s)
		},
	}); err != nil {
		return unreachable(err)
	}
	return nil
}

// check says that a file is good, and what its engines hold if that is asked.
func (c guardCmd) check(s *session, setup *daemon.Setup) error {
	for _, w := range setup.Warnings() {
		fmt.Fprintf(s.stderr, "kvcanary: %s: %s\n", c.Config, w)
	}
	fmt.Fprintf(s.stdout, "%s: good\n", c.Config)
	if !c.Ask {
		return nil
	}
	all, err := daemon.Ask(s.ctx, setup, time.Now)
	if err != nil {
		return exitError{exitUsage, err}
	}
	code := exitClean
	for _, a := range all {
		if a.Limit.Tokens == 0 {
			code = exitInconclusive
			fmt.Fprintf(s.stdout, "%s: how long a prompt it can hold is not known: %s\n", a.Upstream, prose.Printable(a.Limit.Source))
			continue
		}
		fmt.Fprintf(s.stdout, "%s: prompts of up to %s tokens: %s\n", a.Upstream, prose.Thousands(a.Limit.Tokens), prose.Printable(a.Limit.Source))
	}
	if code != exitClean {
		return exitError{code: code}
	}
	return nil
}

// problems prints each on a line of its own.
func problems(s *session, err error) error {
	all, ok := errors.AsType[daemon.Problems](err)
	if !ok {
		return exitError{exitUsage, err}
	}
	for _, p := range all {
		fmt.Fprintf(s.stderr, "kvcanary: %v\n", p)
	}
	return exitError{code: exitUsage}
}
