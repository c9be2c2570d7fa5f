package speed

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/kvcanary/kvcanary/internal/guard/daemon"
	"github.com/kvcanary/kvcanary/internal/receipt"
)

var (
	guardPath = flag.String("guard", "", "a built kvcanary to measure; without it the test's binary serves as the guard")
	nginxPath = flag.String("nginx", "", "an nginx to measure beside it; without it there is none")
)

// roleVar has the test's binary serve as a proxy in place of running tests.
const roleVar = "KVCANARY_SPEED_ROLE"

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	switch role := os.Getenv(roleVar); role {
	case "":
		goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
	case "guard":
		serveGuard(ctx, os.Args[len(os.Args)-1])
	case "awake":
		stayAwake(ctx)
	default:
		serveReverseProxy(ctx, role)
	}
}

// serveGuard is what kvcanary guard --config FILE does.
func serveGuard(ctx context.Context, file string) {
	setup, err := daemon.Load(file, os.Getenv)
	if err == nil {
		err = daemon.Run(ctx, setup, daemon.Options{File: file, Getenv: os.Getenv, Version: "test", Log: os.Stderr, Now: time.Now, Random: rand.Reader,
			Processors: daemon.GoProcessors(os.Getenv),
			Seal:       func(string, string) (*receipt.Sealer, error) { return nil, errors.New("nothing is sealed here") }})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// stayAwake keeps a core busy while nothing else wants it, and gives way at once.
// A core that sleeps takes tens of microseconds to wake where it is a virtual
// one: more than what is measured.
func stayAwake(ctx context.Context) {
	runtime.LockOSThread()
	if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	for ctx.Err() == nil {
	}
}

// keepAwake has every core stay awake until the test ends.
func keepAwake(t testing.TB) {
	t.Helper()
	for range runtime.NumCPU() {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), roleVar+"=awake")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
	}
}

// serveReverseProxy is the standard library's proxy, with every write flushed as
// the guard does it.
func serveReverseProxy(ctx context.Context, to string) {
	target, err := url.Parse(to)
	if err != nil {
		panic(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 256
	s := &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
		Handler: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1, Transport: transport,
			ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}}
	slog.New(slog.NewJSONHandler(os.Stderr, nil)).Info("listening", "at", "http://"+l.Addr().String())
	context.AfterFunc(ctx, func() { s.Close() })
	s.Serve(l)
}

// process is a proxy that runs, and that is measured from outside.
type process struct {
	name    string
	addr    string // host and port for clients
	metrics string // URL, "" for none
	pids    []int  // that do its work
	other   bool   // neither the guard nor the engine
}

// start runs a command until the test ends. What it logs is followed up to the
// line that says where it listens, and kept for when that does not come.
func start(t testing.TB, name string, cmd *exec.Cmd) *process {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	over := make(chan struct{})
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		<-over
	})
	found := make(chan *process, 1)
	go func() {
		defer close(over)
		defer r.Close()
		defer close(found)
		var said bytes.Buffer
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			var line struct{ Msg, At, Metrics string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
				found <- &process{name: name, addr: strings.TrimPrefix(line.At, "http://"), metrics: line.Metrics, pids: []int{cmd.Process.Pid}}
				io.Copy(io.Discard, r)
				return
			}
			said.Write(append(lines.Bytes(), '\n'))
		}
		t.Errorf("%s does not listen: %s", name, &said)
	}()
	p, ok := <-found
	if !ok {
		t.FailNow()
	}
	return p
}

// config is a guard's file as docs/guard.md shows one: admission closed, a watch
// that is strict and has a key. All else is the default but for the number of
// requests at once.
const config = `listen: {address: "127.0.0.1:0"}
metrics: {listen: "127.0.0.1:0"}
upstreams: [{name: engine, base_url: %q, engine: generic, limits: {prompt: 64000000}}]
tenants: any
limits: {concurrency: 2048}
watch: {key_files: [%q]}
log: {format: json}
`

