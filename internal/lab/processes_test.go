package lab

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/node"
)

// TestMain lets the test binary stand in for the processes that the tests kill.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "lab-node":
			exit(RunNode(context.Background(), os.Stdin))
		case "lab-parent":
			exit(parent())
		case "lab-mute":
			io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		case "lab-other":
			exit(other(os.Args[2]))
		case "lab-meddled":
			exit(meddled())
		case "lab-dead":
			os.Stderr.WriteString("out of memory\n")
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

func exit(err error) {
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(4)
	}
	os.Exit(0)
}

func readOrders(in io.Reader) (o orders, err error) {
	line, err := bufio.NewReader(in).ReadBytes('\n')
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(line, &o)
}

// other is a node of another make: it does not do what it was ordered to.
func other(how string) error {
	o, err := readOrders(os.Stdin)
	if err != nil {
		return err
	}
	h := &o.Setup.Handoff
	switch how {
	case "page size":
		h.PageSize, h.DecodePages, h.PrefillPages = 2*h.PageSize, h.DecodePages/2, h.PrefillPages/2
	case "pages":
		h.DecodePages++
	case "context":
		h.Context++
	case "one-sided":
		h.OneSided = !h.OneSided
	case "secret":
		o.Secret = "00"
	case "version":
		conn, err := net.Dial("tcp", o.Router)
		if err != nil {
			return err
		}
		defer conn.Close()
		conn.Write(append([]byte("kvln\x09\x00"), make([]byte, 200)...))
		_, err = io.Copy(io.Discard, conn)
		return err
	}
	secret, err := hex.DecodeString(o.Secret)
	if err != nil {
		return err
	}
	return o.run(context.Background(), secret)
}

// parent starts an engine, says which processes belong to it, and serves until it is killed.
func parent() error {
	e, err := StartProcesses(Small(), os.Args[0], "lab-node")
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(e.Pids()); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for {
		for range e.Submit(context.Background(), Request{Tokens: babble(rng), MaxTokens: 500}) {
		}
	}
}

// status is the state of a process as the system has it: a letter, or nothing
// if there is no such process.
func status(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err == nil {
		_, state, _ := strings.Cut(string(stat), ") ")
		return state[:1]
	}
	if _, err := os.Stat("/proc/self"); err != nil && syscall.Kill(pid, 0) == nil {
		return "?" // a system without /proc
	}
	return ""
}

// alive reports whether a process runs: one that is dead and waits to be
// collected by its parent does not.
func alive(pid int) bool { return status(pid) != "" && status(pid) != "Z" }

func startProcesses(t *testing.T, cfg Config) *Engine {
	t.Helper()
	e, err := StartProcesses(cfg, os.Args[0], "lab-node")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func gone(t *testing.T, pids map[string]int) {
	t.Helper()
	if len(pids) != 2 {
		t.Fatalf("want two processes, got %v", pids)
	}
	for role, pid := range pids {
		eventually(t, role+" process gone", func() bool { return !alive(pid) })
	}
}

func TestProcessesServeAndEnd(t *testing.T) {
	cfg := Small()
	cfg.Faults = []string{"stale_reserve"}
	e := startProcesses(t, cfg)
	rng := rand.New(rand.NewPCG(1, 12))
	for range 3 {
		prompt, value := recall(rng, 3000)
		if got := serve(t, e, Request{Tokens: prompt, MaxTokens: 50}); strings.TrimSpace(got.text) != value {
			t.Errorf("got %+v", got)
		}
	}
	if got := serve(t, e, Request{Tokens: chat(words(rng, overlong(cfg))), MaxTokens: 2}); got.err != nil || got.done.PromptTokens != 1 {
		t.Errorf("over-long prompt: %+v, %+v", got.done, got.err)
	}
	for role, pid := range e.Pids() {
		if !alive(pid) {
			t.Errorf("%s has no process", role)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	gone(t, e.Pids())
}

// Kill a node at any moment: every client hears of it, the other node ends,
// and the engine says which one it was.
func TestKilledNodeEndsTheEngine(t *testing.T) {
	for i, victim := range []string{"prefill", "decode", "prefill", "decode"} {
		e := startProcesses(t, Small())
		rng := rand.New(rand.NewPCG(uint64(i), 13))
		var clients sync.WaitGroup
		served := make(chan struct{}, 1000)
		for c := range 4 {
			clients.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(i), uint64(c)))
				for {
					tokens := babble(rng)
					if rng.IntN(2) == 0 {
						tokens = chat(words(rng, 2000))
					}
					got := collect(e.Submit(t.Context(), Request{Tokens: tokens, MaxTokens: 100}))
					if got.err != nil {
						if want := victim + " node is gone"; got.err.Status != 500 || got.err.Message != want {
							t.Errorf("client hears %+v, want %q", got.err, want)
						}
						return
					}
					select {
					case served <- struct{}{}:
					default:
					}
				}
			})
		}
		for range rng.IntN(8) {
			<-served
		}
		if err := syscall.Kill(e.Pids()[victim], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := e.Wait(); err == nil || !strings.HasPrefix(err.Error(), victim+" node is gone: process ") ||
			!strings.HasSuffix(err.Error(), ": signal: killed") {
			t.Errorf("engine ends with %v", err)
		}
		clients.Wait()
		gone(t, e.Pids())
		if got := e.State().Broken; got != victim+" node is gone" {
			t.Errorf("state says %q", got)
		}
	}
}

