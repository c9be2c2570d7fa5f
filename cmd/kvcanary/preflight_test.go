package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/preflight"
)

// preflightRun runs the command within this process.
func preflightRun(t *testing.T, args ...string) (preflight.Report, int) {
	t.Helper()
	var out, errs bytes.Buffer
	s := &session{ctx: context.Background(), stdin: bytes.NewReader(nil), stdout: &out, stderr: &errs, getenv: func(string) string { return "" }}
	code := run(s, append([]string{"preflight", "--format", "json"}, args...))
	var r preflight.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("exit %d: %v\n%s%s", code, err, out.String(), errs.String())
	}
	return r, code
}

// worker is a fake SGLang worker.
func worker(t *testing.T, role string, pool int, wait <-chan struct{}, asked *atomic.Int32) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wait != nil {
			asked.Add(1)
			select {
			case <-wait:
			case <-r.Context().Done():
			}
		}
		switch r.URL.Path {
		case "/server_info":
			fmt.Fprintf(w, `{"disaggregation_mode":%q,"max_total_num_tokens":%d,"max_req_input_len":16378,"page_size":16,"num_reserved_decode_tokens":0,"context_length":16384,
				"disaggregation_enable_kv_checksum":true,"allow_auto_truncate":false,"disable_radix_cache":true,"version":"0.5.22"}`, role, pool)
		case "/v1/models":
			io.WriteString(w, `{"data":[{"id":"m","max_model_len":16384}]}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// All workers are asked at the same time: each of them answers only once every
// one of them has been asked.
func TestPreflightAsksWorkersSideBySide(t *testing.T) {
	const each = 5
	all := make(chan struct{})
	var asked atomic.Int32
	var args []string
	for range each {
		args = append(args, "--prefill", worker(t, "prefill", 20480, all, &asked), "--decode", worker(t, "decode", 20480, all, &asked))
	}
	go func() {
		for asked.Load() < 2*each && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		close(all)
	}()
	r, code := preflightRun(t, args...)
	if code != exitClean || len(r.Workers) != 2*each || r.Verdict != preflight.Clean {
		t.Errorf("exit %d, %d workers, %s", code, len(r.Workers), r.Summary)
	}
}

// A worker that hangs makes what is known of the others no pass.
func TestPreflightGivesUpOnAWorkerThatHangs(t *testing.T) {
	never := make(chan struct{})
	var asked atomic.Int32
	r, code := preflightRun(t, "--timeout", "300ms", "--prefill", worker(t, "prefill", 20480, nil, nil), "--decode", worker(t, "decode", 20480, never, &asked))
	if code != exitInconclusive || r.Workers[1].Trouble != "it does not answer in time" {
		t.Errorf("exit %d, %+v", code, r.Workers[1])
	}
}

// The worst of several ranks and workers counts.
func TestPreflightTakesTheSmallestPool(t *testing.T) {
	r, code := preflightRun(t, "--prefill", worker(t, "prefill", 20480, nil, nil), "--prefill", worker(t, "prefill", 10640, nil, nil), "--decode", worker(t, "decode", 20480, nil, nil))
	if code != exitFound {
		t.Errorf("exit %d: %s", code, r.Summary)
	}
}
