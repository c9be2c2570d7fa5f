package guard

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// counting counts the connections that a server accepts.
func counting(s *httptest.Server) *atomic.Int64 {
	n := &atomic.Int64{}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			n.Add(1)
		}
	}
	return n
}

func TestUpstreamByTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"proto":%q,"client":%d}`, r.Proto, len(r.TLS.PeerCertificates))
	}))
	conns := counting(s)
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	f := guardBefore(t, s.URL, func(o *Options) {
		o.Upstreams[0].TLS = &tls.Config{RootCAs: roots, Certificates: s.TLS.Certificates}
	})
	for range 5 {
		if status, _, b := f.post(t, "/v1/chat/completions", chat); status != 200 || b != `{"proto":"HTTP/1.1","client":1}` {
			t.Fatalf("%d %s", status, b)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("5 requests went over %d connections", n)
	}
	f = guardBefore(t, s.URL, nil)
	if status, _, b := f.post(t, "/v1/chat/completions", chat); status != 503 || !strings.Contains(b, "upstream_unreachable") {
		t.Errorf("with an authority that is not known: %d %s", status, b)
	}
}

func TestUpstreamBySocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) }))
	s.Listener.Close()
	s.Listener = l
	conns := counting(s)
	s.Start()
	t.Cleanup(s.Close)
	f := guardBefore(t, "http://engine.internal", func(o *Options) { o.Upstreams[0].Socket = socket })
	for range 3 {
		if status, _, b := f.post(t, "/v1/chat/completions", chat); status != 200 || b != "engine.internal" {
			t.Fatalf("%d %s", status, b)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("3 requests went over %d connections", n)
	}
}

// overHTTP2 serves a guard by HTTP/2 and returns a client of it.
func overHTTP2(t *testing.T, f *fence) (string, *http.Client) {
	s := httptest.NewUnstartedServer(nil)
	s.Config = NewServer(f.Guard, Limits{}, f.setup.Load().Log)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, s.Client()
}

func TestStreamsOverHTTP2(t *testing.T) {
	gone := make(chan struct{})
	url := engine(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: 1\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	})
	f := guardBefore(t, url, nil)
	at, client := overHTTP2(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	q, _ := http.NewRequestWithContext(ctx, "POST", at+"/v1/chat/completions", strings.NewReader(chat))
	res, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); res.ProtoMajor != 2 || line != "data: 1\n" || err != nil {
		t.Errorf("%s: %q, %v", res.Proto, line, err)
	}
	cancel()
	<-gone
	if r := f.last(t, 1); r.Code != "client_gone" {
		t.Errorf("recorded %+v", r)
	}
}

// A client that opens and resets streams as fast as it can (CVE-2023-44487)
// keeps the engine no busier than one that waits for its answers.
func TestRapidReset(t *testing.T) {
	var now, most atomic.Int64
	url := engine(t, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	f := guardBefore(t, url, func(o *Options) { o.Limits.TenantConcurrency = 20 })
	at, client := overHTTP2(t, f)
	var all sync.WaitGroup
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { cancel() }})
		q, _ := http.NewRequestWithContext(traced, "POST", at+"/v1/chat/completions", strings.NewReader(chat))
		all.Go(func() {
			defer cancel()
			if res, err := client.Do(q); err == nil {
				res.Body.Close()
			}
		})
	}
	all.Wait()
	eventually(t, "all requests to end", func() bool { return f.State().InFlight == 0 && now.Load() == 0 })
	// The engine learns that a client has gone a moment later than the guard.
	if m := most.Load(); m > 100 {
		t.Errorf("%d requests were with the engine at once", m)
	}
}

// What stands behind an answer in the same record is decrypted with it, and
// waits where no look at the socket shows it.
func TestNothingBehindAnAnswerInOneRecord(t *testing.T) {
	cert := httptest.NewUnstartedServer(nil)
	cert.StartTLS()
	cert.Close()
	roots := x509.NewCertPool()
	roots.AddCert(cert.Certificate())
	for _, n := range []int{10, 3900, 4096, 8000, 12000} {
		answer := strings.Repeat("a", n)
		e := newRawEngine(t, func(c net.Conn, _ *bufio.Reader) {
			s := tls.Server(c, &tls.Config{Certificates: cert.TLS.Certificates, DynamicRecordSizingDisabled: true})
			for br := bufio.NewReader(s); readRequest(br) == nil; {
				head := okHead + fmt.Sprintf("Content-Length: %d\r\n\r\n", n)
				if n > 4000 { // the body begins a record, so that it is read straight from there
					io.WriteString(s, head)
					head = ""
				}
				io.WriteString(s, head+answer+okHead+"Content-Length: 6\r\n\r\nstolen")
			}
		})
		f := guardBefore(t, strings.Replace(e.url, "http:", "https:", 1), func(o *Options) { o.Upstreams[0].TLS = &tls.Config{RootCAs: roots} })
		for i := range 5 {
			if status, _, b := f.post(t, "/v1/chat/completions", chat); status != 200 || b != answer {
				t.Fatalf("%d bytes, request %d: %d %.80q", n, i, status, b)
			}
		}
	}
}

// A model that thinks for longer than a client may leave an answer unread has
// done nothing wrong.
func TestQuietStreamLives(t *testing.T) {
	url := engine(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 2 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			time.Sleep(400 * time.Millisecond)
		}
	})
	f := guardBefore(t, url, func(o *Options) { o.Limits.WriteTime = 100 * time.Millisecond })
	at, client := overHTTP2(t, f)
	for _, c := range []struct {
		at     string
		client *http.Client
	}{{f.url, f.client}, {at, client}} {
		res, err := c.client.Post(c.at+"/v1/chat/completions", "", strings.NewReader(chat))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(res.Body); string(b) != "data: 0\n\ndata: 1\n\n" || err != nil {
			t.Errorf("%s: %q, %v", res.Proto, b, err)
		}
		res.Body.Close()
	}
}
