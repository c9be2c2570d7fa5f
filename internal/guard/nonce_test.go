package guard

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/canary"
)

var nonces = regexp.MustCompile(`#\d+#`)

// only says that there is no nonce in a text but one, and that one.
func only(nonce string, text []byte) bool {
	all := nonces.FindAll(text, -1)
	for _, n := range all {
		if string(n) != nonce {
			return false
		}
	}
	return len(all) > 0
}

// nonceEngine answers a request with its nonce in every place that an answer
// has, in the way that its user agent names. It reports requests that have
// another's.
func nonceEngine(t *testing.T) string {
	return engine(t, func(w http.ResponseWriter, r *http.Request) {
		way, sent := r.Header.Get("User-Agent"), make([]byte, 512)
		if strings.HasPrefix(way, "early") { // the rest is read behind the answer
			http.NewResponseController(w).EnableFullDuplex()
			io.ReadFull(r.Body, sent)
			defer io.Copy(io.Discard, r.Body)
		} else {
			var err error
			if sent, err = io.ReadAll(r.Body); err != nil {
				return // the guard has given it up
			}
		}
		nonce := string(nonces.Find(sent))
		if nonce == "" || !only(nonce, sent) || !strings.HasSuffix(way, " "+nonce) {
			t.Errorf("%s: the engine was sent %.300q", way, sent)
		}
		w.Header().Set("X-Nonce", nonce)
		way, _, _ = strings.Cut(way, " ")
		nonceWays[way](w, nonce)
	})
}

var nonceWays = map[string]func(w http.ResponseWriter, nonce string){
	"document": func(w http.ResponseWriter, nonce string) { io.WriteString(w, chaosBody(nonce, 2000)) },
	"refused":  func(w http.ResponseWriter, nonce string) { io.WriteString(w, chaosBody(nonce, 1)) },
	"early": func(w http.ResponseWriter, nonce string) {
		body := chaosBody(nonce, 200)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, body)
		w.(http.Flusher).Flush()
	},
	"stream": func(w http.ResponseWriter, nonce string) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 40 {
			io.WriteString(w, chaosEvent(nonce))
			w.(http.Flusher).Flush()
		}
		io.WriteString(w, "data: [DONE]\n\n")
		w.Header().Set(http.TrailerPrefix+"X-Behind", nonce)
	},
	"large": func(w http.ResponseWriter, nonce string) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 6 {
			io.WriteString(w, strings.Replace(chaosEvent(nonce), nonce, strings.Repeat(nonce+" ", 2000), 1))
		}
		io.WriteString(w, "data: [DONE]\n\n")
	},
	"reset": func(w http.ResponseWriter, nonce string) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, chaosEvent(nonce)+chaosEvent(nonce)[:30])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	},
}

// nonceBody is a prompt of the way's. Those that are refused have a second
// member of one name at their end; early ones are longer than is held.
func nonceBody(way, nonce string) string {
	n, end := 300, `"}]}`
	switch way {
	case "refused":
		n, end = 5_000, `"}],"model":"`+nonce+`"}`
	case "early":
		n = 190_000
	}
	return `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat(nonce+" ", n) + end
}

// TestNoncesReachNobodyElse: with all that is used again, on one connection of HTTP/2
// as on many of HTTP/1.1, no request has anything of another's: neither at the
// engine nor at the client, nor in what is recorded of it. Clients go away at
// every point of an answer, engines break off, answers come before the prompt.
func TestNoncesReachNobodyElse(t *testing.T) {
	f := guardBefore(t, nonceEngine(t), func(o *Options) {
		o.Limits = Limits{ConnectTime: time.Minute, StallTime: time.Minute, BodyTime: time.Minute}
		o.Watch = Watch{Coders: []*canary.Coder{canary.New(canary.Key{1})}}
	})
	at, client := overHTTP2(t, f)
	f.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 8
	ways := []string{"document", "stream", "large", "document", "stream", "large", "document", "stream", "large", "refused", "early", "reset"}
	var next atomic.Int64
	var all sync.WaitGroup
	for i := range 16 {
		random := rand.New(rand.NewPCG(2, uint64(i)))
		c, url := client, at
		if i%4 == 0 {
			c, url = f.client, f.url
		}
		all.Go(func() {
			for n := next.Add(1); n <= 200 && !t.Failed(); n = next.Add(1) {
				cut := int64(-1)
				if random.IntN(2) == 0 {
					cut = random.Int64N(60_000)
				}
				askNonce(t, c, url, ways[random.IntN(len(ways))], fmt.Sprintf("#%d#", n), cut)
			}
		})
	}
	all.Wait()
	eventually(t, "all requests to end", func() bool { s := f.State(); return s.InFlight == 0 && s.HeldBytes == 0 })
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.records {
		if len(r.Findings) > 0 || r.Code == "internal" {
			t.Errorf("recorded %+v", r)
		}
	}
}

// askNonce sends a request and goes away after cut bytes of its answer, -1 for
// never.
func askNonce(t *testing.T, c *http.Client, url, way, nonce string, cut int64) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	q, _ := http.NewRequestWithContext(ctx, "POST", url+"/v1/chat/completions", strings.NewReader(nonceBody(way, nonce)))
	q.Header.Set("User-Agent", way+" "+nonce)
	q.Header.Set("X-Request-Id", nonce)
	res, err := c.Do(q)
	if err != nil {
		if way != "early" { // its prompt may not be read to the end
			t.Errorf("%s: %v", way, err)
		}
		return
	}
	defer res.Body.Close()
	var b bytes.Buffer
	if cut >= 0 {
		io.CopyN(&b, res.Body, cut)
	} else if _, err = io.Copy(&b, res.Body); (err != nil) && way != "reset" && way != "early" {
		t.Errorf("%s: %v", way, err)
	}
	said := append(b.Bytes(), fmt.Sprint(" ", res.Header, res.Trailer)...)
	if !only(nonce, said) {
		t.Errorf("%s %s, cut %d: %d %.600q", way, nonce, cut, res.StatusCode, said)
	}
	if want := map[string]int{"refused": 400, "early": 503}[way]; res.StatusCode != max(want, 200) {
		t.Errorf("%s: %d %.300q", way, res.StatusCode, b.Bytes())
	}
}
