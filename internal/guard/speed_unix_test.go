//go:build unix

package guard

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/guard/admit"
)

// The harness measures direct, through the guard and through
// httputil.ReverseProxy, in turns, so that whatever else the machine does falls
// on all three alike; the figures are medians over the rounds.
//
//	go test ./internal/guard -run TestSpeed -v -args -speed 1s -rounds 7
var (
	speed  = flag.Duration("speed", 0, "time for each measurement of TestSpeed")
	rounds = flag.Int("rounds", 3, "rounds of TestSpeed")
)

// speedEvents is how many events a stream has.
const speedEvents = 200

// speedEngine answers at once, with what an engine would say.
func speedEngine() http.Handler {
	document := []byte(`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("It follows from what was said before that the answer is no. ", 16) + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":300,"completion_tokens":200,"total_tokens":500}}`)
	event := []byte(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":" follows"},"logprobs":null,"finish_reason":null}]}` + "\n\n")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !bytes.Contains(body, []byte(`"stream":true`)) {
			w.Header().Set("Content-Type", "application/json")
			w.Write(document)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for range speedEvents {
			w.Write(event)
			w.(http.Flusher).Flush()
		}
		io.WriteString(w, "data: [DONE]\n\n")
	})
}

// path is one way to the engine.
type path struct {
	name, url string
	client    *http.Client
	other     bool // neither the guard nor the engine
}

// speedPaths are the ways that are compared. The guard admits, isolates and
// watches strictly, with one key.
func speedPaths(t testing.TB, observe func(*Record)) []path {
	serve := func(h http.Handler) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := NewServer(h, Limits{}, slog.New(slog.DiscardHandler))
		over := make(chan struct{})
		go func() { defer close(over); s.Serve(l) }()
		t.Cleanup(func() { s.Close(); <-over })
		return "http://" + l.Addr().String()
	}
	engine := serve(speedEngine())
	to, _ := url.Parse(engine)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 128
	t.Cleanup(transport.CloseIdleConnections)
	plain := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1, Transport: transport}
	g, err := New(Options{
		Upstreams: []Upstream{{Name: "engine", BaseURL: engine, Engine: "sglang", Given: admit.Given{Tokens: 1 << 20}}},
		Tenants:   Tenants{Any: true}, Admission: Admission{Policy: admit.Default()},
		Watch: Watch{Coders: []*canary.Coder{canary.New(canary.Key{1})}}, Observe: observe,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Drain(t.Context()) })
	out := []path{{name: "direct", url: engine}, {name: "guard", url: serve(g)}, {name: "ReverseProxy", url: serve(plain), other: true}}
	for i := range out {
		client := &http.Transport{MaxIdleConnsPerHost: 128, DisableCompression: true}
		t.Cleanup(client.CloseIdleConnections)
		out[i].client = &http.Client{Transport: client}
	}
	return out
}

// ask sends one request and reads its answer.
func (p *path) ask(body string) (int64, error) {
	res, err := p.client.Post(p.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	n, err := io.Copy(io.Discard, res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d", p.name, res.StatusCode)
	}
	return n, err
}

// figures are what a way achieved in one measurement.
type figures struct {
	each    time.Duration // median of one request
	second  float64       // requests a second
	answers int64         // bytes
	cpu     time.Duration // of this process, with client and engine in it, for one request
}

// used is the processor time that this process has taken. Unlike the time of
// day it says the same on a machine that has other work.
func used() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// run sends requests from so many clients for a time, one each at least.
func (p *path) run(t testing.TB, body string, clients int, d time.Duration) figures {
	var all sync.WaitGroup
	var read atomic.Int64
	took := make([][]time.Duration, clients)
	from, before := time.Now(), used()
	for i := range clients {
		all.Go(func() {
			for len(took[i]) == 0 || time.Since(from) < d {
				begun := time.Now()
				n, err := p.ask(body)
				if err != nil && p.other {
					continue // it is not what is tried here
				}
				if err != nil {
					t.Error(err)
					return
				}
				read.Add(n)
				took[i] = append(took[i], time.Since(begun))
			}
		})
	}
	all.Wait()
	every := slices.Sorted(slices.Values(slices.Concat(took...)))
	if len(every) == 0 {
		return figures{}
	}
	return figures{each: every[len(every)/2], second: float64(len(every)) / time.Since(from).Seconds(), answers: read.Load() / int64(len(every)),
		cpu: (used() - before) / time.Duration(len(every))}
}

func TestSpeed(t *testing.T) {
	var mu sync.Mutex
	var shares []time.Duration
	paths := speedPaths(t, func(r *Record) {
		mu.Lock()
		defer mu.Unlock()
		shares = append(shares, own(r))
	})
	said := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("What follows from this? ", 40) + `"}]}`
	for _, c := range []struct {
		name, body string
		clients    int
		times      float64 // of requests a second, to the unit of the figure
		unit       string
	}{
		{"one client", said, 1, 1, "requests/s"},
		{"32 clients", said, 32, 1, "requests/s"},
		{"8 streams", strings.Replace(said, "{", `{"stream":true,`, 1), 8, speedEvents, "events/s"},
	} {
		got := map[string][]figures{}
		shares = nil
		for range *rounds {
			for _, p := range paths {
				f := p.run(t, c.body, c.clients, *speed)
				got[p.name] = append(got[p.name], f)
				if f.answers != got["direct"][0].answers {
					t.Errorf("%s, %s: answers of %d bytes, direct %d", c.name, p.name, f.answers, got["direct"][0].answers)
				}
			}
		}
		for _, p := range paths {
			slices.SortFunc(got[p.name], func(a, b figures) int { return int(a.second - b.second) })
			m := got[p.name][len(got[p.name])/2]
			slices.SortFunc(got[p.name], func(a, b figures) int { return int(a.cpu - b.cpu) })
			cpu := got[p.name][len(got[p.name])/2].cpu
			t.Logf("%-10s %-12s p50 %8v  %9.0f %s, processor time %v a request", c.name, p.name, m.each.Round(time.Microsecond), m.second*c.times, c.unit, cpu.Round(time.Microsecond))
		}
		mu.Lock()
		slices.Sort(shares)
		if len(shares) > 0 {
			t.Logf("%-10s the guard's own share: p50 %v, p99 %v", c.name, shares[len(shares)/2], shares[len(shares)*99/100])
		}
		mu.Unlock()
	}
}

func BenchmarkGuard(b *testing.B) {
	for _, p := range speedPaths(b, nil) {
		b.Run(p.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := p.ask(chat); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
