package daemon

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/guard"
)

func TestServesSaysHowItIsAndDrains(t *testing.T) {
	e := newModel(t)
	s := serve(t, base(e.URL)+"tenants: any\n", nil)
	if code, body := s.chat("", "hello"); code != 200 || !strings.Contains(body, "noted") {
		t.Errorf("%d %s", code, body)
	}
	for _, url := range []string{s.side + "/healthz", s.side + "/readyz", s.at + "/healthz", s.at + "/readyz"} {
		if code, body := s.get(url); code != 200 || body != "ok\n" {
			t.Errorf("%s: %d %q", url, code, body)
		}
	}
	if code, _ := s.get(s.at + "/metrics"); code != 404 {
		t.Errorf("clients can read metrics: %d", code)
	}
	if got := s.metric(`kvcanary_guard_requests_total{code="2xx",dialect="openai",upstream="engine"}`); got != "1" {
		t.Errorf("%q requests counted", got)
	}
	if got := s.metric(`kvcanary_guard_upstream_up{upstream="engine"}`); got != "1" {
		t.Errorf("up is %q", got)
	}
	if err := s.end(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if d := s.journal.with("drained"); len(d) != 1 || d[0]["cut_off"] != 0. {
		t.Errorf("%v", d)
	}
}

// open begins a stream and reads its first event.
func (s *served) open(e *model) *bufio.Reader {
	s.t.Helper()
	res, err := s.client.Post(s.at+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[],"stream":true}`))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { res.Body.Close() })
	return bufio.NewReader(res.Body)
}

const delta = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}]}\n\n"

func event(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err == nil {
		_, err = r.ReadString('\n')
	}
	return line, err
}

// A stream that is under way goes on over a reload and over a stop; what comes
// later is served by the new file, or not at all.
func TestStreamsEndAsTheyBegan(t *testing.T) {
	e := newModel(t)
	s := serve(t, base(e.URL)+"tenants: any\n", nil)
	go func() { e.next <- delta }()
	stream := s.open(e)
	if line, err := event(stream); err != nil || !strings.Contains(line, "word ") {
		t.Fatalf("%q, %v", line, err)
	}
	s.write(base(e.URL) + "tenants: [{name: alpha, key_sha256: 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b}]\n") // of "secret"
	s.hangup <- syscall.SIGHUP
	s.eventually("to reload", func() bool { return len(s.journal.with("the new configuration is in force")) == 1 })
	if code, _ := s.chat("", "hello"); code != 401 {
		t.Errorf("the old file is in force: %d", code)
	}
	if code, _ := s.chat("secret", "hello"); code != 200 {
		t.Errorf("the tenant of the new file is not let in: %d", code)
	}
	if got := s.metric(`kvcanary_guard_tenant_requests_total{tenant="alpha"}`); got != "1" {
		t.Errorf("%q requests of the tenant counted", got)
	}
	e.next <- delta
	if line, err := event(stream); err != nil || !strings.Contains(line, "word ") {
		t.Fatalf("the reload cut the stream: %q, %v", line, err)
	}
	s.stop()
	s.eventually("to drain", func() bool { return len(s.journal.with("draining")) == 1 })
	s.eventually("not to be ready", func() bool { code, _ := s.get(s.side + "/readyz"); return code == 503 })
	if code, _ := s.get(s.side + "/healthz"); code != 200 {
		t.Errorf("a guard that drains is said to be dead: %d", code)
	}
	e.next <- delta
	e.next <- "data: [DONE]\n\n"
	close(e.next)
	rest, err := io.ReadAll(stream)
	if err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("the stop cut the stream: %q, %v", rest, err)
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if d := s.journal.with("drained"); len(d) != 1 || d[0]["cut_off"] != 0. {
		t.Errorf("%v", d)
	}
}

func TestADrainThatTakesTooLongCutsOff(t *testing.T) {
	e := newModel(t)
	s := serve(t, base(e.URL)+"tenants: any\nlimits: {drain_time: 50ms}\n", nil)
	go func() { e.next <- delta }()
	stream := s.open(e)
	if _, err := event(stream); err != nil {
		t.Fatal(err)
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
	rest, err := io.ReadAll(stream)
	if err == nil || strings.Contains(string(rest), "[DONE]") {
		t.Errorf("a stream that was cut off looks whole: %q, %v", rest, err)
	}
	if d := s.journal.with("drained"); len(d) != 1 || d[0]["cut_off"] != 1. {
		t.Errorf("%v", d)
	}
}

func TestAFileThatIsWrongChangesNothing(t *testing.T) {
	e := newModel(t)
	good := base(e.URL) + "tenants: any\n"
	s := serve(t, good, nil)
	const refusal = "the new configuration is refused, the old one stays in force"
	s.write(good + "watch: {mode: strickt}\nlimit: {}\n")
	s.looks(5)
	lines := s.journal.with(refusal)
	if len(lines) != 2 || !strings.Contains(lines[0]["trouble"].(string), `no mode "strickt": did you mean "strict"?`) {
		t.Fatalf("want a line for each of two errors, once: %v", lines)
	}
	if code, _ := s.chat("", "hello"); code != 200 {
		t.Errorf("the guard does not serve any more: %d", code)
	}
	if got := s.metric("kvcanary_guard_config_last_reload_successful"); got != "0" {
		t.Errorf("the metric says %q", got)
	}
	s.hangup <- syscall.SIGHUP // asked for, it says so again
	s.eventually("to refuse", func() bool { return len(s.journal.with(refusal)) == 4 })
	s.write(strings.Replace(good, "json", "text", 1))
	s.looks(2)
	s.looks(1) // is taken up after what the one before has caused is done
	if lines := s.journal.with(refusal); len(lines) != 5 || !strings.Contains(lines[4]["trouble"].(string), "log cannot change while the guard serves: restart it") {
		t.Fatalf("%v", lines)
	}
	// The file that is in force stands there again.
	s.write(good)
	s.looks(3)
	if got := s.metric("kvcanary_guard_config_last_reload_successful"); got != "1" {
		t.Errorf("the metric says %q", got)
	}
	if err := os.Remove(s.file()); err != nil {
		t.Fatal(err)
	}
	s.looks(4)
	if lines := s.journal.with(refusal); len(lines) != 6 || !strings.Contains(lines[5]["trouble"].(string), "no such file") {
		t.Fatalf("%v", lines)
	}
}

// A file that is being written is not taken.
func TestAChangeIsTakenWhenItStays(t *testing.T) {
	const good = "log: {format: json}\nupstreams: [{name: engine, base_url: http://127.0.0.1:1}]\ntenants: any\n"
	s := &served{t: t, dir: t.TempDir()}
	s.write(good)
	setup, err := Load(s.file(), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	d := &Daemon{o: Options{File: s.file(), Getenv: os.Getenv, Now: time.Now}, log: newLog(&s.journal, "json"), seen: setup.digest}
	d.setup.Store(setup)
	if d.guard, err = guard.New(d.options(setup)); err != nil {
		t.Fatal(err)
	}
	d.look()
	for _, half := range []string{"", "log: {fo", good + "tenant_header: X-Cu", good + "tenant_header: X-Customer\n"} {
		s.write(half)
		d.look()
	}
	if s.journal.String() != "" || d.setup.Load() != setup {
		t.Errorf("a half written file was read: %s", s.journal.String())
	}
	d.look()
	if l := s.journal.with("the new configuration is in force"); len(l) != 1 || d.setup.Load().Config.Tenancy.Header != "X-Customer" {
		t.Errorf("%s", s.journal.String())
	}
	before := s.journal.String()
	d.look()
	d.look()
	if s.journal.String() != before {
		t.Errorf("read again without a change: %s", s.journal.String())
	}
}

func TestTLSOnBothSidesAndARenewedCertificate(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificate(t, dir, 1)
	e := newModel(t)
	text := strings.Replace(base(e.URL), `address: "127.0.0.1:0"`, `address: "127.0.0.1:0", tls_cert: `+cert+`, tls_key: `+key+`, client_ca: `+cert, 1) + "tenants: any\n"
	s := serve(t, text, nil)
	serial := func(show bool) (int64, error) {
		pem, err := os.ReadFile(cert)
		if err != nil {
			t.Fatal(err)
		}
		c := &tls.Config{RootCAs: x509.NewCertPool()}
		c.RootCAs.AppendCertsFromPEM(pem)
		if show {
			pair, err := tls.LoadX509KeyPair(cert, key)
			if err != nil {
				t.Fatal(err)
			}
			c.Certificates = []tls.Certificate{pair}
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}}
		defer client.CloseIdleConnections()
		res, err := client.Get(s.at + "/healthz")
		if err != nil {
			return 0, err
		}
		res.Body.Close()
		if res.ProtoMajor != 2 {
			t.Errorf("speaks %s", res.Proto)
		}
		return res.TLS.PeerCertificates[0].SerialNumber.Int64(), nil
	}
	if got, err := serial(true); err != nil || got != 1 {
		t.Errorf("certificate %d, %v", got, err)
	}
	if _, err := serial(false); err == nil {
		t.Error("a client without a certificate is let in")
	}
	certificate(t, dir, 2)
	s.looks(3)
	if got, err := serial(true); err != nil || got != 2 {
		t.Errorf("certificate %d after it was renewed, %v\n%s", got, err, s.journal.String())
	}
}

func TestListensOnASocketThatAnotherHasLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	left, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	left.Close()
	e := newModel(t)
	text := strings.Replace(base(e.URL), `address: "127.0.0.1:0"`, "socket: "+path, 1) + "tenants: any\n"
	s := serve(t, text, nil)
	if s.at != "unix://"+path {
		t.Errorf("at %s", s.at)
	}
	if _, err := listenUnix(path); err == nil {
		t.Error("a socket in use was taken")
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Get("http://guard/readyz")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	plain := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(plain, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listenUnix(plain); err == nil {
		t.Error("a file was taken for a socket")
	}
	if p, err := os.ReadFile(plain); err != nil || string(p) != "kept" {
		t.Errorf("a file that is no socket was removed: %v", err)
	}
}

func TestNotReadyWithoutAnEngine(t *testing.T) {
	s := serve(t, base("http://127.0.0.1:1")+"tenants: any\n", nil)
	s.eventually("to see that nobody is there", func() bool {
		code, body := s.get(s.side + "/readyz")
		return code == 503 && strings.HasPrefix(body, "not ready: ")
	})
}

func TestWhatCannotBegin(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct{ name, change, to, want string }{
		{"address", `address: "127.0.0.1:0"`, "address: " + `"` + taken.Addr().String() + `"`, "choose another address under listen"},
		{"metrics", `metrics: {listen: "127.0.0.1:0"}`, `metrics: {listen: "` + taken.Addr().String() + `"}`, "choose another address under metrics"},
		{"findings", "tenants: any", "tenants: any\nfindings_file: /proc/none/f", "findings_file: open /proc/none/f"},
		{"receipts", "tenants: any", "tenants: any\nreceipts: {dir: /proc/none}", "receipts: mkdir /proc/none"},
	} {
		file := filepath.Join(t.TempDir(), "guard.yaml")
		if err := os.WriteFile(file, []byte(strings.Replace(base("http://127.0.0.1:1")+"tenants: any\n", c.change, c.to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		setup, err := Load(file, os.Getenv)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		err = Run(t.Context(), setup, Options{File: file, Getenv: os.Getenv, Log: io.Discard, Now: time.Now, Seal: makeSealer})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

func TestLoadSaysAllThatIsMissing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "guard.yaml")
	const text = `listen: {tls_cert: nowhere.pem, tls_key: nowhere.key}
upstreams:
  - {name: a, base_url: "http://a", key_env: MISSING_A, ca: nowhere.ca}
tenants:
  - {name: alpha, key_env: SET}
  - {name: beta, key_sha256: 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b}
  - {name: gamma, key_env: MISSING_B}
  - {name: kvcanary-synthetic, key_env: LINES}
traces: {endpoint: "http://c", headers: {x-key: MISSING_C}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(file, func(name string) string { return map[string]string{"SET": "secret", "LINES": "secret\n"}[name] })
	all, ok := errors.AsType[Problems](err)
	if !ok || len(all) != 8 || Unreadable(err) {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{
		"upstream a: environment variable MISSING_A is not set", "upstream a: read the authority's certificate", "tenants alpha and beta have the same key",
		"tenant gamma: environment variable MISSING_B is not set", "read the certificate to show", "traces header x-key: environment variable MISSING_C is not set",
		"tenant kvcanary-synthetic: environment variable LINES holds blanks, line ends", "a tenant is called kvcanary-synthetic, as the guard's own",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("lacks %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Error("a key is shown")
	}
	if _, err := Load(file+".none", os.Getenv); !Unreadable(err) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestBoundsOfAnswersReachTheWatch: what the file says of held bytes and of
// documents is what the watch is given.
func TestBoundsOfAnswersReachTheWatch(t *testing.T) {
	s := checkFile(t, "bounds", base("http://127.0.0.1:1")+"tenants: any\nwatch: {mode: audit, max_held: 70000}\nlimits: {document_bytes: 50000}\n", nil)
	if w := s.Options.Watch; !w.Audit || w.MaxHeld != 70000 || w.MaxDocument != 50000 {
		t.Errorf("the watch gets %+v", w)
	}
}

// What isolation allows reaches the guard: its words, and fields by name.
func TestAllowedFieldsReachTheGuard(t *testing.T) {
	s := checkFile(t, "allow", base("http://127.0.0.1:1")+"tenants: any\nisolation: {allow: [options.num_ctx, stored, private_media, documents]}\n", nil)
	if i := s.Options.Isolation; !i.AllowStored || !i.AllowPrivateMedia || i.SharePromptCache || strings.Join(i.Allow, " ") != "options.num_ctx documents" {
		t.Errorf("isolation %+v", i)
	}
}