// startGuard starts a guard with some environment besides the test's.
func startGuard(t testing.TB, name, engine string, env ...string) *process {
	t.Helper()
	dir := t.TempDir()
	key, file := filepath.Join(dir, "key"), filepath.Join(dir, "guard.yaml")
	write(t, key, strings.Repeat("k", 32))
	write(t, file, fmt.Sprintf(config, engine, key))
	cmd := exec.Command(*guardPath, "guard", "--config", file)
	if *guardPath == "" {
		cmd = exec.Command(os.Args[0], file)
		env = append(env, roleVar+"=guard")
	}
	cmd.Env = append(os.Environ(), env...)
	return start(t, name, cmd)
}

func startReverseProxy(t testing.TB, engine string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"="+engine)
	p := start(t, "ReverseProxy", cmd)
	p.other = true
	return p
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// nginxConfig passes on both ways as it comes, over connections that are kept.
const nginxConfig = `%sworker_processes 2; daemon off; pid nginx.pid; error_log stderr crit;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 100000000; client_max_body_size 64m; tcp_nodelay on;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  upstream engine { server %s; keepalive 256; keepalive_requests 100000000; }
  server {
    listen %s;
    location / {
      proxy_pass http://engine; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; proxy_request_buffering off;
    }
  }
}
`

func startNginx(t testing.TB, engine string) *process {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	user := ""
	if os.Getuid() == 0 {
		user = "user root; " // else its workers may not enter the folder
	}
	file := filepath.Join(dir, "nginx.conf")
	write(t, file, fmt.Sprintf(nginxConfig, user, strings.TrimPrefix(engine, "http://"), addr))
	cmd := exec.Command(*nginxPath, "-p", dir, "-c", file, "-e", "stderr")
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
	p := &process{name: "nginx", addr: addr, other: true}
	pid := cmd.Process.Pid
	eventually(t, "nginx: "+said.String(), func() bool {
		p.pids = []int{pid}
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		for _, f := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(f); err == nil {
				p.pids = append(p.pids, n)
			}
		}
		return len(p.pids) == 3
	})
	return p
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// cpu is the processor time that it has taken. Unlike the time of day it says
// the same on a machine that has other work.
func (p *process) cpu(t testing.TB) time.Duration {
	t.Helper()
	var all time.Duration
	for _, pid := range p.pids {
		var ts unix.Timespec
		// The clock of a process, as clock_getcpuclockid(3) makes it.
		if err := unix.ClockGettime(int32(^pid<<3|2), &ts); err != nil {
			t.Fatalf("processor time of %s: %v", p.name, err)
		}
		all += time.Duration(ts.Nano())
	}
	return all
}

var memoryLines = regexp.MustCompile(`(VmRSS|VmHWM):\s+(\d+) kB`)

// memory is how many bytes are resident, and the most that were since forget.
func (p *process) memory(t testing.TB) (now, most int) {
	t.Helper()
	for _, pid := range p.pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range memoryLines.FindAllStringSubmatch(string(b), -1) {
			n, _ := strconv.Atoi(m[2])
			if m[1] == "VmRSS" {
				now += n << 10
			} else {
				most += n << 10
			}
		}
	}
	return now, most
}

// forget has the most that was resident counted from now on.
func (p *process) forget(t testing.TB) {
	t.Helper()
	for _, pid := range p.pids {
		write(t, fmt.Sprintf("/proc/%d/clear_refs", pid), "5")
	}
}

// descriptors is how many files and connections are open.
func (p *process) descriptors(t testing.TB) int {
	t.Helper()
	n := 0
	for _, pid := range p.pids {
		all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			t.Fatal(err)
		}
		n += len(all)
	}
	return n
}

// scrape reads the metrics that have no labels but le, by name and le.
func (p *process) scrape(t testing.TB) map[string]float64 {
	t.Helper()
	res, err := http.Get(p.metrics)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer res.Body.Close()
	out := map[string]float64{}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); err == nil && !strings.HasPrefix(name, "#") {
			out[name] = v
		}
	}
	return out
}
