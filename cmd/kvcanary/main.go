// Command kvcanary finds answers of an inference engine that carry other
// customers' prompts.
//
// One file a command: flags in, exit code out, no logic. Results go to
// standard output, everything else to standard error, and no output format
// changes the exit code.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/kvcanary/kvcanary/internal/prose"
)

// Exit codes, the same for every command.
const (
	exitClean        = 0 // clean, or done
	exitFound        = 1 // a leak, a violation, a failed check
	exitUsage        = 2 // wrong flags or configuration
	exitInconclusive = 3 // coverage not reached
	exitUnreachable  = 4 // the target or a file could not be reached or read
)

// cli is the command line. Names and flags are a contract: add, never rename.
type cli struct {
	Demo      demoCmd      `cmd:"" help:"Play the incident on this machine: the leak, the script that misses it, the proof, the fix."`
	Run       runCmd       `cmd:"" help:"Probe an endpoint for answers that carry other requests' text."`
	Preflight preflightCmd `cmd:"" help:"Decide from what an engine and its manifests say whether it may be given traffic."`
	Size      sizeCmd      `cmd:"" help:"Compute how many tokens a KV pool holds, and which context window is safe."`
	Guard     guardCmd     `cmd:"" help:"Stand in front of an engine: refuse what it cannot hold, keep tenants apart, stop leaks."`
	Matrix    matrixCmd    `cmd:"" help:"Measure how often each protocol finds each fault of the lab."`
	Lab       labCmd       `cmd:"" help:"Serve an engine that is correct, or leaks for real when a fault is switched on."`
	Verify    verifyCmd    `cmd:"" help:"Check the handoff protocol: all that it can do, or what a run of the lab did."`
	Receipt   receiptCmd   `cmd:"" help:"Check, show and make receipts: what was decided and seen, sealed in a log."`
	Report    reportCmd    `cmd:"" help:"Show a run as a page, a ticket, JUnit, SARIF or workflow annotations, or compare two."`
	Scan      scanCmd      `cmd:"" help:"Find your canaries in files or standard input."`
	Version   versionCmd   `cmd:"" help:"Print the version."`

	LabNode labNodeCmd `cmd:"" hidden:"" help:"One node of a lab; started by lab."`
}

// session is what a command may touch of the world outside.
type session struct {
	ctx    context.Context
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	getenv func(string) string
	tty    bool // stderr is a terminal: progress and colour are welcome
}

// exitError carries an exit code with the line that explains it. A nil err
// exits without a word, for commands that have already said all.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }

func usageErrorf(format string, args ...any) error {
	return exitError{exitUsage, fmt.Errorf(format, args...)}
}

func unreachable(err error) error { return exitError{exitUnreachable, err} }

func main() {
	s := &session{
		ctx: untilSignal(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv,
		tty: term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb",
	}
	os.Exit(run(s, os.Args[1:]))
}

// oneSignal is how long more signals are taken for the first: timeout(1) and
// shells signal a process and then its group, and the result must not be lost by it.
const oneSignal = 300 * time.Millisecond

// untilSignal returns a context that the first signal ends, so that a command
// can stop cleanly. A second one ends the process at once, whatever it is doing,
// unless it comes so soon that it is the first once more.
func untilSignal() context.Context {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		stop()
		for first := time.After(oneSignal); ; {
			select {
			case <-signals:
				continue
			case <-first:
			}
			break
		}
		<-signals
		os.Exit(exitInconclusive)
	}()
	return ctx
}

// run parses args and runs the command they name.
func run(s *session, args []string) int {
	var c cli
	exited := -1
	parser, err := kong.New(&c,
		kong.Name("kvcanary"),
		kong.Description("Can one customer's prompt surface in another customer's answer? kvcanary finds out."),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Writers(s.stdout, s.stderr),
		kong.Exit(func(code int) { exited = code }),
		kong.Bind(s),
		kong.Vars(helpVars()),
	)
	if err != nil {
		panic("kvcanary: internal error: command line: " + err.Error())
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	k, err := parser.Parse(args)
	if exited >= 0 { // --help has been shown
		return exited
	}
	if err != nil {
		return conclude(s, exitError{exitUsage, fmt.Errorf("%w (see %s --help)", err, commandOf(err))})
	}
	return conclude(s, k.Run())
}

// commandOf is the command whose arguments could not be parsed.
func commandOf(err error) string {
	name := "kvcanary"
	var parse *kong.ParseError
	if !errors.As(err, &parse) {
		return name
	}
	for _, p := range parse.Context.Path {
		if p.Command != nil {
			name += " " + p.Command.Name
		}
	}
	return name
}

// conclude prints err as one line and returns the exit code that it carries.
func conclude(s *session, err error) int {
	if err == nil {
		return exitClean
	}
	code := exitUsage
	var e exitError
	if errors.As(err, &e) {
		code = e.code
		if e.err == nil {
			return code
		}
	}
	fmt.Fprintf(s.stderr, "kvcanary: %s\n", prose.Printable(err.Error()))
	return code
}
