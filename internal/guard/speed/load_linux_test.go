package speed

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// speedEvents is how many events a stream has.
const speedEvents = 200

const event = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":" follows"},"logprobs":null,"finish_reason":null}]}` + "\n\n"

var document = []byte(`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` +
	strings.Repeat("It follows from what was said before that the answer is no. ", 16) + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":300,"completion_tokens":200,"total_tokens":500}}`)

// answering answers at once, with what an engine would say.
func answering(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if !bytes.Contains(body, []byte(`"stream":true`)) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(document)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for range speedEvents {
		if _, err := io.WriteString(w, event); err != nil {
			return
		}
		w.(http.Flusher).Flush()
	}
	io.WriteString(w, "data: [DONE]\n\n")
}

// serve runs an engine that answers chats by a function, and returns its URL.
// It is well, and says nothing of what it holds.
func serve(t testing.TB, chats http.HandlerFunc) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/chat/completions":
			chats(w, r)
		case "/health":
		default:
			http.NotFound(w, r)
		}
	})}
	over := make(chan struct{})
	go func() { defer close(over); s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-over })
	return "http://" + l.Addr().String()
}

// said is a prompt of some 1 kB.
var said = `"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("What follows from this? ", 40) + `"}]}`

func head(length int) string {
	return fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: engine\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", length)
}

func whole(body string) []byte { return []byte(head(len(body)) + body) }

// client is a connection that sends one request after the other.
type client struct {
	net.Conn
	br *bufio.Reader
}

func dial(addr string) (*client, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &client{c, bufio.NewReader(c)}, nil
}

// again connects anew.
func again(t testing.TB, p *process, c **client) bool {
	fresh, err := dial(p.addr)
	if err != nil {
		t.Errorf("%s: %v", p.name, err)
		return false
	}
	*c = fresh
	return true
}

// ask sends a request and reads all of its answer, and says how long that is.
func (c *client) ask(request []byte) (int64, error) {
	if _, err := c.Write(request); err != nil {
		return 0, err
	}
	res, err := http.ReadResponse(c.br, nil)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(io.Discard, res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", res.StatusCode)
	}
	return n, err
}

// figures are what a way achieved in one measurement.
type figures struct {
	each   time.Duration // median of one request
	second float64       // requests a second
	own    time.Duration // processor time of the proxy for one request
	size   int64         // bytes of an answer
}

// run sends requests over so many connections for a time, ten each at least.
func (p *process) run(t testing.TB, request []byte, clients int, d time.Duration) figures {
	t.Helper()
	took := make([][]time.Duration, clients)
	var size int64
	var mu sync.Mutex
	var all sync.WaitGroup
	before, from := p.cpu(t), time.Now()
	for i := range clients {
		all.Go(func() {
			c, err := dial(p.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { c.Close() }()
			for len(took[i]) < 10 || time.Since(from) < d {
				begun := time.Now()
				n, err := c.ask(request)
				if err != nil && p.other {
					// It is not what is tried here, and may lose an answer now and then.
					if c.Close(); !again(t, p, &c) {
						return
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", p.name, err)
					return
				}
				took[i] = append(took[i], time.Since(begun))
				mu.Lock()
				if size == 0 {
					size = n
				}
				if n != size {
					t.Errorf("%s: an answer of %d bytes, another of %d", p.name, n, size)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	every := slices.Sorted(slices.Values(slices.Concat(took...)))
	if len(every) == 0 {
		t.FailNow()
	}
	return figures{each: every[len(every)/2], second: float64(len(every)) / time.Since(from).Seconds(),
		own: (p.cpu(t) - before) / time.Duration(len(every)), size: size}
}

// median is that of one figure over rounds.
func median[T ~int64 | ~float64](all []figures, of func(figures) T) T {
	var out []T
	for _, f := range all {
		out = append(out, of(f))
	}
	slices.Sort(out)
	return out[len(out)/2]
}
