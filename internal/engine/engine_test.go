package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "sk-very-secret-0123456789"

// single is one SGLang server, as release 0.5 answers, shortened.
const single = `{"model_path":"glm","api_key":"` + secret + `","admin_api_key":"` + secret + `","context_length":null,
 "disaggregation_mode":"null","page_size":64,"status":"ready","max_total_num_tokens":20480,"max_req_input_len":20474,
 "internal_states":[{"memory_usage":{"weight":1.5,"kvcache":0.23,"token_capacity":20480,"graph":0}}],"version":"0.5.11"}`

// merged is what a load balancer for prefill and decode workers answers.
const merged = `{"internal_states":[{"memory_usage":{"token_capacity":1310720}}],
 "prefill":[{"max_total_num_tokens":681280,"max_req_input_len":681274,"page_size":64,"version":"0.5.11","api_key":"` + secret + `"},
            {"max_total_num_tokens":284928,"max_req_input_len":284922,"page_size":64,"version":"0.5.12",
             "internal_states":[{"memory_usage":{"token_capacity":284928}},{"memory_usage":{"token_capacity":284800}}]}],
 "decode":[{"max_total_num_tokens":1310720,"max_req_input_len":1048570,"page_size":64}]}`

const models = `{"object":"list","data":[{"id":"glm","owned_by":"sglang","max_model_len":1048576},{"id":"adapter","max_model_len":32768}]}`

// serve answers GET requests from a table of paths and returns its base URL.
func serve(t *testing.T, answers map[string]string) string {
	t.Helper()
	return start(t, func(w http.ResponseWriter, r *http.Request) {
		body, known := answers[r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, body)
	})
}

func start(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return server.URL
}

func ask(t *testing.T, base string) Facts {
	t.Helper()
	return Ask(t.Context(), http.DefaultClient, base, "")
}

