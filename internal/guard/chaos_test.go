package guard

import (
	"bufio"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/canary"
)

// go test ./internal/guard -run TestChaos -args -chaos 100000
var chaos = flag.Int("chaos", 2000, "requests of TestChaos")

// chaosEngine answers each request with the nonce that stands in it, or with
// something that goes wrong on the way, as the request says.
func chaosEngine(t testing.TB) *rawEngine {
	return newRawEngine(t, func(c net.Conn, br *bufio.Reader) {
		for {
			r, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			m := asked.FindStringSubmatch(string(body))
			if m == nil || !chaosModes[m[1]](c, m[2]) {
				return
			}
		}
	})
}

var asked = regexp.MustCompile(`mode (\w+), nonce (#\d+#)`)

const (
	chaosDocument = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	chaosStream   = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)

func chaosEvent(nonce string) string {
	return `data: {"choices":[{"index":0,"delta":{"content":"` + nonce + ` "}}]}` + "\n\n"
}

func chaosChunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

func chaosBody(nonce string, n int) string {
	return `{"choices":[{"message":{"content":"` + strings.Repeat(nonce+" ", n) + `"}}]}`
}

func chaosSized(body string) string {
	return chaosDocument + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)) + body
}

// chaosModes say whether the connection goes on.
var chaosModes = map[string]func(c net.Conn, nonce string) bool{
	"document": func(c net.Conn, nonce string) bool {
		_, err := io.WriteString(c, chaosSized(chaosBody(nonce, 20)))
		return err == nil
	},
	"stream": func(c net.Conn, nonce string) bool {
		io.WriteString(c, chaosStream)
		for range 10 {
			io.WriteString(c, chaosChunk(chaosEvent(nonce)))
		}
		_, err := io.WriteString(c, chaosChunk("data: [DONE]\n\n")+"0\r\n\r\n")
		return err == nil
	},
	"large": func(c net.Conn, nonce string) bool { // an event of a megabyte
		event := strings.Replace(chaosEvent(nonce), nonce+" ", strings.Repeat(nonce+" ", (1<<20)/len(nonce)), 1)
		_, err := io.WriteString(c, chaosStream+chaosChunk(event)+chaosChunk("data: [DONE]\n\n")+"0\r\n\r\n")
		return err == nil
	},
	"reset": func(c net.Conn, nonce string) bool {
		io.WriteString(c, chaosStream+chaosChunk(chaosEvent(nonce)))
		c.(*net.TCPConn).SetLinger(0)
		return false
	},
	"stall": func(c net.Conn, nonce string) bool {
		io.WriteString(c, chaosStream+chaosChunk(chaosEvent(nonce)))
		io.Copy(io.Discard, c) // until the other side gives up
		return false
	},
	"garbage": func(c net.Conn, nonce string) bool {
		io.WriteString(c, "\x00\x01 "+nonce+"\r\n\r\n")
		return true
	},
	"short": func(c net.Conn, nonce string) bool {
		io.WriteString(c, chaosDocument+"Content-Length: 5000\r\n\r\n"+chaosBody(nonce, 3))
		return false
	},
	"long": func(c net.Conn, nonce string) bool { // what stands behind looks like the next answer
		_, err := io.WriteString(c, chaosSized(chaosBody(nonce, 3))+chaosSized(chaosBody("#0#", 3)))
		return err == nil
	},
	"cut": func(c net.Conn, nonce string) bool { // within an event
		io.WriteString(c, chaosStream+chaosChunk(chaosEvent(nonce)+chaosEvent(nonce)[:20]))
		return false
	},
	"refuses": func(c net.Conn, nonce string) bool {
		_, err := io.WriteString(c, "HTTP/1.1 503 Busy\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
		return err == nil
	},
}

// With everything going wrong that can, on both sides, an answer reaches only
// whom it is for, and nothing is left behind: TestMain looks for goroutines.
func TestChaos(t *testing.T) {
	const clients = 200
	var modes []string
	for _, mode := range slices.Sorted(maps.Keys(chaosModes)) {
		often := map[string]int{"large": 4, "document": 80, "stream": 80}[mode]
		modes = append(modes, slices.Repeat([]string{mode}, cmp.Or(often, 15))...)
	}
	f := guardBefore(t, chaosEngine(t).url, func(o *Options) {
		o.Limits.ConnectTime, o.Limits.StallTime, o.Observe = time.Minute, time.Minute, nil
		o.Watch = Watch{Coders: []*canary.Coder{canary.New(canary.Key{1})}}
	})
	f.client.Transport.(*http.Transport).MaxIdleConnsPerHost = clients
	var next, whole, cancelled atomic.Int64
	var all sync.WaitGroup
	for i := range clients {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		all.Go(func() {
			for n := next.Add(1); n <= int64(*chaos) && !t.Failed(); n = next.Add(1) {
				mode := modes[random.IntN(len(modes))]
				ctx, cancel := context.WithCancel(t.Context())
				cancels := mode == "stall" || random.IntN(100) < 30
				if cancels {
					cancelled.Add(1)
					time.AfterFunc(time.Duration(random.IntN(5_000))*time.Microsecond, cancel)
				}
				got := f.chaosAsk(ctx, t, mode, fmt.Sprintf("#%d#", n))
				if got == "whole" {
					whole.Add(1)
				}
				if !cancels && (mode == "document" || mode == "stream" || mode == "large") && got != "whole" {
					t.Errorf("%s: %s", mode, got)
				}
				cancel()
			}
		})
	}
	all.Wait()
	t.Logf("%d requests, %d cancelled, %d answered whole", *chaos, cancelled.Load(), whole.Load())
	eventually(t, "all requests to end", func() bool { s := f.State(); return s.InFlight == 0 && s.HeldBytes == 0 })
}

// chaosAsk sends a request and looks at the answer: "whole" if it ended as one
// should that was not to fail.
func (f *fence) chaosAsk(ctx context.Context, t *testing.T, mode, nonce string) string {
	body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"mode %s, nonce %s"}]}`, mode, nonce)
	q, err := http.NewRequestWithContext(ctx, "POST", f.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return "not asked"
	}
	res, err := f.client.Do(q)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if strings.Contains(strings.ReplaceAll(string(b), nonce, ""), "#") {
		t.Errorf("%s: the answer to %s has another's nonce: %.300q", mode, nonce, b)
	}
	switch stream := strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream"); {
	case err != nil:
		return err.Error()
	case res.StatusCode != http.StatusOK:
		return res.Status + ": " + string(b)
	case stream && !strings.HasSuffix(string(b), "data: [DONE]\n\n"):
		t.Errorf("%s: a stream that was not whole ended well: %.200q", mode, b)
		return "not whole"
	}
	return "whole"
}
