package engine

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// FuzzAsk gives every question the same outside bytes: whatever they are, the
// facts stay within their bounds.
func FuzzAsk(f *testing.F) {
	for _, seed := range []string{single, merged, models, "", "{}", `{"data":[{}]}`, `{"prefill":[null]}`,
		`vllm:cache_config_info{block_size="16",num_gpu_blocks="64"} 1`, `{"default_generation_settings":{"n_ctx":1},"total_slots":1}`, `{"models":[{"name":"a","context_length":-1}]}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		client := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body))}, nil
		})}
		facts := Ask(t.Context(), client, "http://x", "")
		for _, n := range []Number{facts.Context, facts.Pool, facts.DecodePool, facts.MaxInput, facts.PageSize} {
			if n.Value < 0 || n.Value > maxCount || (n.Value == 0) != (n.Source == "") {
				t.Errorf("number %+v", n)
			}
		}
		if len(facts.Models) > maxModels || len(facts.Version.Value) > maxWord {
			t.Errorf("%d models, version of %d bytes", len(facts.Models), len(facts.Version.Value))
		}
	})
}
