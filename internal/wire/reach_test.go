package wire

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Extra headers and parameters go with everything that is asked, in place of
// what the dialect sends, and their values come back in nothing.
func TestExtras(t *testing.T) {
	const key, version = "azure-secret-key", "2024-10-21-preview"
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if r.Header.Get("Api-Key") != key || r.URL.Query().Get("api-version") != version || r.Header.Get("Authorization") != "mine" {
			t.Errorf("%s: %v", r.URL, r.Header)
		}
		w.Header().Set("X-Echo", key)
		switch {
		case strings.HasSuffix(r.URL.Path, "/tokenize"):
			io.WriteString(w, `{"count":7}`)
		case strings.HasSuffix(r.URL.Path, "/models"):
			w.WriteHeader(403)
			io.WriteString(w, `{"error":{"message":"not for `+key+`"}}`)
		default:
			io.WriteString(w, strings.ReplaceAll(goodStream, "world", key))
		}
	}, Options{
		Headers: map[string]string{"api-key": key, "authorization": "mine"},
		Query:   map[string]string{"api-version": version},
	})
	r := prompt("hi")
	r.Key = "sk-tenant-key"
	a := c.Do(context.Background(), r)
	all := string(a.Raw.Bytes) + a.Text(Content) + a.Text(Header) + a.Header.Get("X-Echo")
	if !a.Served() || strings.Contains(all, key) || !strings.Contains(a.Text(Content), "****") {
		t.Errorf("%+v, %+v: %s", a.Refusal, a.Failure, all)
	}
	if n, ok, err := c.CountTokens(context.Background(), "", "m", r.Messages); n != 7 || !ok || err != nil {
		t.Errorf("counted %d, %v, %v", n, ok, err)
	}
	if _, err := c.Models(context.Background(), ""); err == nil || strings.Contains(err.Error(), key) {
		t.Errorf("models: %v", err)
	}
	req, _ := http.NewRequest("GET", c.Root()+"/models", nil)
	resp, err := c.HTTP().Do(req)
	if err != nil || resp.StatusCode != 403 {
		t.Errorf("by the bare client: %v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
	if req.Header.Get("Api-Key") != "" || req.URL.RawQuery != "" {
		t.Error("the caller's request was changed")
	}
}

func TestBadExtras(t *testing.T) {
	for _, c := range []struct {
		headers, query map[string]string
		want           string
	}{
		{map[string]string{"a b": "x"}, nil, "no name of a header"},
		{map[string]string{"": "x"}, nil, "no name of a header"},
		{map[string]string{"héader": "x"}, nil, "no name of a header"},
		{map[string]string{"host": "x"}, nil, "Host is set by the client"},
		{map[string]string{"api-key": "marked-secret\n"}, nil, "look at the variable"},
		{nil, map[string]string{"": "x"}, "needs a name"},
	} {
		_, err := NewClient(Options{BaseURL: "http://h", Headers: c.headers, Query: c.query})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Azure's addresses have a deployment in them and no version at their end; an
// address that ends in the very path of the prompts is taken as it stands.
func TestWholeAddresses(t *testing.T) {
	for _, c := range []struct{ dialect, base, prompts, root string }{
		{"openai", "https://x.test/openai/deployments/gpt", "https://x.test/openai/deployments/gpt/chat/completions", "https://x.test/openai/deployments/gpt"},
		{"openai", "https://x.test/odd/chat/completions", "https://x.test/odd/chat/completions", "https://x.test/odd"},
		{"responses", "https://x.test/openai/v1", "https://x.test/openai/v1/responses", "https://x.test/openai"},
		{"anthropic", "https://api.anthropic.com", "https://api.anthropic.com/v1/messages", "https://api.anthropic.com"},
		{"ollama", "http://h:11434", "http://h:11434/api/chat", "http://h:11434"},
		{"ollama", "http://h:11434/v1", "http://h:11434/api/chat", "http://h:11434"},
		{"ollama", "http://h:11434/api/", "http://h:11434/api/chat", "http://h:11434"},
		{"ollama", "http://h:11434/sub/api/chat", "http://h:11434/sub/api/chat", "http://h:11434/sub"},
	} {
		cl, err := NewClient(Options{BaseURL: c.base, Dialect: c.dialect})
		if err != nil || cl.prompts != c.prompts || cl.root != c.root {
			t.Errorf("%+v: prompts %s, root %s, %v", c, cl.prompts, cl.root, err)
		}
	}
}

func TestSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(answer(200, "text/event-stream", goodStream))
	srv.Listener.Close()
	srv.Listener = l
	srv.Start()
	defer srv.Close()
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // does not concern a socket
	for _, o := range []Options{{BaseURL: "unix://" + path}, {BaseURL: "http://engine.test/v1", Socket: path}} {
		c := dial(t, o.BaseURL, o)
		if a := c.Do(context.Background(), prompt("hi")); !a.Served() {
			t.Errorf("%+v: %+v", o, a.Failure)
		}
	}
	srv.Close()
	a := dial(t, "unix://"+path, Options{}).Do(context.Background(), prompt("hi"))
	if a.Failure == nil || a.Failure.Kind != FailedConnect || !strings.Contains(a.Failure.Message, path) {
		t.Errorf("nobody at the socket: %+v", a.Failure)
	}
	for base, want := range map[string]string{"unix://run/x.sock": "three slashes", "unix:///": "three slashes", "unix:///x?y=1": "nothing else"} {
		if _, err := NewClient(Options{BaseURL: base}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", base, err)
		}
	}
}

// keyPair makes a certificate for a name of localhost, in PEM files.
func keyPair(t *testing.T, dir, name string, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, string, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: parent == nil, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	if parent == nil {
		parent, signer = tpl, key
	}
	der, err := x509.CreateCertificate(rand.Reader, tpl, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	pkcs, _ := x509.MarshalPKCS8PrivateKey(key)
	cert, _ := x509.ParseCertificate(der)
	files := [2]string{filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")}
	os.WriteFile(files[0], pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
	os.WriteFile(files[1], pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs}), 0o600)
	return cert, key, files[0], files[1]
}

// A server behind an authority of its own that wants to see a certificate.
func TestOwnAuthorityAndClientCertificate(t *testing.T) {
	dir := t.TempDir()
	ca, caKey, caFile, caKeyFile := keyPair(t, dir, "authority", nil, nil)
	_, _, serverCert, serverKey := keyPair(t, dir, "server", ca, caKey)
	_, _, clientCert, clientKey := keyPair(t, dir, "client", ca, caKey)
	pair, err := tls.LoadX509KeyPair(serverCert, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	srv := httptest.NewUnstartedServer(answer(200, "text/event-stream", goodStream))
	srv.Config.ErrorLog = quiet()
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	srv.StartTLS()
	defer srv.Close()

	ask := func(ca, cert, key string) *Answer {
		t.Helper()
		conf, err := LoadTLS(ca, cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return dial(t, srv.URL, Options{TLS: conf}).Do(context.Background(), prompt("hi"))
	}
	if a := ask(caFile, clientCert, clientKey); !a.Served() {
		t.Errorf("with all of it: %+v", a.Failure)
	}
	wantFailure(t, ask("", "", ""), FailedTLS, "--ca")
	wantFailure(t, ask(caFile, "", ""), FailedTLS, "--client-cert")

	for _, c := range []struct{ ca, cert, key, want string }{
		{"", clientCert, "", "belong together"},
		{"", "", clientKey, "belong together"},
		{filepath.Join(dir, "none"), "", "", "no such file"},
		{caKeyFile, "", "", "no certificate in PEM form"},
		{"", clientCert, serverKey, "client certificate"},
		{"", clientCert, filepath.Join(dir, "none"), "no such file"},
	} {
		if _, err := LoadTLS(c.ca, c.cert, c.key); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
