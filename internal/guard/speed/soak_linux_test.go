package speed

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var soak = flag.Duration("soak", 10*time.Second, "time of TestSoak")

var pause = flag.Duration("pause", 20*time.Millisecond, "that clients of TestSoak make between two requests, at most")

// soakClients send requests at once.
const soakClients = 16

// sample is what the guard holds while nothing is asked of it, right after a
// phase of load.
type sample struct{ heap, resident, goroutines, descriptors float64 }

// Half an hour of documents, streams, long prompts, refused ones, engines that
// break off and clients that leave: what the guard holds between phases of it
// does not grow.
func TestSoak(t *testing.T) {
	p := startGuard(t, "guard", serve(t, wearing))
	phase := max(*soak/60, time.Second)
	var samples []sample
	var asked, good atomic.Int64
	for n, from := uint64(0), time.Now(); time.Since(from) < *soak || len(samples) < 6; n++ {
		var all sync.WaitGroup
		for i := range soakClients {
			random := rand.New(rand.NewPCG(n, uint64(i)))
			all.Go(func() {
				for end := time.Now().Add(phase); time.Now().Before(end); {
					asked.Add(1)
					if p.wear(t, random) {
						good.Add(1)
					}
					time.Sleep(time.Duration(random.Int64N(int64(*pause))))
				}
			})
		}
		all.Wait()
		s := p.rest(t)
		if n > 0 { // pools fill at first
			samples = append(samples, s)
		}
		if len(samples)%10 == 1 {
			t.Logf("%4.0f s: %.1f MB of heap, %.1f MB resident, %.0f goroutines, %.0f descriptors", time.Since(from).Seconds(), s.heap/1e6, s.resident/1e6, s.goroutines, s.descriptors)
		}
	}
	t.Logf("%d requests, %d answered whole", asked.Load(), good.Load())
	if good.Load() < asked.Load()/3 {
		t.Errorf("of %d requests %d were answered whole: too few to show anything", asked.Load(), good.Load())
	}
	resident := 4e6
	if *guardPath == "" {
		resident = 16e6 // the race detector's memory comes and goes with it
	}
	for _, c := range []struct {
		what  string
		of    func(sample) float64
		slack float64
	}{
		{"heap", func(s sample) float64 { return s.heap }, 1e6},
		{"resident", func(s sample) float64 { return s.resident }, resident},
		{"goroutines", func(s sample) float64 { return s.goroutines }, 2},
		{"descriptors", func(s sample) float64 { return s.descriptors }, soakClients},
	} {
		var of []float64
		for _, s := range samples {
			of = append(of, c.of(s))
		}
		if by := growth(of); by > c.slack {
			t.Errorf("%s grows by %.0f: %.0f", c.what, by, of)
		}
	}
}

// growth is by how much the least of the last third lies above the most of the
// first, 0 if it does not. What only goes up and down does not grow.
func growth(of []float64) float64 {
	third := max(1, len(of)/3)
	return max(0, slices.Min(of[len(of)-third:])-slices.Max(of[:third]))
}

func TestGrowth(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{
		{[]float64{5, 5, 5, 5, 5, 5}, 0},
		{[]float64{5, 9, 5, 9, 5, 9}, 0},
		{[]float64{9, 8, 7, 6, 5, 4}, 0},
		{[]float64{1, 2, 3, 4, 5, 6}, 3},
		{[]float64{5, 5, 5, 5, 8, 9}, 3},
		{[]float64{2}, 0},
	} {
		if got := growth(c.of); got != c.want {
			t.Errorf("growth of %v: %v, want %v", c.of, got, c.want)
		}
	}
}

// wearing is an engine of which each request says what it does.
func wearing(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	switch {
	case bytes.Contains(body, []byte("do break off")):
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, event+event[:40])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	case bytes.Contains(body, []byte("do lie")):
		w.Header().Set("Content-Length", "100000")
		w.Write(document)
	case bytes.Contains(body, []byte("do refuse")):
		http.Error(w, `{"error":{"message":"busy"}}`, http.StatusServiceUnavailable)
	case bytes.Contains(body, []byte("do stall")):
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, event)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		answering(w, r)
	}
}

// wear sends one request of some kind, over a connection of its own, and says
// whether all of a good answer came.
func (p *process) wear(t testing.TB, random *rand.Rand) bool {
	kinds := []string{"", "", "", "", "", "", "long", "long", "break off", "lie", "refuse", "stall", "nonsense", "leave"}
	kind := kinds[random.IntN(len(kinds))]
	body := "{" + said
	if random.IntN(2) == 0 {
		body = `{"stream":true,` + said
	}
	text := "do " + kind + " "
	if kind == "long" {
		text = strings.Repeat("and so on ", 150_000)
	}
	body = strings.Replace(body, "What follows", text+"What follows", 1)
	if kind == "nonsense" {
		body = strings.Replace(body, `"model":"m"`, `"model":"m","model":"n"`, 1)
	}
	c, err := dial(p.addr)
	if err != nil {
		t.Error(err)
		return false
	}
	defer c.Close()
	if kind == "leave" || kind == "stall" { // within the request or within the answer
		sent := fmt.Appendf(nil, "%s%s", head(len(body)), body)
		if kind == "leave" {
			sent = sent[:random.IntN(len(sent))]
		}
		c.Write(sent)
		if kind == "stall" {
			c.br = bufio.NewReaderSize(c, 16)
			c.br.ReadByte()
		}
		return false
	}
	_, err = c.ask(whole(body))
	good := kind == "" || kind == "long"
	if good == (err != nil) {
		t.Errorf("a request of the kind %q: %v", kind, err)
	}
	return good
}

// rest waits until the guard has nothing to do and no clients, and says what it
// holds then.
func (p *process) rest(t testing.TB) sample {
	t.Helper()
	eventually(t, "the guard to be at rest", func() bool { return p.scrape(t)["kvcanary_guard_in_flight_requests"] == 0 })
	s := sample{heap: math.Inf(1), goroutines: math.Inf(1), descriptors: math.Inf(1)}
	for range 10 { // the least of some readings: connections take a moment to end
		m := p.scrape(t)
		s.heap = min(s.heap, m["go_memstats_heap_alloc_bytes"])
		s.goroutines = min(s.goroutines, m["go_goroutines"])
		s.descriptors = min(s.descriptors, float64(p.descriptors(t)))
		time.Sleep(10 * time.Millisecond)
	}
	now, _ := p.memory(t)
	s.resident = float64(now)
	return s
}
