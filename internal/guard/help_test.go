package guard

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvcanary/kvcanary/internal/guard/admit"
)

// net/http waits half a second with a connection that it closes by itself, and a
// server that is closed does not wait for that.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// unjudging lets every prompt pass.
var unjudging = Admission{Policy: admit.Policy{Off: true}}

// fence is a guard that is served on loopback, and what it has said of its requests.
type fence struct {
	*Guard
	url, addr string
	client    *http.Client

	mu      sync.Mutex
	records []Record
}

func guardBefore(t testing.TB, upstream string, change func(*Options)) *fence {
	t.Helper()
	f := &fence{}
	o := Options{
		Upstreams: []Upstream{{Name: "engine", BaseURL: upstream}},
		Tenants:   Tenants{Any: true},
		Limits:    Limits{StallTime: 10 * time.Second},
		Admission: unjudging,
		Observe: func(r *Record) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.records = append(f.records, *r)
		},
	}
	if change != nil {
		change(&o)
	}
	var err error
	if f.Guard, err = New(o); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(f.Guard, o.Limits, slog.New(slog.DiscardHandler))
	over := make(chan struct{})
	go func() {
		defer close(over)
		server.Serve(l)
	}()
	transport := &http.Transport{DisableCompression: true}
	f.addr, f.url, f.client = l.Addr().String(), "http://"+l.Addr().String(), &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		<-over
		f.Drain(context.Background())
	})
	return f
}

// last waits until n requests have ended and returns the last one's record.
func (f *fence) last(t testing.TB, n int) Record {
	t.Helper()
	var r Record
	eventually(t, fmt.Sprintf("%d requests to end", n), func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.records) < n {
			return false
		}
		r = f.records[n-1]
		return true
	})
	return r
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func (f *fence) post(t testing.TB, path, body string) (int, http.Header, string) {
	t.Helper()
	res, err := f.client.Post(f.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		b = append(b, ("\nERROR " + err.Error())...)
	}
	return res.StatusCode, res.Header, string(b)
}

const chat = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`

// chatOf is a request of just so many bytes.
func chatOf(n int) string {
	const before, behind = `{"model":"m","messages":[{"role":"user","content":"`, `"}]}`
	return before + strings.Repeat("x", n-len(before)-len(behind)) + behind
}

func engine(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// rawEngine is an upstream that says what no HTTP library would. It is called
// for each connection, with what comes on it.
type rawEngine struct {
	net.Listener
	url string

	mu    sync.Mutex
	open  map[net.Conn]bool
	conns int
	all   sync.WaitGroup
}

func newRawEngine(t testing.TB, serve func(c net.Conn, br *bufio.Reader)) *rawEngine {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &rawEngine{Listener: l, url: "http://" + l.Addr().String(), open: map[net.Conn]bool{}}
	e.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			e.mu.Lock()
			e.open[c] = true
			e.conns++
			e.mu.Unlock()
			e.all.Go(func() {
				serve(c, bufio.NewReader(c))
				c.Close()
				e.mu.Lock()
				delete(e.open, c)
				e.mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		e.mu.Lock()
		for c := range e.open {
			c.Close()
		}
		e.mu.Unlock()
		e.all.Wait()
	})
	return e
}

func (e *rawEngine) connections() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.conns
}

// saying reads requests and answers each with the same bytes.
func saying(t testing.TB, answer string) *rawEngine {
	return newRawEngine(t, func(c net.Conn, br *bufio.Reader) {
		for readRequest(br) == nil {
			if _, err := io.WriteString(c, answer); err != nil {
				return
			}
		}
	})
}

func readRequest(br *bufio.Reader) error {
	r, err := http.ReadRequest(br)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err
}
