package wire

import (
	"context"
	"io"
	"net/http"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// million is a text of about a million tokens that is made as it is read.
type million struct{ size int64 }

func (m million) Open() io.Reader {
	return io.LimitReader(endless("granite lantern meadow copper harbor\n"), m.size)
}
func (m million) Size() int64 { return m.size }

// TestSixteenMillionTokens has sixteen prompts of a million tokens each under
// way at once: all are in the middle of their upload when the heap is
// measured, and none of them is in it.
func TestSixteenMillionTokens(t *testing.T) {
	const n, size = 16, 6_200_000
	var arrived atomic.Int64
	half := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.CopyN(io.Discard, r.Body, size/2)
		if arrived.Add(1) == n {
			close(half)
		}
		<-half
		rest, _ := io.Copy(io.Discard, r.Body)
		if r.ContentLength != size/2+rest {
			t.Errorf("content length %d, %d bytes arrived", r.ContentLength, size/2+rest)
		}
		io.WriteString(w, goodStream)
	}, Options{HeaderTimeout: 10 * time.Minute})
	var peak peakHeap
	stop := peak.watch()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			r := prompt("")
			r.Messages[0].Text = million{size}
			if a := c.Do(context.Background(), r); !a.Served() {
				t.Errorf("refusal %+v, failure %+v", a.Refusal, a.Failure)
			}
		})
	}
	wg.Wait()
	stop()
	t.Logf("peak of heap and stacks: %.1f MB", float64(peak.bytes)/1e6)
	if peak.bytes > 60e6 {
		t.Errorf("peak of %d bytes for %d prompts of %d", peak.bytes, n, size)
	}
}

// peakHeap is the most memory that the process held while it was watched: heap
// and stacks, those of the test server included.
type peakHeap struct{ bytes uint64 }

func (p *peakHeap) watch() (stop func()) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			metrics.Read(samples)
			p.bytes = max(p.bytes, samples[0].Value.Uint64()+samples[1].Value.Uint64()+samples[2].Value.Uint64())
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() { close(done); <-ended }
}

func BenchmarkBody(b *testing.B) {
	segs := messagesJSON([]Message{{Role: "user", Text: million{6 << 20}}})
	size, _ := bodySize(segs)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		io.Copy(io.Discard, &bodyReader{segs: segs, moved: func() {}})
	}
}

// BenchmarkSixteenMillionTokens is the whole way of sixteen prompts of a
// million tokens, sizing included, to a server on loopback.
func BenchmarkSixteenMillionTokens(b *testing.B) {
	c := serve(b, answer(200, "text/event-stream", goodStream), Options{})
	var peak peakHeap
	stop := peak.watch()
	b.SetBytes(16 * 6 << 20)
	for b.Loop() {
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				r := prompt("")
				r.Messages[0].Text = million{6 << 20}
				c.Do(context.Background(), r)
			})
		}
		wg.Wait()
	}
	stop()
	b.ReportMetric(float64(peak.bytes)/1e6, "peak-MB")
}