// A node that hangs is ended by force.
func TestCloseEndsAStoppedNode(t *testing.T) {
	e := startProcesses(t, Small())
	if err := syscall.Kill(e.Pids()["decode"], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "decode stopped", func() bool { return strings.Contains("Tt?", status(e.Pids()["decode"])) })
	if err := e.Close(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("got %v", err)
	}
	gone(t, e.Pids())
}

func TestKilledParentLeavesNobody(t *testing.T) {
	cmd := exec.Command(os.Args[0], "lab-parent")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pids := map[string]int{}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &pids)
	}
	if err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the parent ended by itself")
	}
	gone(t, pids)
}

// A node whose standard input ends, which is all that other systems than Linux
// have to tell it with, ends too.
func TestNodeEndsWithItsInput(t *testing.T) {
	router, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer router.Close()
	setup, err := Small().setup()
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(orders{Role: handoff.ToDecode, Setup: setup, Secret: "ab", Router: router.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	in, feed := io.Pipe()
	ended := make(chan error)
	go func() { ended <- RunNode(t.Context(), in) }()
	feed.Write(append(line, '\n'))
	asRouter := func() node.Greeting { return node.Greeting{Role: handoff.ToRouter} }
	conn, _, g, err := accept(t.Context(), router, setup, asRouter, handoff.ToDecode, []byte{0xab})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if g.Addr == "" {
		t.Error("decode does not say where it listens")
	}
	feed.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestNodesThatDoNotStart(t *testing.T) {
	for want, args := range map[string][]string{
		"no such file":   {"/no/such/program"},
		"out of memory":  {os.Args[0], "lab-dead"},
		"decode node: ":  {os.Args[0], "lab-dead"},
		"exit status 1:": {os.Args[0], "lab-dead"},
	} {
		if _, err := StartProcesses(Small(), args[0], args[1:]...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A node of another make is refused, and whoever starts the engine reads what
// it has and what the others have.
func TestNodesOfAnotherMakeAreRefused(t *testing.T) {
	for how, want := range map[string]string{
		"page size": "page size is 16 here and 32 at decode",
		"pages":     "pages is 1280 here and 1281 at decode",
		"context":   "context is 16384 here and 16385 at decode",
		"one-sided": "one-sided writing is 0 here and 1 at decode",
		"version":   "version is 3 here and 9 at the other end",
		"secret":    "does not know this engine's secret",
	} {
		e, err := StartProcesses(Small(), os.Args[0], "lab-other", how)
		if err == nil {
			e.Close()
			t.Errorf("another %s is taken", how)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("another %s: %v, want %q", how, err, want)
		}
	}
}

// Whoever calls in without the secret is hung up on, and the node is waited for.
func TestAcceptIgnoresStrangers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	setup, err := Small().setup()
	if err != nil {
		t.Fatal(err)
	}
	call := func(secret string) net.Conn {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Error(err)
			return nil
		}
		shake(t.Context(), conn, setup, node.Greeting{Role: handoff.ToDecode, Addr: secret}, handoff.ToRouter, []byte(secret))
		return conn
	}
	var callers sync.WaitGroup
	callers.Go(func() {
		for _, secret := range []string{"wrong", "right"} {
			if conn := call(secret); conn != nil {
				defer conn.Close()
			}
		}
	})
	asRouter := func() node.Greeting { return node.Greeting{Role: handoff.ToRouter} }
	conn, _, g, err := accept(t.Context(), l, setup, asRouter, handoff.ToDecode, []byte("right"))
	callers.Wait()
	if err != nil || g.Addr != "right" {
		t.Fatalf("got %+v, %v", g, err)
	}
	conn.Close()
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errors.New("it does not call back"))
	defer cancel()
	if _, _, _, err := accept(ctx, l, setup, asRouter, handoff.ToDecode, nil); err == nil || !strings.Contains(err.Error(), "does not call back") {
		t.Errorf("nobody calls: %v", err)
	}
}

func TestRunNodeRefusesBadOrders(t *testing.T) {
	for want, in := range map[string]string{
		"is started by kvcanary lab":  "",
		"orders: ":                    "{]\n",
		"orders without a secret":     "{}\n",
		"page size is 0 tokens":       `{"Secret":"ab"}` + "\n",
		"orders for client, which is": `{"Role":"client","Secret":"ab","Setup":{"Handoff":{"Context":100,"PageSize":4,"PrefillPages":9,"DecodePages":9}}}` + "\n",
		"prefill to router":           `{"Role":"prefill","Secret":"ab","Router":"127.0.0.1:1","Setup":{"Handoff":{"Context":100,"PageSize":4,"PrefillPages":9,"DecodePages":9}}}` + "\n",
	} {
		never, feed := io.Pipe() // the end of the input would be an order too
		stdin := io.MultiReader(strings.NewReader(in), never)
		if in == "" {
			feed.Close()
		}
		err := RunNode(t.Context(), stdin)
		feed.Close()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
