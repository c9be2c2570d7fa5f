package main

import (
	"fmt"

	"github.com/kvcanary/kvcanary/internal/prose"
	"github.com/kvcanary/kvcanary/internal/receipt"
)

type receiptLogCmd struct {
	Log       string `placeholder:"DIR" help:"The log. Default: the user's own."`
	PublicKey string `name:"public-key" placeholder:"FILE" help:"Its public key. Default: the user's own."`
	List      bool   `help:"List every entry."`
	From      int64  `placeholder:"N" help:"Show that the log, or its size --to, begins with the log of this size, and print both roots."`
	To        int64  `placeholder:"N" help:"With --from: the newer size."`
	Prove     int64  `default:"-1" placeholder:"N" help:"Print the proof of entry N."`
	knownFlags
}

func (c receiptLogCmd) Run(s *session) error {
	v, err := publicKey(c.PublicKey)
	if err != nil {
		return err
	}
	policy, err := c.policy()
	if err != nil {
		return err
	}
	dir, err := place(c.Log, "log")
	if err != nil {
		return err
	}
	log, err := receipt.Open(dir, v)
	if err != nil {
		return exitError{exitFound, err}
	}
	tree, err := log.Tree()
	if err != nil {
		return exitError{exitFound, err}
	}
	switch {
	case c.Prove >= 0:
		p, err := log.Prove(c.Prove)
		if err != nil {
			return exitError{exitFound, err}
		}
		_, err = s.stdout.Write(p)
		return err
	case c.From > 0:
		to := c.To
		if to == 0 {
			to = tree.N
		}
		a, b, err := log.Consistent(c.From, to)
		if err != nil {
			return exitError{exitFound, err}
		}
		fmt.Fprintf(s.stdout, "%d %v\n%d %v\nthe second begins with the first\n", c.From, a, to, b)
		return nil
	}
	n, err := log.Check()
	if err != nil {
		return exitError{exitFound, err}
	}
	for i := range n {
		if !c.List {
			break
		}
		p, err := log.Entry(i)
		if err != nil {
			return exitError{exitFound, err}
		}
		fmt.Fprintf(s.stdout, "%d %s\n", i, prose.Printable(string(p)))
	}
	fmt.Fprintf(s.stdout, "%s: %d entries, all as they were logged; root %v\n", v.Name(), n, tree.Hash)
	return c.cosigned(s, log, policy)
}

// cosigned says how much of the log witnesses have seen.
func (c receiptLogCmd) cosigned(s *session, log *receipt.Log, policy *receipt.Policy) error {
	if policy == nil {
		unwitnessed(s, policy)
		return nil
	}
	if err := policy.For(log.Key()); err != nil {
		return exitError{exitUsage, err}
	}
	for _, w := range policy.Witnesses {
		seen, err := log.CheckSeen(w.Key)
		if err != nil {
			return exitError{exitFound, err}
		}
		if seen == nil {
			fmt.Fprintf(s.stdout, "  %s has cosigned nothing\n", prose.Printable(w.Key.Name()))
			continue
		}
		for _, by := range seen.Cosigned {
			fmt.Fprintf(s.stdout, "  %s has cosigned %d entries, %s\n", prose.Printable(by.Witness), seen.Tree.N, by.Time.Format("2006-01-02 15:04:05 UTC"))
		}
	}
	return nil
}

type receiptCosignCmd struct {
	Dir string `arg:"" optional:"" placeholder:"DIR" help:"A run directory whose receipts fewer witnesses have cosigned than shall."`
	sealFlags
}

func (c receiptCosignCmd) Run(s *session) error {
	seal, err := c.sealer(s)
	if err != nil {
		return err
	}
	if seal.Cosign == nil {
		return usageErrorf("name witnesses: --witness with --witness-key, or --witness-policy")
	}
	if c.Dir != "" {
		n, err := seal.Renew(c.Dir)
		if err != nil {
			return unreachable(err)
		}
		fmt.Fprintf(s.stdout, "%d receipt(s) have a new proof\n", n)
		return nil
	}
	checkpoint, err := seal.Cosign()
	if err == nil {
		err = seal.Policy.Met(checkpoint.Cosigned)
	}
	if err != nil {
		return unreachable(err)
	}
	fmt.Fprintf(s.stdout, "%d entries\n", checkpoint.Tree.N)
	witnesses(s, checkpoint.Cosigned, nil)
	return nil
}
