package engine

import (
	"context"
	"strings"
)

// vllmPool is the sample of vLLM's /metrics whose labels describe the KV
// cache. There is one for every data-parallel engine.
const vllmPool = "vllm:cache_config_info{"

// askVLLM reads the labels of /metrics. kv_cache_size_tokens, which newer
// releases have, also holds for models whose layers differ in what they keep;
// blocks times block size does not. llm-d's simulator has the latter.
func askVLLM(ctx context.Context, a *asker, f *Facts) bool {
	found := false
	a.lines(ctx, "/metrics", func(line string) {
		labels, ok := strings.CutPrefix(line, vllmPool)
		if !ok {
			return
		}
		found = true
		block := labelCount(labels, "block_size")
		f.PageSize.least(block, "GET /metrics vllm:cache_config_info block_size")
		if all := labelCount(labels, "kv_cache_size_tokens"); all > 0 {
			f.Pool.least(all, "GET /metrics vllm:cache_config_info kv_cache_size_tokens")
		} else if n := labelCount(labels, "num_gpu_blocks"); block > 0 && n > 0 && n <= maxCount/block {
			f.Pool.least(block*n, "GET /metrics vllm:cache_config_info num_gpu_blocks * block_size")
		}
	})
	if !found {
		return false
	}
	var version struct {
		Version word `json:"version"`
	}
	if a.get(ctx, "/version", &version) && version.Version != "" {
		f.Version = Text{string(version.Version), "GET /version"}
	}
	f.addListed(ctx, a)
	return true
}

// labelCount is the number that a label of a Prometheus sample carries, 0 if
// it carries none.
func labelCount(labels, name string) count {
	for _, before := range []string{"", ","} {
		i := strings.Index(labels, before+name+`="`)
		if i < 0 || before == "" && i != 0 {
			continue
		}
		rest := labels[i+len(before)+len(name)+2:]
		value, _, _ := strings.Cut(rest, `"`)
		var c count
		_ = c.UnmarshalJSON([]byte(value)) // never fails
		return c
	}
	return 0
}
