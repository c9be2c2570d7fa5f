package admit

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// worker is a server that says how large its pool is, in SGLang's words.
type fakeWorker struct {
	pool, context atomic.Int64 // pool 0: it does not say
	down          atomic.Bool
	hang          atomic.Pointer[chan struct{}] // nil: answers at once
}

func (f *fakeWorker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if hang := f.hang.Load(); hang != nil {
		<-*hang
	}
	switch {
	case f.down.Load():
		w.WriteHeader(http.StatusInternalServerError)
	case r.URL.Path == "/server_info" && f.pool.Load() > 0:
		fmt.Fprintf(w, `{"max_total_num_tokens":%d,"api_key":"sk-planted"}`, f.pool.Load())
	case r.URL.Path == "/v1/models":
		fmt.Fprintf(w, `{"data":[{"id":"m","max_model_len":%d},{"id":"wide","max_model_len":%d}]}`, f.context.Load(), 4*f.context.Load())
	default:
		http.NotFound(w, r)
	}
}

// inMemory carries requests to handlers without a network, by host.
type inMemory map[string]http.Handler

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	h, ok := m[r.URL.Host]
	if !ok {
		return nil, fmt.Errorf("no such host")
	}
	out, done := httptest.NewRecorder(), make(chan struct{})
	go func() { defer close(done); h.ServeHTTP(out, r) }()
	select {
	case <-done:
		return out.Result(), nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func newFake(pool, context int64) *fakeWorker {
	f := &fakeWorker{}
	f.pool.Store(pool)
	f.context.Store(context)
	return f
}

func limiterOf(log io.Writer, workers ...*fakeWorker) *Limiter {
	hosts := inMemory{}
	o := LimiterOptions{Upstream: "u", Every: time.Minute, Timeout: 5 * time.Second, Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil))}
	for i, w := range workers {
		host := fmt.Sprintf("w%d", i)
		hosts[host] = w
		o.Sources = append(o.Sources, Source{URL: "http://" + host + "/v1", Key: "sk-planted", Client: &http.Client{Transport: hosts}})
	}
	return NewLimiter(o)
}

func TestLimiterMeasuresOnSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		a, b := newFake(10_640, 16_384), newFake(5000, 16_384)
		l := limiterOf(&log, a, b)
		if got := l.Limit("m"); got.Tokens != 0 || l.Answered() || !l.Asked().IsZero() {
			t.Errorf("before the first answer: %+v", got)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); l.Run(ctx) }()
		synctest.Wait()
		start := time.Now()
		if got := l.Limit("m"); got.Tokens != 4993 || !got.At.Equal(start) || !l.Answered() || l.Engine() != "sglang" {
			t.Errorf("at once: %+v, %v", got, l.Engine())
		}

		// A pool that shrinks holds from the next round on.
		a.pool.Store(3000)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := l.Limit("m"); got.Tokens != 2993 || !l.Asked().Equal(start.Add(time.Minute)) {
			t.Errorf("smaller pool: %+v", got)
		}
		// One that grows, too, and at once where somebody asks for it.
		a.pool.Store(20_000)
		b.pool.Store(15_000)
		l.Again()
		l.Again()
		synctest.Wait()
		if got := l.Limit("m"); got.Tokens != 14_993 {
			t.Errorf("asked again: %+v", got)
		}

		// A worker that is away is taken at its last word, which gets old.
		b.down.Store(true)
		a.pool.Store(18_000)
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		got := l.Limit("m")
		if got.Tokens != 14_993 || !got.At.Equal(start.Add(time.Minute)) || l.Answered() {
			t.Errorf("away: %+v, answered %v", got, l.Answered())
		}
		if d := Decide(got, time.Now(), Default(), Size{AtMost: 1}); d.Reason != OldLimit {
			t.Errorf("once it is too old: %+v", d)
		}
		// So is one that does not say any more how large its pool is.
		b.down.Store(false)
		b.pool.Store(0)
		time.Sleep(time.Minute)
		synctest.Wait()
		if now := l.Limit("m"); now.Tokens != 14_993 || !now.At.Equal(got.At) {
			t.Errorf("silent: %+v", now)
		}
		b.pool.Store(14_000)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := l.Limit("m"); got.Tokens != 13_993 || !l.Answered() {
			t.Errorf("back: %+v", got)
		}
		stop()
		<-done
		for _, want := range []string{
			`level=INFO msg="the limit has changed" upstream=u tokens=4993 before=0 source="pool 5,000 less reserve 7, from GET /server_info max_total_num_tokens"`,
			`level=WARN msg="the limit has changed" upstream=u tokens=2993 before=4993`,
			`msg="cannot measure the limit" upstream=u worker=1 why="HTTP 500: it is in trouble itself"`,
			`why="it does not say any more how large its KV pool is"`,
			`msg="the limit can be measured again" upstream=u worker=1`,
		} {
			if strings.Count(log.String(), want) != 1 {
				t.Errorf("the log lacks %s, or has it twice:\n%s", want, &log)
			}
		}
		if strings.Contains(log.String(), "sk-planted") {
			t.Error("a key in the log")
		}
	})
}

func TestLimiterGivesUpOnAWorkerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, quick := newFake(5000, 8192), newFake(10_000, 16_384)
		first, second := make(chan struct{}), make(chan struct{})
		slow.hang.Store(&first)
		l := limiterOf(io.Discard, slow, quick)
		start := time.Now()
		l.Measure(t.Context())
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("took %s", took)
		}
		// One worker's word is not that of both.
		if got := l.Limit("m"); got.Tokens != 0 || l.Answered() {
			t.Errorf("%+v", got)
		}
		close(first)
		l.Measure(t.Context())
		if got := l.Limit("m"); got.Tokens != 4993 {
			t.Errorf("%+v", got)
		}
		// What ends before it is answered changes nothing.
		slow.hang.Store(&second)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { time.Sleep(time.Second); cancel() }()
		l.Measure(ctx)
		if got := l.Limit("m"); got.Tokens != 4993 || !l.Answered() {
			t.Errorf("after a stop: %+v", got)
		}
		close(second)
		synctest.Wait()
	})
}

func TestLimiterOfOneModel(t *testing.T) {
	l := limiterOf(io.Discard, newFake(1<<20, 1000))
	l.Measure(t.Context())
	// SGLang's own bound, of the smaller window, holds for all its models.
	if m, wide, other := l.Limit("m"), l.Limit("wide"), l.Limit("other"); m.Tokens != 993 || wide.Tokens != 993 || other.Tokens != 993 {
		t.Errorf("%+v, %+v, %+v", m, wide, other)
	}
}

func TestLimiterWithoutWorkers(t *testing.T) {
	l := NewLimiter(LimiterOptions{Given: Given{Tokens: 77}, Every: time.Hour, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	l.Measure(t.Context())
	if got := l.Limit("m"); got.Tokens != 77 || !got.At.IsZero() || !l.Answered() || l.Engine() != "" {
		t.Errorf("%+v", got)
	}
	// What is configured holds where nobody answers.
	dead := newFake(1, 1)
	dead.down.Store(true)
	l = limiterOf(io.Discard, dead)
	l.o.Given = Given{Tokens: 88}
	l.Measure(t.Context())
	if got := l.Limit("m"); got.Tokens != 88 || l.Answered() {
		t.Errorf("%+v", got)
	}
}