func TestAskSGLang(t *testing.T) {
	f := ask(t, serve(t, map[string]string{"/server_info": single, "/v1/models": models})+"/v1")
	want := Facts{
		Engine:   "sglang",
		Version:  Text{Value: "0.5.11", Source: "GET /server_info version", Basis: Stated},
		Models:   []Model{{"glm", 1048576}, {"adapter", 32768}},
		Context:  Number{Value: 32768, Source: "GET /v1/models max_model_len of adapter", Basis: Stated},
		Pool:     Number{Value: 20480, Source: "GET /server_info max_total_num_tokens", Basis: Stated},
		MaxInput: Number{Value: 20474, Source: "GET /server_info max_req_input_len", Basis: Stated},
		PageSize: Number{Value: 64, Source: "GET /server_info page_size", Basis: Stated},
		Role:     Text{Value: "both", Source: "GET /server_info disaggregation_mode", Basis: Stated},
	}
	if got, want := pretty(t, f), pretty(t, want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if f.ContextOf("glm") != 1048576 || f.ContextOf("other") != 0 {
		t.Errorf("context of glm %d, of another %d", f.ContextOf("glm"), f.ContextOf("other"))
	}
}

func TestMergedAnswerCountsTheSmallestPrefillPool(t *testing.T) {
	f := ask(t, serve(t, map[string]string{"/get_server_info": merged}))
	if b := f.Behind; len(b) != 3 || b[1].Pool.Value != 284800 || b[1].Version.Value != "0.5.12" || b[2].Role.Value != "decode" ||
		b[2].MaxInput.Source != "GET /get_server_info decode[0].max_req_input_len" {
		t.Errorf("of the workers: %+v", b)
	}
	f.Behind = nil
	want := Facts{
		Engine:     "sglang",
		Version:    Text{Value: "0.5.11", Source: "GET /get_server_info prefill[].version", Basis: Stated},
		Pool:       Number{Value: 284800, Source: "GET /get_server_info prefill[].internal_states[].memory_usage.token_capacity", Basis: Stated},
		DecodePool: Number{Value: 1310720, Source: "GET /get_server_info decode[].max_total_num_tokens", Basis: Stated},
		MaxInput:   Number{Value: 284922, Source: "GET /get_server_info prefill[].max_req_input_len", Basis: Stated},
		PageSize:   Number{Value: 64, Source: "GET /get_server_info prefill[].page_size", Basis: Stated},
		Role:       Text{Value: "both", Source: "GET /get_server_info prefill[], decode[]", Basis: Stated},
		Router:     Flag{true, true, "GET /get_server_info prefill[]", Stated},
	}
	if got, want := pretty(t, f), pretty(t, want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFactsHoldNoSecret(t *testing.T) {
	for _, answer := range []string{single, merged} {
		f := ask(t, serve(t, map[string]string{"/server_info": answer}))
		if f.Pool.Value == 0 {
			t.Fatal("no facts at all: the check would be empty")
		}
		if s := fmt.Sprintf("%+v", f) + pretty(t, f); strings.Contains(s, secret) {
			t.Errorf("a key is in %s", s)
		}
	}
}

func TestAskGenericServer(t *testing.T) {
	f := ask(t, serve(t, map[string]string{"/v1/models": models})+"/v1/")
	if f.Engine != "generic" || f.Context.Value != 32768 || len(f.Models) != 2 || f.Pool != (Number{}) {
		t.Errorf("%+v", f)
	}
}

// A server of another make that answers everything is not taken for SGLang.
func TestAnswersWithoutFactsAreNotSGLang(t *testing.T) {
	f := ask(t, serve(t, map[string]string{"/server_info": `{"error":"Unexpected endpoint"}`, "/v1/models": models}))
	if f.Engine != "generic" {
		t.Errorf("engine %q, want generic", f.Engine)
	}
}

func TestHostileAnswersStayUnknown(t *testing.T) {
	for name, body := range map[string]string{
		"html":            "<html>hello",
		"empty":           "",
		"list":            "[1,2,3]",
		"null":            "null",
		"negative":        `{"max_total_num_tokens":-5,"data":[{"id":"","max_model_len":-1}]}`,
		"huge number":     `{"max_total_num_tokens":1e300,"page_size":99999999999999999999}`,
		"wrong types":     `{"max_total_num_tokens":{"a":1},"version":7,"prefill":3,"data":"x"}`,
		"control letters": "{\"data\":[{\"id\":\"a\\u001b[31mb\"}]}",
		"long name":       `{"data":[{"id":"` + strings.Repeat("a", maxWord+1) + `"}]}`,
		"deep":            strings.Repeat("[", 100_000),
		"over a megabyte": `{"data":[{"id":"a"}],"pad":"` + strings.Repeat("a", maxAnswer) + `"}`,
	} {
		f := ask(t, start(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }))
		if pretty(t, f) != pretty(t, Facts{}) {
			t.Errorf("%s: %+v, want nothing", name, f)
		}
	}
}

// The handler returns only when the client has hung up: without a bound the
// test would not end.
func TestEndlessAnswerIsCutOff(t *testing.T) {
	base := start(t, func(w http.ResponseWriter, _ *http.Request) {
		for page := make([]byte, 64<<10); ; {
			if _, err := w.Write(page); err != nil {
				return
			}
		}
	})
	if f := ask(t, base); f.Engine != "" {
		t.Errorf("%+v, want nothing", f)
	}
}

// A server that never answers costs five seconds in all, not for each question.
func TestSilentServerCostsItsPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}
		if f := Ask(t.Context(), client, "http://silent", ""); f.Engine != "" {
			t.Errorf("%+v, want nothing", f)
		}
		if took := time.Since(begun); took != patience {
			t.Errorf("took %v of the fake clock, want %v", took, patience)
		}
	})
}

func TestUnreachableServerStaysUnknown(t *testing.T) {
	for _, base := range []string{"http://127.0.0.1:1", "::bad::", ""} {
		if f := Ask(t.Context(), http.DefaultClient, base, ""); f.Engine != "" {
			t.Errorf("%q: %+v, want nothing", base, f)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f := Ask(ctx, http.DefaultClient, serve(t, map[string]string{"/server_info": single}), ""); f.Engine != "" {
		t.Errorf("%+v after cancellation, want nothing", f)
	}
}

func TestKeyGoesToTheServerAskedAndNoFurther(t *testing.T) {
	var keys, elsewhere []string
	other := start(t, func(_ http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.URL.Path)
	})
	base := start(t, func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Authorization"))
		http.Redirect(w, r, other+r.URL.Path, http.StatusTemporaryRedirect)
	})
	Ask(t.Context(), http.DefaultClient, base, "sk-mine")
	if len(keys) == 0 || len(elsewhere) != 0 {
		t.Fatalf("asked %d times, redirected %v", len(keys), elsewhere)
	}
	for _, k := range keys {
		if k != "Bearer sk-mine" {
			t.Errorf("authorization %q", k)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func pretty(t *testing.T, f Facts) string {
	t.Helper()
	p, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(p)
}
