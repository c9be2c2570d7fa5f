package main

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kvcanary/kvcanary/internal/demo"
	"github.com/kvcanary/kvcanary/internal/lab"
	"github.com/kvcanary/kvcanary/internal/lab/api"
	"github.com/kvcanary/kvcanary/internal/lab/gateway"
)

// labGrace is how long requests may take to end once the lab shall stop.
const labGrace = 2 * time.Second

type labCmd struct {
	Listen string `default:"127.0.0.1:8000" placeholder:"ADDR" help:"Address to serve on; port 0 takes a free one. Default: ${default}."`

	Context     int    `default:"16384" placeholder:"N" help:"Context window, tokens. Default: ${default}."`
	PrefillPool int    `default:"10640" placeholder:"N" help:"KV pool of the prefill node, tokens. Default: ${default}."`
	DecodePool  int    `default:"20480" placeholder:"N" help:"KV pool of the decode node, tokens. Default: ${default}."`
	PageSize    int    `default:"16" placeholder:"N" help:"Tokens a page. Default: ${default}."`
	Policy      string `default:"sort" placeholder:"P" help:"Order in which free pages are used again: lifo, fifo or sort. Default: ${default}."`

	PrefixCache int `default:"6144" placeholder:"N" help:"Computed KV that prefill keeps for prompts of the same tenant that begin alike, tokens; 0 for none. Default: ${default}."`
	Tier        int `default:"0" placeholder:"N" help:"What its second tier keeps of what it has no room for, tokens. Default: none."`

	Fault    []string `sep:"none" placeholder:"NAME[:MODE]" help:"Switch a fault on; repeat for more. They are listed above."`
	Defence  []string `sep:"none" placeholder:"NAME[:MODE]" help:"Switch a defence on; repeat for more. They are listed above."`
	Truncate bool     `name:"allow-auto-truncate" help:"Cut a prompt that is too long, silently, instead of refusing it."`
	Refusal  string   `name:"refusal-shape" default:"sse" placeholder:"S" help:"How a refusal reaches a streaming client: sse (within a 200, as SGLang does), status, or bare. Default: ${default}."`

	SlotCache   int    `placeholder:"N" help:"Tokens of a prompt that each of prefill's slots keeps for the next prompt of the same tenant. Default: none."`
	AnswerCache string `placeholder:"K" help:"Keep answers in the gateway, for the tenant they were given to: exact for the same prompt, semantic for one much like it. Default: none."`

	Transport     string        `default:"tcp" placeholder:"T" help:"tcp runs the nodes as processes, pipe as parts of this one; shm is tcp with prefill writing straight into decode's memory. Default: ${default}."`
	WriteLag      time.Duration `placeholder:"D" help:"With shm, or fault id_reuse:metadata_slot: how long one such write may take; they end in any order. Default: at once."`
	PrefillRate   int           `placeholder:"N" help:"Tokens that prefill computes in a second at most, as a large model would. Default: as many as it can."`
	DecodeRate    int           `placeholder:"N" help:"Tokens of each answer that decode computes in a second at most. Default: as many as it can."`
	Restart       bool          `help:"Start a node that dies anew, in place of ending with it; requests under way end with an error."`
	TimeLimit     time.Duration `placeholder:"D" help:"Answer 504 to a request that takes longer. Default: never."`
	Tenant        []string      `sep:"none" placeholder:"NAME=ENVVAR" help:"A tenant, and the environment variable that holds its key; repeat for more. With none everybody is let in."`
	Trace         string        `placeholder:"FILE" help:"Append every step of the router and both nodes to this file, one line of JSON each."`
	OrphanRemoves string        `name:"orphan-removes" hidden:"" placeholder:"DIR" help:"Temporary directory of the demo that started this lab: removed at the end if that demo was killed."`
	StopOnEOF     bool          `name:"stop-on-eof" hidden:"" help:"Stop when standard input ends: for a parent that must leave nothing behind."`
	Seed          *uint64       `placeholder:"N" help:"Makes sampling without a seed, and the ids of answers, the same again. Default: chosen anew."`
}

