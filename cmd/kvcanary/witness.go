package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/kvcanary/kvcanary/internal/prose"
	"github.com/kvcanary/kvcanary/internal/receipt"
	"github.com/kvcanary/kvcanary/internal/witness"
)

// askFlags say who cosigns the log of receipts.
type askFlags struct {
	Witness       []string `sep:"none" placeholder:"URL" help:"Ask this witness to cosign the log; needs a --witness-key. Repeat both for more. One that is away fails nothing."`
	WitnessKey    []string `name:"witness-key" sep:"none" placeholder:"FILE" help:"Public key of the witness, a line name+hash+key; as many as --witness, in their order."`
	WitnessPolicy string   `name:"witness-policy" placeholder:"FILE" help:"Witnesses with keys and addresses, and how many have to cosign (c2sp.org/tlog-policy). Too few: the command fails, a run before its first request."`
}

// knownFlags say whose cosignatures are believed.
type knownFlags struct {
	WitnessKey    []string `name:"witness-key" sep:"none" placeholder:"FILE" help:"Public key of a witness who has to have cosigned; repeat for more."`
	WitnessPolicy string   `name:"witness-policy" placeholder:"FILE" help:"Witnesses, and how many of them have to have cosigned (c2sp.org/tlog-policy)."`
}

// policy is what the flags say; nil if they say nothing.
func (f knownFlags) policy() (*receipt.Policy, error) {
	if f.WitnessPolicy != "" && len(f.WitnessKey) > 0 {
		return nil, usageErrorf("--witness-policy has its own keys: leave --witness-key out")
	}
	if f.WitnessPolicy != "" {
		return readPolicy(f.WitnessPolicy)
	}
	return policyOf(f.WitnessKey, nil)
}

// maxKeyFile bounds a file of keys or of a policy, bytes.
const maxKeyFile = 1 << 20

func readPolicy(path string) (*receipt.Policy, error) {
	text, err := readSmall(path)
	if err != nil {
		return nil, unreachable(fmt.Errorf("witness policy: %w", err))
	}
	p, err := receipt.ParsePolicy(text)
	if err != nil {
		return nil, exitError{exitUsage, fmt.Errorf("%s: %w", path, err)}
	}
	return p, nil
}

func readSmall(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	p, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err == nil && len(p) > maxKeyFile {
		err = fmt.Errorf("%s is longer than %d bytes", path, maxKeyFile)
	}
	return string(p), err
}

// policyOf is a policy that wants all witnesses whose keys are in files; nil
// without any. Addresses may be nil.
func policyOf(files, urls []string) (*receipt.Policy, error) {
	var all []receipt.PolicyWitness
	for i, path := range files {
		line, err := readSmall(path)
		if err != nil {
			return nil, unreachable(fmt.Errorf("witness key: %w", err))
		}
		key, err := receipt.ParseWitness(line)
		if err != nil {
			return nil, exitError{exitUsage, fmt.Errorf("%s: %w", path, err)}
		}
		w := receipt.PolicyWitness{Key: key}
		if urls != nil {
			w.URL = urls[i]
		}
		all = append(all, w)
	}
	if len(all) == 0 {
		return nil, nil
	}
	p, err := receipt.PolicyOf(all...)
	if err != nil {
		return nil, exitError{exitUsage, err}
	}
	return p, nil
}

// client asks the witnesses that the flags name; nil if they name none. wanted
// says that too few of them are an error.
func (f askFlags) client() (c *witness.Client, wanted bool, err error) {
	var policy *receipt.Policy
	switch {
	case f.WitnessPolicy != "" && len(f.Witness)+len(f.WitnessKey) > 0:
		return nil, false, usageErrorf("--witness-policy has its own witnesses: leave --witness and --witness-key out")
	case f.WitnessPolicy != "":
		wanted = true
		policy, err = readPolicy(f.WitnessPolicy)
	case len(f.Witness) != len(f.WitnessKey):
		return nil, false, usageErrorf("%d --witness and %d --witness-key: each witness needs its key", len(f.Witness), len(f.WitnessKey))
	default:
		policy, err = policyOf(f.WitnessKey, f.Witness)
	}
	if err != nil || policy == nil {
		return nil, false, err
	}
	return &witness.Client{HTTP: &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, Policy: policy, Patience: witness.Patience, Now: time.Now}, wanted, nil
}

// cosigner is how a sealer asks the witnesses that the flags name; nil if they
// name none.
func (f askFlags) cosigner(s *session, log *receipt.Log) (func() (*receipt.Checkpoint, error), *receipt.Policy, error) {
	c, wanted, err := f.client()
	if err != nil || c == nil {
		return nil, nil, err
	}
	if err := c.Policy.For(log.Key()); err != nil {
		return nil, nil, exitError{exitUsage, err}
	}
	return func() (*receipt.Checkpoint, error) {
		checkpoint, all, err := c.Cosign(context.WithoutCancel(s.ctx), log) // an interrupted run is sealed too
		for _, o := range all {
			if o.Err != nil {
				fmt.Fprintf(s.stderr, "kvcanary: witness %s has not cosigned: %s\n", prose.Printable(o.Witness), prose.Printable(o.Err.Error()))
			}
		}
		if errors.Is(err, receipt.ErrQuorum) && !wanted {
			err = nil
		}
		return checkpoint, err
	}, c.Policy, nil
}
