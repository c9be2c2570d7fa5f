package engine

import (
	"context"
	"strings"
)

// trtllm is trtllm-serve.
var trtllm = Engine{
	Name: "trtllm", ask: askTRTLLM, line: trtllmLine,
	names: []string{"trtllm-serve", "tensorrt-llm/release"},
	flags: map[string]setting{
		"max-seq-len":   number(func(f *Facts) *Number { return &f.Context }),
		"max-input-len": number(func(f *Facts) *Number { return &f.MaxInput }),
	},
}

func askTRTLLM(ctx context.Context, a *asker, f *Facts) bool {
	const blocks, size = "trtllm_kv_cache_max_blocks", "trtllm_kv_cache_tokens_per_block"
	m := a.metrics(ctx)
	page := m.least(size)
	pool := times(m.least(blocks), page)
	if pool == 0 {
		return false
	}
	f.PageSize.least(page, "GET /metrics "+size)
	f.Pool.leastBy(pool, "GET /metrics "+blocks+" * tokens_per_block", Inferred)
	var version struct {
		Version word `json:"version"`
	}
	if a.get(ctx, "/version", &version) {
		f.Version.set(string(version.Version), "GET /version")
	}
	f.addListed(ctx, a)
	return true
}

// trtllmLine reads "[MemUsageChange] Allocated 26.91 GiB for max tokens in
// paged KV cache (220480)." and "max_seq_len=131072, ...". The first line of the
// former may be of a trial allocation, so the last one counts.
func trtllmLine(f *Facts, line string) {
	const at = "startup log "
	if n := after(line, "for max tokens in paged KV cache ("); n > 0 {
		f.Pool = Number{Value: int(n), Source: at + "max tokens in paged KV cache", Basis: Stated}
	}
	if strings.Contains(line, "TRT-LLM") || strings.Contains(line, "TensorRT-LLM") {
		f.Context.least(after(line, "max_seq_len="), at+"max_seq_len")
		f.PageSize.least(after(line, "Number of tokens per block: "), at+"Number of tokens per block")
		f.Version.set(strings.TrimSuffix(wordAfter(line, "TensorRT-LLM version: "), "."), at+"TensorRT-LLM version")
	}
}
