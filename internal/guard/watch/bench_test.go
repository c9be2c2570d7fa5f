package watch

import (
	"bytes"
	"fmt"
	"go/build"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/canary"
)

// tokenLike cuts text as tokenizers do: a word with the space before it,
// numbers in threes, runs of what else there is. Long words are two tokens.
var tokenLike = regexp.MustCompile(` ?[A-Za-z]{1,9}|[0-9]{1,3}| ?[\x21-\x7e]{1,4}| ?[^\x00-\x7f]{1,2}|\s+`)

func tokens(text string) []string {
	var out []string
	for at := 0; at < len(text); {
		loc := tokenLike.FindStringIndex(text[at:])
		if loc == nil {
			return append(out, text[at:])
		}
		out = append(out, text[at:at+loc[1]])
		at += loc[1]
	}
	return out
}

// samples are what models write: prose and code of the Go installation at hand,
// tables of JSON, Chinese with English terms in it.
func samples(size int) map[string]string {
	var code, prose strings.Builder
	filepath.WalkDir(filepath.Join(build.Default.GOROOT, "src", "net"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if code.Len() < size {
			code.Write(b)
		}
		for line := range bytes.Lines(b) {
			if text, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("// ")); ok && bytes.IndexByte(text, ' ') > 0 {
				prose.Write(text)
				prose.WriteByte('\n')
			}
		}
		if code.Len() >= size && prose.Len() >= size {
			return filepath.SkipAll
		}
		return nil
	})
	var table, chinese strings.Builder
	for i := 0; table.Len() < size; i++ {
		fmt.Fprintf(&table, "{\"name\": \"item %d\", \"price\": %d.%02d, \"stock\": %t, \"size\": [%d, %d]},\n", i, i*7%1000, i%100, i%3 == 0, i%40, i%50)
		chinese.WriteString("这是一个关于 music 的问题，我们使用 Python 和 " + []string{"travel", "science", "garden", "the"}[i%4] + " 来解决，然后继续说明其他的内容。")
	}
	return map[string]string{"code": code.String()[:size], "prose": prose.String()[:size], "json": table.String()[:size], "chinese": chinese.String()[:size/3*3]}
}

// TestHoldBack: how long a strict watch holds innocent text, an event a token.
// The bounds are what the documentation says; run it with -v to see the figures.
func TestHoldBack(t *testing.T) {
	c := testCoder(1)
	y := carriers[0]
	for name, text := range samples(200_000) {
		w := y.watch(true, c)
		var ends []int // of events, bytes of the stream
		sent, out := 0, 0
		delays, most := map[int]int{}, 0
		released := 0
		for i, tok := range tokens(text) {
			e := y.event(quote(tok))
			sent += len(e)
			ends = append(ends, sent)
			release, stop := w.Write([]byte(e))
			if stop {
				t.Fatalf("%s: stopped: %+v", name, w.Findings())
			}
			out += len(release)
			for released < len(ends) && ends[released] <= out {
				delays[i-released]++
				most = max(most, i-released)
				released++
			}
		}
		sum, at := 0, 0
		for d, n := range delays {
			sum += d * n
			if d == 0 {
				at = n
			}
		}
		mean := float64(sum) / float64(released)
		_, held := w.Held()
		t.Logf("%-8s %6d events: mean delay %.2f events, %d %% at once, most %d; most held %d bytes", name, released, mean, 100*at/released, most, held)
		if mean > 1.5 || most > 40 {
			t.Errorf("%s: mean delay %.2f events, most %d", name, mean, most)
		}
	}
}

func benchEvents(text string) [][]byte {
	var out [][]byte
	for _, tok := range tokens(text)[:4096] {
		out = append(out, []byte(carriers[0].event(quote(tok))))
	}
	return out
}

func BenchmarkStrict(b *testing.B) { benchWatch(b, benchEvents(samples(200_000)["prose"]), true) }
func BenchmarkAudit(b *testing.B)  { benchWatch(b, benchEvents(samples(200_000)["prose"]), false) }

