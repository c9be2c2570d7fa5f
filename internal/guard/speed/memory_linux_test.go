package speed

import (
	"flag"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var streams = flag.Int("streams", 50, "streams that TestStreams has open at once; with 1,000 or more it holds the guard to 64 MB")

// resident is what the guard may take at 1,000 open streams, bytes.
const resident = 64_000_000

// All streams are open at once, each with events now and then, as those of
// clients that read what a model thinks of.
func TestStreams(t *testing.T) {
	over := make(chan struct{})
	var open atomic.Int64
	engine := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			io.WriteString(w, event)
			w.(http.Flusher).Flush()
			select {
			case <-over:
				io.WriteString(w, "data: [DONE]\n\n")
				return
			case <-tick.C:
			}
		}
	})
	all := ways(t, engine)[1:]
	for i, p := range all {
		rest, _ := p.memory(t)
		var ended sync.WaitGroup
		clients := make([]*client, *streams)
		for i := range clients {
			var err error
			if clients[i], err = dial(p.addr); err != nil {
				t.Fatal(err)
			}
			defer clients[i].Close()
			ended.Go(func() { clients[i].watch(t, p, &open) })
		}
		eventually(t, p.name+": every stream to say something", func() bool { return open.Load() == int64(*streams) || t.Failed() })
		most, settled := 0, 0
		for range 5 { // seconds, so that each stream goes on meanwhile
			time.Sleep(time.Second / 5 * time.Duration(min(5, max(1, *streams/200))))
			settled, _ = p.memory(t)
			most = max(most, settled)
		}
		t.Logf("%-12s %d open streams: %.1f MB resident after 5 s, %.1f MB at most, %.1f MB at rest", p.name, *streams, float64(settled)/1e6, float64(most)/1e6, float64(rest)/1e6)
		if !p.other && *streams >= 1000 && *guardPath != "" && most > resident*(*streams/1000) {
			t.Errorf("%d bytes resident at %d open streams, at most %d are to be", most, *streams, resident)
		}
		if i < len(all)-1 {
			for _, c := range clients {
				c.Close() // the engine notices at the next event
			}
		} else {
			close(over)
		}
		ended.Wait()
		open.Store(0)
	}
}

// watch asks for a stream and reads it until it ends or the connection is closed.
func (c *client) watch(t *testing.T, p *process, open *atomic.Int64) {
	if _, err := c.Write(whole(`{"stream":true,` + said)); err != nil {
		t.Error(err)
		return
	}
	res, err := http.ReadResponse(c.br, nil)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%s: %v %v", p.name, res, err)
		return
	}
	var first [8]byte
	if _, err := io.ReadFull(res.Body, first[:]); err != nil {
		t.Errorf("%s: %v", p.name, err)
		return
	}
	open.Add(1)
	io.Copy(io.Discard, res.Body)
}

// half is how much of a prompt is sent before the engine must have seen some.
const half = 2 << 20

// A prompt of 4 MB reaches the engine while it comes, and takes no more memory
// than one of 15.
func TestPrompt(t *testing.T) {
	begun := make(chan int64, 1)
	engine := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var first [1 << 10]byte
		n, err := io.ReadFull(r.Body, first[:])
		select {
		case begun <- int64(n):
		default:
		}
		rest, _ := io.Copy(io.Discard, r.Body)
		if n+int(rest) != int(r.ContentLength) || err != nil {
			http.Error(w, "not whole", http.StatusBadRequest)
			return
		}
		w.Write(document)
	})
	p := startGuard(t, "guard", engine)
	c, err := dial(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 { // pools are filled
		c.long(t, 4_000_000, begun)
	}
	many := 10
	if *guardPath == "" {
		many = 3
	}
	var most [2]int
	for i, size := range []int{4_000_000, 15_000_000} {
		p.forget(t)
		before, _ := p.memory(t)
		for range many {
			c.long(t, size, begun)
		}
		_, most[i] = p.memory(t)
		t.Logf("%d prompts of %.0f MB: %.1f MB resident at most, %.1f before", many, float64(size)/1e6, float64(most[i])/1e6, float64(before)/1e6)
	}
	if most[1] > most[0]+4_000_000 {
		t.Errorf("prompts of 15 MB take %d bytes, those of 4 MB %d: memory grows with them", most[1], most[0])
	}
}

// long sends a prompt of so many bytes, the second half only when the engine has
// seen the beginning.
func (c *client) long(t *testing.T, size int, begun <-chan int64) {
	t.Helper()
	const before, behind = `{"model":"m","messages":[{"role":"user","content":"`, `"}]}`
	text := strings.Repeat("It was said before. ", half/20)
	if _, err := io.WriteString(c, head(size)+before); err != nil {
		t.Fatal(err)
	}
	sent := len(before)
	for part := 0; sent < size-len(behind); part++ {
		n, err := io.WriteString(c, text[:min(len(text), size-len(behind)-sent)])
		if sent += n; err != nil {
			t.Fatal(err)
		}
		if part == 0 {
			select {
			case <-begun:
			case <-time.After(time.Minute):
				t.Fatalf("the engine has seen nothing of the first %d of %d bytes", sent, size)
			}
		}
	}
	if _, err := c.ask([]byte(behind)); err != nil {
		t.Fatal(err)
	}
}
