package daemon

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/receipt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journal is a log that can be read while it is written.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// with are the lines with that message.
func (j *journal) with(message string) (out []map[string]any) {
	for line := range strings.Lines(j.String()) {
		var m map[string]any
		if json.Unmarshal([]byte(line), &m) == nil && m["msg"] == message {
			out = append(out, m)
		}
	}
	return out
}

// served is a daemon that serves.
type served struct {
	t        *testing.T
	dir      string
	journal  journal
	hangup   chan os.Signal
	tick     chan time.Time
	stop     context.CancelFunc
	done     chan error
	at, side string // URLs
	client   *http.Client
}

// serve runs a daemon from the text of a file, to which it adds the rest: any
// address to listen on, and a log that can be read.
func serve(t *testing.T, text string, env map[string]string) *served {
	t.Helper()
	s := &served{t: t, dir: t.TempDir(), hangup: make(chan os.Signal), tick: make(chan time.Time), done: make(chan error, 1)}
	s.write(text)
	getenv := func(name string) string { return env[name] }
	setup, err := Load(s.file(), getenv)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() {
		s.done <- Run(ctx, setup, Options{
			File: s.file(), Getenv: getenv, Version: "1.0", Log: &s.journal, Now: time.Now, Random: rand.Reader, Hangup: s.hangup, Tick: s.tick, Seal: makeSealer,
		})
	}()
	transport := &http.Transport{}
	s.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		s.end()
	})
	s.eventually("to listen", func() bool { return len(s.journal.with("listening")) > 0 })
	line := s.journal.with("listening")[0]
	s.at = line["at"].(string)
	if m, ok := line["metrics"].(string); ok {
		s.side = strings.TrimSuffix(m, "/metrics")
	}
	return s
}

// base is what every file of these tests has.
func base(upstream string) string {
	return fmt.Sprintf("log: {format: json}\nlisten: {address: \"127.0.0.1:0\", health: true}\nmetrics: {listen: \"127.0.0.1:0\"}\nupstreams: [{name: engine, base_url: %q, limits: {prompt: 100000}}]\n", upstream)
}

func (s *served) file() string { return filepath.Join(s.dir, "guard.yaml") }

func (s *served) write(text string) {
	s.t.Helper()
	if err := os.WriteFile(s.file(), []byte(strings.ReplaceAll(text, "DIR", s.dir)), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// looks has the daemon look at its file n times.
func (s *served) looks(n int) {
	for range n {
		s.tick <- time.Time{}
	}
}

func (s *served) end() error {
	s.stop()
	err, ok := <-s.done
	if ok {
		close(s.done)
	}
	return err
}

func (s *served) eventually(what string, is func() bool) {
	s.t.Helper()
	for limit := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		select {
		case err := <-s.done:
			s.t.Fatalf("the daemon ended, waiting for it %s: %v\n%s", what, err, s.journal.String())
		default:
		}
		if time.Now().After(limit) {
			s.t.Fatalf("waited a minute for it %s\n%s", what, s.journal.String())
		}
	}
}

// get returns status and body.
func (s *served) get(url string) (int, string) {
	s.t.Helper()
	return s.do(http.MethodGet, url, "", "")
}

// chat sends a prompt.
func (s *served) chat(key, prompt string) (int, string) {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"model": "m", "messages": []any{map[string]string{"role": "user", "content": prompt}}})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.do(http.MethodPost, s.at+"/v1/chat/completions", key, string(body))
}

func (s *served) do(method, url, key, body string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	p, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(p)
}

// metric is the line of a series, without its name.
func (s *served) metric(series string) string {
	s.t.Helper()
	_, all := s.get(s.side + "/metrics")
	for line := range strings.Lines(all) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), series+" "); ok {
			return v
		}
	}
	return ""
}

// model is an engine that answers chats at once, streams as slowly as its test wants.
type model struct {
	*httptest.Server
	next chan string // events of a stream; closed at its end

	mu   sync.Mutex
	keys []string // that it was shown
}

func newModel(t *testing.T) *model {
	e := &model{next: make(chan string)}
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Close)
	return e
}

func (e *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	e.mu.Lock()
	e.keys = append(e.keys, r.Header.Get("Authorization"))
	e.mu.Unlock()
	switch {
	case r.URL.Path != "/v1/chat/completions":
		http.NotFound(w, r)
	case bytes.Contains(body, []byte(`"stream":true`)):
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			select {
			case event, more := <-e.next:
				if !more {
					return
				}
				io.WriteString(w, event)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	default:
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"noted"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}`)
	}
}

func makeSealer(dir, keyFile string) (*receipt.Sealer, error) {
	private, public, err := receipt.NewKey(rand.Reader, "guard.test")
	if err != nil {
		return nil, err
	}
	key, err := receipt.ParseSigner(private)
	if err != nil {
		return nil, err
	}
	log, err := receipt.Open(dir, key.Verifier())
	return &receipt.Sealer{Log: log, Key: key, Now: time.Now}, errors.Join(err, os.WriteFile(keyFile, []byte(private), 0o600), os.WriteFile(keyFile+".pub", []byte(public), 0o600))
}

// certificate writes a certificate for 127.0.0.1 that signs itself.
func certificate(t *testing.T, dir string, serial int64) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "guard.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "guard.pem"), filepath.Join(dir, "guard.key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// makeKey puts a key of canaries in the place of a file.
func makeKey(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, _, err := canary.LoadOrCreateKey(path, rand.Reader); err != nil {
		t.Fatal(err)
	}
}
