package engine

import "context"

// dynamo is a frontend: the engines behind it are vLLM, SGLang or TensorRT-LLM.
var dynamo = Engine{
	Name: "dynamo", ask: askDynamo,
	names: []string{"dynamo", "dynamo.frontend", "dynamo.vllm", "dynamo.sglang", "dynamo.trtllm"},
	flags: map[string]setting{
		"max-model-len":       number(func(f *Facts) *Number { return &f.Context }),
		"context-length":      number(func(f *Facts) *Number { return &f.Context }),
		"max-total-tokens":    atMost(func(f *Facts) *Number { return &f.Pool }),
		"block-size":          number(func(f *Facts) *Number { return &f.PageSize }),
		"page-size":           number(func(f *Facts) *Number { return &f.PageSize }),
		"disaggregation-mode": sglangRole,
		"is-prefill-worker":   func(f *Facts, _, source string) { f.Role.set("prefill", source) },
		"is-decode-worker":    func(f *Facts, _, source string) { f.Role.set("decode", source) },
		"kv-transfer-config":  vllmTransfer,
	},
}

// askDynamo reads the frontend's gauges. They are of one worker each; which
// one, and of which role, is not said.
func askDynamo(ctx context.Context, a *asker, f *Facts) bool {
	const blocks, size, window = "dynamo_frontend_model_total_kv_blocks", "dynamo_frontend_model_kv_cache_block_size", "dynamo_frontend_model_context_length"
	m := a.metrics(ctx)
	page := m.least(size)
	f.PageSize.least(page, "GET /metrics "+size)
	f.Pool.leastBy(times(m.least(blocks), page), "GET /metrics "+blocks+" * kv_cache_block_size", Inferred)
	f.Context.least(m.least(window), "GET /metrics "+window)
	if f.Pool.Value == 0 && f.Context.Value == 0 {
		*f = Facts{Engine: f.Engine}
		return false
	}
	f.Router.set(true, "GET /metrics dynamo_frontend_*")
	f.addListed(ctx, a)
	return true
}
