package engine

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Each worker behind a router keeps its own window: the smallest of all would
// hide the one that its pool does not hold.
func TestWorkersBehindARouterKeepTheirWindow(t *testing.T) {
	answers := map[string]string{
		"/server_info": `{"prefill":[{"max_total_num_tokens":200000,"context_length":169000},{"max_total_num_tokens":200000}],
			"decode":[{"max_total_num_tokens":681280,"context_length":1048576}]}`,
		"/v1/models": `{"data":[{"id":"m","max_model_len":169000}]}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answers[r.URL.Path] == "" {
			w.WriteHeader(http.StatusNotFound)
		}
		io.WriteString(w, answers[r.URL.Path])
	}))
	defer s.Close()
	f := Ask(t.Context(), s.Client(), s.URL, "")
	if len(f.Behind) != 3 {
		t.Fatalf("%+v", f)
	}
	// What a worker does not say itself is the largest that anybody says.
	for i, want := range []int{169_000, 1_048_576, 1_048_576} {
		if got := f.Behind[i].Context.Value; got != want {
			t.Errorf("worker %d: window %d, want %d", i, got, want)
		}
	}
}

// Of a line that is too long nothing counts, neither its beginning nor what
// stands in the buffer when it ends.
func TestLongLinesOfALogSayNothing(t *testing.T) {
	text := strings.Repeat("x", maxLogLine) + " max_total_num_tokens=9000000, context_len=1\nmax_total_num_tokens=100, context_len=8192\n"
	f, err := ReadLog(strings.NewReader(text), "sglang")
	if err != nil || f.Pool.Value != 100 || f.Context.Value != 8192 {
		t.Errorf("%+v, %v", f, err)
	}
}