// BenchmarkNumbered is of events each of which has a number of its own, so that
// none is like the last.
func BenchmarkNumbered(b *testing.B) {
	events := benchEvents(samples(200_000)["prose"])
	for i := range events {
		events[i] = bytes.Replace(events[i], []byte("1700000000"), []byte(strconv.Itoa(1700000000+i)), 1)
	}
	benchWatch(b, events, true)
}

func benchWatch(b *testing.B, events [][]byte, strict bool) {
	w := carriers[0].watch(strict, testCoder(1))
	for _, e := range events {
		w.Write(e)
	}
	size, start := 0, cpuTime()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e := events[i%len(events)]
		size += len(e)
		if _, stop := w.Write(e); stop {
			b.Fatal(w.Findings())
		}
	}
	b.ReportMetric(float64(b.N)/(cpuTime()-start).Seconds(), "events/cpu-s")
	b.ReportMetric(float64(size)/float64(b.N), "B/event")
}

func BenchmarkWalk(b *testing.B) {
	doc := bytes.TrimPrefix(bytes.TrimSpace([]byte(carriers[0].event(`" window"`))), []byte("data: "))
	k := walker{most: maxParts, memory: new(memory)}
	b.ReportAllocs()
	for b.Loop() {
		k.read(doc)
	}
}

func BenchmarkNew(b *testing.B) {
	c := testCoder(1)
	e := []byte(carriers[0].event(`" window"`))
	b.ReportAllocs()
	for b.Loop() {
		w := carriers[0].watch(true, c)
		w.Write(e)
	}
}

// TestEventsTakeNoMemory: an event more takes no memory more, and a stream at
// rest little.
func TestEventsTakeNoMemory(t *testing.T) {
	events := benchEvents(samples(200_000)["prose"])
	w := carriers[0].watch(true, testCoder(1))
	i := 0
	write := func() {
		if _, stop := w.Write(events[i%len(events)]); stop {
			t.Fatal(w.Findings())
		}
		i++
	}
	for range events {
		write()
	}
	if n := testing.AllocsPerRun(4096, write); n > 0 {
		t.Errorf("%v allocations an event", n)
	}

	const streams = 200
	c := testCoder(1)
	open := make([]*Watch, streams)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for k := range open {
		open[k] = carriers[0].watch(true, c)
		for _, e := range events[:50] {
			open[k].Write(e)
		}
	}
	runtime.ReadMemStats(&after)
	// All that was allocated, dropped or not: an upper bound of what is kept.
	each := (after.TotalAlloc - before.TotalAlloc) / streams
	t.Logf("%d bytes an open stream", each)
	if each > 8<<10 {
		t.Errorf("an open stream takes %d bytes, more than 8 KiB", each)
	}
	runtime.KeepAlive(open)
}

// TestAStreamAtRestKeepsLittle: also after much has come at once.
func TestAStreamAtRestKeepsLittle(t *testing.T) {
	for _, strict := range []bool{true, false} {
		w := carriers[0].watch(strict, testCoder(1))
		for _, text := range []string{"I am. ", "music"} {
			event := carriers[0].event(quote(text))
			many := strings.Repeat(event, 500)
			release, _ := w.Write([]byte(many))
			if now, _ := w.Held(); cap(w.frame.buf) > largeBuffer || !strings.HasPrefix(many+many, string(release)) || strict && len(release)+now < len(many) {
				t.Errorf("strict %v: keeps %d bytes for %d that are held; %d of %d were released", strict, cap(w.frame.buf), now, len(release), len(many))
			}
		}
	}
}

// A document of 1.3 kB, with the headers of its answer: what one request costs.
func BenchmarkDocument(b *testing.B) {
	document := []byte(`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("It follows from what was said before that the answer is no. ", 16) + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":300,"completion_tokens":200,"total_tokens":500}}`)
	header := http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"kvg-00112233445566778899aabbccddeeff"}, "Kvcanary-Admission": {"pass"}}
	o := Options{Dialect: "openai", Strict: true, Coders: []*canary.Coder{canary.New(canary.Key{1})}}
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	var p Pool
	for b.Loop() {
		w := p.Get(o)
		w.Headers(header)
		w.Write(document)
		if out, stop := w.Close(); stop || len(out) != len(document) {
			b.Fatal("the document does not pass")
		}
		p.Put(w)
	}
}
