package engine

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

const listed = `{"object":"list","data":[{"id":"m:latest","owned_by":"x"},{"id":"n","owned_by":"x"}]}`

func wantFacts(t *testing.T, answers map[string]string, want Facts) {
	t.Helper()
	if got, want := pretty(t, ask(t, serve(t, answers)+"/v1")), pretty(t, want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

var never = Flag{true, false, refuses, Inferred}

func TestAskVLLM(t *testing.T) {
	const blocks = "GET /metrics vllm:cache_config_info num_gpu_blocks * block_size"
	head := "# TYPE vllm:cache_config_info gauge\nother 1\n"
	for name, c := range map[string]struct {
		metrics string
		pool    Number
		other   Flag
	}{
		"blocks":          {`vllm:cache_config_info{block_size="16",num_gpu_blocks="64"} 1`, Number{Value: 1024, Source: blocks, Basis: Inferred}, Flag{}},
		"several engines": {`vllm:cache_config_info{engine="0",block_size="16",num_gpu_blocks="64"} 1` + "\n" + `vllm:cache_config_info{engine="1",block_size="16",num_gpu_blocks="60"} 1`, Number{Value: 960, Source: blocks, Basis: Inferred}, Flag{}},
		"tokens":          {`vllm:cache_config_info{num_gpu_blocks="64",num_gpu_blocks_override="None",block_size="16",kv_cache_size_tokens="1000"} 1`, Number{Value: 1000, Source: "GET /metrics vllm:cache_config_info kv_cache_size_tokens", Basis: Stated}, Flag{true, false, "GET /metrics vllm:cache_config_info num_gpu_blocks_override", Stated}},
		"not yet":         {`vllm:cache_config_info{block_size="16",num_gpu_blocks="None"} 1`, Number{}, Flag{}},
		"no number":       {`vllm:cache_config_info{block_size="16",num_gpu_blocks="999999999999"} 1`, Number{}, Flag{}},
	} {
		t.Run(name, func(t *testing.T) {
			wantFacts(t, map[string]string{"/metrics": head + c.metrics, "/version": `{"version":"0.19.1"}`, "/v1/models": models}, Facts{
				Engine:       "vllm",
				Version:      Text{Value: "0.19.1", Source: "GET /version", Basis: Stated},
				Models:       []Model{{"glm", 1048576}, {"adapter", 32768}},
				Context:      Number{Value: 32768, Source: "GET /v1/models max_model_len of adapter", Basis: Stated},
				Pool:         c.pool,
				PageSize:     Number{Value: 16, Source: "GET /metrics vllm:cache_config_info block_size", Basis: Stated},
				PoolOverride: c.other, Truncates: never,
			})
		})
	}
}

func TestAskLlamaCpp(t *testing.T) {
	props := `{"default_generation_settings":{"n_ctx":2048,"params":{"n_predict":-1}},"total_slots":2,"build_info":"b10434-7e4c0a968"}`
	wantFacts(t, map[string]string{"/props": props, "/v1/models": listed}, Facts{
		Engine:  "llamacpp",
		Version: Text{Value: "b10434-7e4c0a968", Source: "GET /props build_info", Basis: Stated},
		Models:  []Model{{"m:latest", 2048}, {"n", 2048}},
		Context: Number{Value: 2048, Source: "GET /props default_generation_settings.n_ctx", Basis: Stated},
		Pool:    Number{Value: 2048, Source: "one slot's window, which the buffer holds: GET /props default_generation_settings.n_ctx", Basis: Inferred},
		Slots:   Number{Value: 2, Source: "GET /props total_slots", Basis: Stated}, Truncates: never,
	})
}

// The window of a model that is not loaded is not known: the one that the
// model was trained with says nothing about the one that it will be given.
func TestAskOllama(t *testing.T) {
	cuts := Flag{true, true, "Ollama's default, which only a request of its own API can change", Inferred}
	shifts := Flag{true, true, "Ollama's default", Inferred}
	wantFacts(t, map[string]string{
		"/api/ps": `{"models":[{"name":"m:latest","model":"m:latest","context_length":2048}]}`, "/api/version": `{"version":"0.32.14"}`, "/v1/models": listed,
	}, Facts{
		Engine:    "ollama",
		Version:   Text{Value: "0.32.14", Source: "GET /api/version", Basis: Stated},
		Models:    []Model{{"m:latest", 2048}, {"n", 0}, {"m", 2048}},
		Context:   Number{Value: 2048, Source: "GET /api/ps context_length", Basis: Stated},
		Pool:      Number{Value: 2048, Source: "one request's window, which the runner's buffer holds: GET /api/ps context_length", Basis: Inferred},
		Truncates: cuts, ContextShift: shifts,
	})
	wantFacts(t, map[string]string{"/api/ps": `{"models":[]}`, "/v1/models": listed}, Facts{
		Engine: "ollama",
		Models: []Model{{"m:latest", 0}, {"n", 0}, {"m", 0}}, Truncates: cuts, ContextShift: shifts,
	})
}

// Answers of other makes at the same places are not taken for these engines.
func TestAnswersOfOthers(t *testing.T) {
	for path, body := range map[string]string{
		"/metrics": "llamacpp:requests_processing 0\nnode:vllm:cache_config_info{block_size=\"16\"} 1\n",
		"/props":   `{"error":"unknown path"}`,
		"/api/ps":  `{"error":"unknown path"}`,
	} {
		if f := ask(t, serve(t, map[string]string{path: body, "/v1/models": models})); f.Engine != "generic" {
			t.Errorf("%s %s: engine %q", path, body, f.Engine)
		}
	}
	everything := start(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x=1\n", 1000)) })
	if f := ask(t, everything); f.Engine != "" {
		t.Errorf("%+v", f)
	}
}