// Help lists what can be switched on.
func (labCmd) Help() string {
	var b strings.Builder
	b.WriteString("Serves the OpenAI API under /v1, with model kvcanary-lab and its adapters kvcanary-lab:ada and kvcanary-lab:ben, and describes itself in SGLang's words, until it is interrupted.\n\nExit codes: 0 interrupted, 2 wrong flags, 4 the address is taken, or a node has died.\n")
	list := func(title string, table []lab.Switch) {
		fmt.Fprintf(&b, "\n%s:\n", title)
		for _, s := range table {
			name := s.Name
			if len(s.Modes) > 0 {
				name += ":" + strings.Join(s.Modes, "|")
			}
			fmt.Fprintf(&b, "\n%s: %s\n", name, s.Does)
			if len(s.Reports) > 0 {
				fmt.Fprintf(&b, "\n  %s\n", strings.Join(s.Reports, "\n  "))
			}
		}
	}
	list("Faults", lab.Faults)
	list("Defences", lab.Defences)
	return b.String()
}

func (c labCmd) Run(s *session) error {
	if c.OrphanRemoves != "" {
		signal.Ignore(syscall.SIGPIPE) // a parent that is gone reads nothing, and must not be the end before that is tidied up
		defer c.tidy(os.Getppid())
	}
	options, err := c.options(s)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return unreachable(fmt.Errorf("cannot listen: %w: choose another --listen", err))
	}
	nodes, err := c.engine(s)
	if err != nil {
		l.Close()
		return unreachable(fmt.Errorf("the lab's engine does not start: %w", err))
	}
	engine := gateway.Over(nodes)
	options.Backend = engine
	server := api.Serve(l, api.NewHandler(options), log.New(s.stderr, "kvcanary lab: ", 0))
	if !isLoopback(server.URL) && len(options.Keys) == 0 {
		fmt.Fprintln(s.stderr, "kvcanary lab: everybody who reaches this address is let in: name tenants with --tenant")
	}
	fmt.Fprintf(s.stdout, "kvcanary lab: listening on %s\n", server.URL)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	if c.StopOnEOF {
		go func() {
			io.Copy(io.Discard, s.stdin)
			cancel()
		}()
	}
	if err := serveUntil(ctx, server, engine); err != nil {
		return unreachable(err)
	}
	return nil
}

// tidy removes what a parent that was killed could not. It takes no directory
// but one that a demo has made.
func (c labCmd) tidy(parent int) {
	if os.Getppid() == parent || !strings.HasPrefix(filepath.Base(c.OrphanRemoves), demo.TempPrefix) {
		return
	}
	// Nobody is left to be told that it stays.
	_ = os.RemoveAll(c.OrphanRemoves)
}

// serveUntil serves until ctx ends, which is no error, or the engine or the
// listener does. Nothing of either runs on when it returns.
func serveUntil(ctx context.Context, server *api.Server, engine *gateway.Gateway) error {
	died := make(chan struct{})
	go func() {
		engine.Wait() // Close says why
		close(died)
	}()
	select {
	case <-ctx.Done():
	case <-server.Done():
	case <-died:
	}
	ending, cancel := context.WithTimeout(context.Background(), labGrace)
	defer cancel()
	if err := errors.Join(server.Close(ending), engine.Close()); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}

// options reads the flags to the point where only the machine can say no.
func (c labCmd) options(s *session) (api.Options, error) {
	if err := c.sizes(); err != nil {
		return api.Options{}, err
	}
	if err := c.config().Validate(); err != nil {
		return api.Options{}, exitError{exitUsage, err}
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return api.Options{}, usageErrorf("--listen: %w: write HOST:PORT", err)
	}
	shape := api.RefusalShape(c.Refusal)
	if !shape.Valid() {
		return api.Options{}, usageErrorf("--refusal-shape %q: use sse, status or bare", c.Refusal)
	}
	switch {
	case c.Transport != "tcp" && c.Transport != "pipe" && c.Transport != "shm":
		return api.Options{}, usageErrorf("--transport %q: use tcp, pipe or shm", c.Transport)
	case c.Transport != "shm" && c.WriteLag != 0 && !slices.Contains(c.Fault, "id_reuse:metadata_slot"):
		return api.Options{}, usageErrorf("--write-lag is for --transport shm, or fault id_reuse:metadata_slot: elsewhere all that is written are messages")
	case c.Transport == "pipe" && c.Restart:
		return api.Options{}, usageErrorf("--restart is for --transport tcp or shm: with pipe there is no process that could die alone")
	case c.WriteLag < 0 || c.TimeLimit < 0:
		return api.Options{}, usageErrorf("--write-lag and --time-limit must not be negative")
	}
	keys, err := c.keys(s)
	if err != nil {
		return api.Options{}, err
	}
	random := newRandom(c.Seed)
	return api.Options{
		Model: lab.ModelName, Keys: keys, RefusalShape: shape, Now: time.Now, NewSeed: random.uint64,
		NewID: func() string { return fmt.Sprintf("%016x%016x", random.uint64(), random.uint64()) },
	}, nil
}

