package engine

import (
	"context"
	"encoding/json"
	"strings"
)

var vllm = Engine{
	Name: "vllm", ask: askVLLM, line: vllmLine,
	names: []string{"vllm", "vllm/vllm-openai"},
	flags: map[string]setting{
		"max-model-len":            number(func(f *Facts) *Number { return &f.Context }),
		"block-size":               number(func(f *Facts) *Number { return &f.PageSize }),
		"num-gpu-blocks-override":  func(f *Facts, _, source string) { f.PoolOverride.set(true, source) },
		"enable-prefix-caching":    on(func(f *Facts) *Flag { return &f.PrefixCache }),
		"no-enable-prefix-caching": off(func(f *Facts) *Flag { return &f.PrefixCache }),
		"prefix-caching-hash-algo": text(func(f *Facts) *Text { return &f.HashAlgorithm }),
		"kv-transfer-config":       vllmTransfer,
		"kv-offloading-size":       tier("offload"),
		"kv-offloading-backend":    tier("offload"),
	},
	environ: map[string]setting{
		"VLLM_DISABLE_REQUEST_ID_RANDOMIZATION": off(func(f *Facts) *Flag { return &f.RandomIDs }),
		"VLLM_SERVER_DEV_MODE":                  on(func(f *Facts) *Flag { return &f.DevMode }),
	},
	defaults: vllmDefaults,
}

// vllmPool is the sample of vLLM's /metrics whose labels describe the KV
// cache. There is one for every data-parallel engine.
const vllmPool = "vllm:cache_config_info"

// askVLLM reads the labels of /metrics. kv_cache_size_tokens, which newer
// releases have, also holds for models whose layers differ in what they keep;
// blocks times block size does not. llm-d's simulator has the latter.
func askVLLM(ctx context.Context, a *asker, f *Facts) bool {
	const from = "GET /metrics " + vllmPool + " "
	found := a.metrics(ctx).each(vllmPool, func(_ float64, label func(string) string) {
		block := parseCount(label("block_size"))
		f.PageSize.least(block, from+"block_size")
		if all := parseCount(label("kv_cache_size_tokens")); all > 0 {
			f.Pool.least(all, from+"kv_cache_size_tokens")
		} else {
			f.Pool.leastBy(times(parseCount(label("num_gpu_blocks")), block), from+"num_gpu_blocks * block_size", Inferred)
		}
		if parseCount(label("num_gpu_blocks_override")) > 0 {
			worst(&f.PoolOverride, onOff{true, true}, true, from+"num_gpu_blocks_override")
		} else if label("num_gpu_blocks_override") != "" {
			worst(&f.PoolOverride, onOff{true, false}, true, from+"num_gpu_blocks_override")
		}
		worst(&f.PrefixCache, parseOnOff(label("enable_prefix_caching")), true, from+"enable_prefix_caching")
		f.HashAlgorithm.set(label("prefix_caching_hash_algo"), from+"prefix_caching_hash_algo")
	})
	if !found {
		return false
	}
	var version struct {
		Version word `json:"version"`
	}
	if a.get(ctx, "/version", &version) {
		f.Version.set(string(version.Version), "GET /version")
	}
	f.Truncates.orDefault(false, refuses)
	f.addListed(ctx, a)
	return true
}

// vllmTransfer reads the JSON of --kv-transfer-config.
func vllmTransfer(f *Facts, value, source string) {
	var c struct {
		Connector word `json:"kv_connector"`
		Role      word `json:"kv_role"`
		Failure   word `json:"kv_load_failure_policy"`
	}
	if json.Unmarshal([]byte(value), &c) != nil {
		return
	}
	f.Transfer.set(string(c.Connector), source+" kv_connector")
	f.LoadFailure.set(string(c.Failure), source+" kv_load_failure_policy")
	roles := map[word]string{"kv_producer": "prefill", "kv_consumer": "decode", "kv_both": "both"}
	f.Role.set(roles[c.Role], source+" kv_role")
	for name, tier := range map[string]string{"LMCache": "lmcache", "Mooncake": "mooncake", "Offload": "offload"} {
		if strings.Contains(string(c.Connector), name) {
			f.addTier(tier, true, source+" kv_connector")
		}
	}
}

// vllmDefaults are those of the V1 engine.
func vllmDefaults(f *Facts) {
	const by = "vLLM's default"
	f.Role.orDefault("both", by)
	f.PrefixCache.orDefault(true, by)
	f.RandomIDs.orDefault(true, by)
	f.DevMode.orDefault(false, by)
	f.Truncates.orDefault(false, refuses)
	f.PoolOverride.orDefault(false, by)
	f.Offload.orDefault("none", by)
}

// vllmLine reads "GPU KV cache size: 411,904 tokens" and "Maximum concurrency
// for 1,048,576 tokens per request: 0.39x", which newer releases log as one
// line, and the older "# GPU blocks: 573".
func vllmLine(f *Facts, line string) {
	const at = "startup log "
	f.Pool.least(after(line, "GPU KV cache size: "), at+"GPU KV cache size")
	f.Context.least(after(line, "Maximum concurrency for "), at+"Maximum concurrency")
	if v := wordAfter(line, "API server version "); v != "" {
		f.Version.set(v, at+"API server version")
	}
	if v := wordAfter(line, "LLM engine (v"); v != "" {
		f.Version.set(strings.TrimSuffix(v, ")"), at+"LLM engine")
	}
	// V0: the block size is 16 unless it is said to be another.
	if n := after(line, "# GPU blocks: "); n > 0 {
		size, by := count(f.PageSize.Value), "# GPU blocks * block_size"
		if size == 0 {
			size, by = 16, "# GPU blocks * 16, the default"
		}
		f.Pool.leastBy(times(n, size), at+by, Inferred)
	}
}
