package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/prose"
	"github.com/kvcanary/kvcanary/internal/receipt"
)

type receiptCmd struct {
	Verify receiptVerifyCmd `cmd:"" help:"Check the receipts of a run directory, and every file that they are about, offline."`
	Show   receiptShowCmd   `cmd:"" help:"Show what the receipts of a run directory say, without checking files."`
	Log    receiptLogCmd    `cmd:"" help:"Check the log of receipts, list it, or prove that a size of it begins with an older one."`
	Decide receiptDecideCmd `cmd:"" help:"Seal a decision that no tool made, with its basis."`
	Cosign receiptCosignCmd `cmd:"" help:"Ask witnesses to cosign the log as it is, and the receipts of a run directory that were sealed while they were away."`
}

// Help says what a receipt proves.
func (receiptCmd) Help() string {
	return "A receipt proves that something was sealed in this order and not changed since. That there is no second log only witnesses can say, who see every checkpoint: run and decide ask them with --witness, verify wants their cosignatures with --witness-key or --witness-policy.\n\nExit codes: 0 all is as it was sealed, 1 it is not, 2 wrong flags, 4 it cannot be read.\n"
}

type receiptVerifyCmd struct {
	Dir       string `arg:"" placeholder:"DIR|FILE" help:"A run directory, or one .tlog-proof file."`
	PublicKey string `name:"public-key" placeholder:"FILE" help:"Public key of who sealed it. Default: the user's own."`
	KeyFile   string `name:"key-file" placeholder:"FILE" help:"Key that canaries were made with: makes every prompt of the run again and compares it with the record."`
	Log       string `placeholder:"DIR" help:"The log, to compare with it. Default: the user's own, if it is of that key."`
	knownFlags
	Format string `enum:"text,json" default:"text" help:"text or json."`
}

func (c receiptVerifyCmd) Run(s *session) error {
	v, err := publicKey(c.PublicKey)
	if err != nil {
		return err
	}
	policy, err := c.policy()
	if err != nil {
		return err
	}
	if err := policy.For(v); err != nil {
		return exitError{exitUsage, err}
	}
	if strings.HasSuffix(c.Dir, ".tlog-proof") {
		return c.proof(s, v, policy)
	}
	log, err := c.log(s, v)
	if err != nil {
		return err
	}
	all, err := receipt.VerifyDir(c.Dir, receipt.Against{Key: v, Policy: policy, Log: log, OtherLog: c.Log == ""})
	if err != nil {
		return unreachable(err)
	}
	wrong, compared := 0, log != nil
	for _, x := range all {
		wrong += len(x.Problems)
		compared = compared && x.InLog
	}
	if log != nil && !compared && c.Log == "" {
		fmt.Fprintln(s.stderr, "kvcanary: not compared with the user's own log: the receipts are not in it; --log names another")
	}
	err = show(s, c.Format, all, func() error {
		for _, x := range all {
			describe(s, &x)
		}
		return nil
	})
	if err != nil {
		return unreachable(err)
	}
	var remade error
	if c.KeyFile != "" {
		remade = c.remake(s)
	}
	if wrong > 0 {
		if remade != nil {
			fmt.Fprintf(s.stderr, "kvcanary: %v\n", remade)
		}
		fmt.Fprintf(s.stderr, "kvcanary: this is not what was sealed: %d thing(s) differ\n", wrong)
		return exitError{code: exitFound}
	}
	if len(all) == 1 && all[0].Name == "plan" {
		fmt.Fprintf(s.stderr, "kvcanary: only the plan is sealed: what the run came to is not%s\n", map[bool]string{
			true: ", and the log has no result of it", false: "; whether the log has a result of it is not known: --log",
		}[compared])
	}
	unwitnessed(s, policy)
	return remade
}

// unwitnessed says what is not shown without witnesses.
func unwitnessed(s *session, policy *receipt.Policy) {
	if policy == nil {
		fmt.Fprintln(s.stderr, "kvcanary: this shows order and integrity, and not that there is no second log: no witness was asked for (--witness-key, --witness-policy)")
	}
}

// log opens the log to compare with, nil if there is none. One that was named
// has to open; the user's own may be of another key.
func (c receiptVerifyCmd) log(s *session, v *receipt.Verifier) (*receipt.Log, error) {
	dir, err := place(c.Log, "log")
	if err != nil {
		return nil, nil // there is no place for it
	}
	log, err := receipt.Open(dir, v)
	if err == nil {
		var n int64
		if n, err = log.Size(); err == nil && n > 0 {
			return log, nil
		}
	}
	switch {
	case c.Log == "" && err != nil:
		fmt.Fprintf(s.stderr, "kvcanary: not compared with a log: %s is of another key, or was changed\n", dir)
		return nil, nil
	case c.Log == "":
		return nil, nil
	case err != nil:
		return nil, exitError{exitFound, err}
	}
	return nil, unreachable(fmt.Errorf("%s holds no log", dir))
}

// remake makes the run's prompts again.
func (c receiptVerifyCmd) remake(s *session) error {
	if _, err := os.Stat(c.KeyFile); err != nil {
		return usageErrorf("key file: %w", err)
	}
	key, err := loadKey(s, c.KeyFile)
	if err != nil {
		return err
	}
	n, err := campaign.Remake(s.ctx, c.Dir, key)
	switch {
	case errors.Is(err, campaign.ErrConfig) && !errors.Is(err, campaign.ErrRemade):
		return exitError{exitUsage, err}
	case errors.Is(err, campaign.ErrRemade):
		return exitError{exitFound, err}
	case err != nil:
		return unreachable(err)
	}
	fmt.Fprintf(s.stderr, "kvcanary: %d prompts were made again from plan and key, each as it was recorded\n", n)
	return nil
}