// sizes names the flag whose number leaves no room for a prompt.
func (c labCmd) sizes() error {
	if c.PageSize < 1 {
		return usageErrorf("--page-size %d: a page holds at least one token", c.PageSize)
	}
	const least = 8 // tokens: what an engine keeps back, and a prompt of two
	for _, f := range []struct {
		name          string
		tokens, needs int
	}{
		{"--context", c.Context, least},
		{"--prefill-pool", c.PrefillPool, max(least, c.PageSize)},
		{"--decode-pool", c.DecodePool, max(least, c.PageSize)},
	} {
		if f.tokens < f.needs {
			return usageErrorf("%s %d: at least %d tokens are needed, with pages of %d (--page-size)", f.name, f.tokens, f.needs, c.PageSize)
		}
	}
	return nil
}

func (c labCmd) config() lab.Config {
	return lab.Config{
		Context: c.Context, PrefillPool: c.PrefillPool, DecodePool: c.DecodePool, PageSize: c.PageSize,
		PrefixCache: c.PrefixCache, Tier: c.Tier, PrefillRate: c.PrefillRate, DecodeRate: c.DecodeRate,
		Policy: c.Policy, Faults: c.Fault, Defences: c.Defence, AutoTruncate: c.Truncate, Trace: c.Trace,
		OneSided: c.Transport == "shm", Lag: c.WriteLag, Restart: c.Restart, TimeLimit: c.TimeLimit, AnswerCache: c.AnswerCache, SlotCache: c.SlotCache,
	}
}

func (c labCmd) engine(s *session) (*lab.Engine, error) {
	config := c.config()
	config.Replaced = func(role string, why error) {
		words := strings.ReplaceAll(why.Error(), "\n", "; ")
		fmt.Fprintf(s.stderr, "kvcanary lab: %s node is started anew: %s\n", role, words)
	}
	if c.Transport == "pipe" {
		return lab.StartPipe(config)
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return lab.StartProcesses(config, exe, "lab-node")
}

// keys are the tenants by key. A key comes from the environment, so that it
// shows in no list of processes.
func (c labCmd) keys(s *session) (map[string]string, error) {
	keys := map[string]string{}
	for _, t := range c.Tenant {
		name, variable, ok := strings.Cut(t, "=")
		if !ok || name == "" || variable == "" {
			return nil, usageErrorf("--tenant %q: write NAME=ENVVAR, the name of an environment variable that holds the key", name)
		}
		key := s.getenv(variable)
		if key == "" {
			return nil, usageErrorf("environment variable %s is not set: export it with the key of tenant %s", variable, name)
		}
		if other, taken := keys[key]; taken {
			return nil, usageErrorf("tenants %s and %s have the same key", other, name)
		}
		keys[key] = name
	}
	return keys, nil
}

// random is a source of numbers for many requests at once.
type random struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newRandom(seed *uint64) *random {
	var key [32]byte
	if seed != nil {
		binary.LittleEndian.PutUint64(key[:], *seed)
	} else {
		crand.Read(key[:]) // never fails
	}
	return &random{r: rand.New(rand.NewChaCha8(key))}
}

func (r *random) uint64() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.r.Uint64()
}

// labNodeCmd is one node of a lab, as a process of its own.
type labNodeCmd struct{}

func (labNodeCmd) Run(s *session) error {
	if err := lab.RunNode(s.ctx, s.stdin); err != nil {
		return unreachable(err)
	}
	return nil
}
