package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvcanary/kvcanary/internal/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a Backend whose answers a test writes down.
type fake struct {
	state  lab.State
	answer func(lab.Request) []lab.Event
	buffer int
	last   atomic.Pointer[lab.Request]
	held   atomic.Int64 // requests that have not been let go
	slow   bool         // answers without end, until the client goes
	begun  chan struct{}
	gone   chan struct{} // closed when a slow answer has been let go
}

func newFake() *fake {
	return &fake{state: lab.State{
		Model: "lab", Version: "0.5.11", Context: 16384, MaxInput: 10634, PageSize: 16,
		PrefillPool: 10640, DecodePool: 20480, PrefillUsed: 160, DecodeUsed: 320, Running: 2, Waiting: 3, FailedTransfers: 4,
		Faults: []string{"stale_reserve"},
	}, answer: func(r lab.Request) []lab.Event { return says("noted", "stop", len(r.Tokens)) }}
}

// says is an answer of the given bytes.
func says(text, finish string, promptTokens int) (events []lab.Event) {
	for i := range len(text) {
		events = append(events, lab.Event{Token: text[i]})
	}
	return append(events, lab.Event{Done: &lab.Done{Finish: finish, PromptTokens: promptTokens, CompletionTokens: len(text)}})
}

func fails(status int, message string) lab.Event {
	return lab.Event{Error: &lab.Error{Status: status, Type: "BadRequestError", Message: message}}
}

func (f *fake) State() lab.State { return f.state }

func (f *fake) Submit(ctx context.Context, r lab.Request) <-chan lab.Event {
	f.last.Store(&r)
	f.held.Add(1)
	out := make(chan lab.Event, f.buffer)
	go func() {
		defer close(out)
		defer f.held.Add(-1)
		if f.slow {
			f.endless(ctx, out)
			return
		}
		for _, e := range f.answer(r) {
			select {
			case out <- e:
			case <-ctx.Done():
				out <- fails(499, "canceled")
				return
			}
		}
	}()
	return out
}

func (f *fake) endless(ctx context.Context, out chan<- lab.Event) {
	f.begun <- struct{}{}
	defer close(f.gone)
	for {
		select {
		case out <- lab.Event{Token: 'x'}:
		case <-ctx.Done():
			out <- fails(499, "canceled")
			return
		}
	}
}

// serve starts the API over loopback; change may adjust its options.
func serve(t testing.TB, b lab.Backend, change func(*Options)) *httptest.Server {
	t.Helper()
	var ids atomic.Int64
	o := Options{Backend: b, Model: "lab", Now: func() time.Time { return time.Unix(1_790_000_000, 0) },
		NewID: func() string { return fmt.Sprint(ids.Add(1)) }}
	if change != nil {
		change(&o)
	}
	server := httptest.NewServer(NewHandler(o))
	t.Cleanup(func() {
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return server
}

// post sends a JSON body and returns the status and the answer's body.
func post(t testing.TB, url, body string) (int, string) {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, all(t, res.Body)
}

func get(t testing.TB, url string) (int, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, all(t, res.Body)
}

func all(t testing.TB, r io.ReadCloser) string {
	t.Helper()
	defer r.Close()
	p, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(p)
}