// describe writes one receipt for people.
func describe(s *session, x *receipt.Verified) {
	state := "as it was sealed"
	if len(x.Problems) > 0 {
		state = "NOT as it was sealed"
	}
	fmt.Fprintf(s.stdout, "%s: %s", x.Name, state)
	if x.Index >= 0 {
		fmt.Fprintf(s.stdout, "; entry %d of %d, %s", x.Index, x.Size, x.Entry.Time.Format("2006-01-02 15:04:05 UTC"))
	}
	fmt.Fprintln(s.stdout)
	witnesses(s, x.Cosigned, x.Unchecked)
	for _, p := range x.Problems {
		fmt.Fprintf(s.stdout, "  %s\n", prose.Printable(p))
	}
}

// witnesses writes who has cosigned, and which signatures say nothing.
func witnesses(s *session, by []receipt.Cosignature, unchecked []string) {
	for _, w := range by {
		fmt.Fprintf(s.stdout, "  cosigned by %s, %s\n", prose.Printable(w.Witness), w.Time.Format("2006-01-02 15:04:05 UTC"))
	}
	for _, name := range unchecked {
		fmt.Fprintf(s.stdout, "  a signature in the name of %s, which was not checked: its key was not given\n", prose.Printable(name))
	}
}

func (c receiptVerifyCmd) proof(s *session, v *receipt.Verifier, policy *receipt.Policy) error {
	p, err := os.ReadFile(c.Dir)
	if err != nil {
		return unreachable(err)
	}
	got, err := receipt.CheckProof(v, policy, p)
	if err == nil {
		err = policy.Met(got.Cosigned)
	}
	if err != nil {
		return exitError{exitFound, fmt.Errorf("%s: %w", c.Dir, err)}
	}
	unwitnessed(s, policy)
	return show(s, c.Format, got, func() error {
		_, err := fmt.Fprintf(s.stdout, "%s of %s, sealed %s: entry %d of %d in %s\n", prose.Printable(got.Entry.Kind), prose.Printable(got.Entry.SHA256), got.Entry.Time.Format("2006-01-02 15:04:05 UTC"), got.Index, got.Tree.N, prose.Printable(v.Name()))
		witnesses(s, got.Cosigned, got.Unchecked)
		return err
	})
}

// publicKey reads a public key, or the user's own.
func publicKey(path string) (*receipt.Verifier, error) {
	if path == "" {
		var err error
		if path, err = place("", "receipt-key.pub"); err != nil {
			return nil, err
		}
	}
	p, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, usageErrorf("public key: %w: name it with --public-key", err)
		}
		return nil, unreachable(fmt.Errorf("public key: %w", err))
	}
	v, err := receipt.ParseVerifier(string(p))
	if err != nil {
		return nil, exitError{exitUsage, fmt.Errorf("%s: %w", path, err)}
	}
	return v, nil
}

type receiptShowCmd struct {
	Dir       string `arg:"" placeholder:"DIR" help:"A run directory."`
	PublicKey string `name:"public-key" placeholder:"FILE" help:"Public key of who sealed it. Default: the user's own."`
}

func (c receiptShowCmd) Run(s *session) error {
	v, err := publicKey(c.PublicKey)
	if err != nil {
		return err
	}
	all, err := receipt.VerifyDir(c.Dir, receipt.Against{Key: v})
	if err != nil {
		return unreachable(err)
	}
	for _, x := range all {
		describe(s, &x)
		fmt.Fprintf(s.stdout, "  %s\n  %s\n", prose.Printable(x.Statement.PredicateType), prose.Printable(string(x.Statement.Predicate)))
		for _, r := range x.Statement.Subject {
			fmt.Fprintf(s.stdout, "  about %s %s\n", prose.Printable(r.Digest["sha256"]), prose.Printable(r.Name))
		}
	}
	return nil
}

type receiptDecideCmd struct {
	Decision string   `arg:"" placeholder:"TEXT" help:"What was decided, one line."`
	Because  string   `required:"" placeholder:"TEXT" help:"Why."`
	By       string   `placeholder:"NAME" help:"Who decided."`
	Basis    []string `sep:"none" placeholder:"FILE" help:"A file that the decision rests on, sealed by its digest; repeat for more."`
	Out      string   `placeholder:"DIR" help:"Where the receipt goes. Default: a new directory under kvcanary-decisions/."`
	sealFlags
}

func (c receiptDecideCmd) Run(s *session) error {
	for _, b := range c.Basis {
		if st, err := os.Stat(b); err != nil {
			return unreachable(err)
		} else if st.IsDir() {
			return usageErrorf("--basis %s is a directory: name files", b)
		}
	}
	seal, err := c.sealer(s)
	if err != nil {
		return err
	}
	out := c.Out
	if out == "" {
		out = filepath.Join("kvcanary-decisions", seal.Now().UTC().Format("20060102-150405"))
	}
	if _, err := os.Stat(filepath.Join(out, receipt.Folder, "decision.tlog-proof")); err == nil {
		return usageErrorf("%s holds a decision already: name another --out", out)
	}
	if err := seal.Decide(out, receipt.Decision{Decision: c.Decision, Because: c.Because, By: c.By}, c.Basis); err != nil {
		return unreachable(err)
	}
	fmt.Fprintf(s.stdout, "sealed in %s\n", filepath.Join(out, receipt.Folder))
	return nil
}
