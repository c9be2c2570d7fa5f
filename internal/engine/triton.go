package engine

import "context"

// triton is Triton with the TensorRT-LLM backend.
var triton = Engine{Name: "triton", ask: askTriton, names: []string{"tritonserver"}}

func askTriton(ctx context.Context, a *asker, f *Facts) bool {
	const name = "nv_trt_llm_kv_cache_block_metrics"
	var blocks, page Number
	if !a.metrics(ctx).each(name, func(v float64, label func(string) string) {
		switch label("kv_cache_block_type") {
		case "max":
			blocks.least(countOf(v), name)
		case "tokens_per":
			page.least(countOf(v), name)
		}
	}) {
		return false
	}
	f.PageSize.least(count(page.Value), "GET /metrics "+name+"{tokens_per}")
	f.Pool.leastBy(times(count(blocks.Value), count(page.Value)), "GET /metrics "+name+" max * tokens_per", Inferred)
	var server struct {
		Version word `json:"version"`
	}
	if a.get(ctx, "/v2", &server) {
		f.Version.set(string(server.Version), "GET /v2 version")
	}
	return true
}
