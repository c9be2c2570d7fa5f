package preflight

import "strings"

var prefixCacheApart = Rule{
	ID: "prefix_cache_apart", Severity: Warning, AISVS: tenancy,
	Links: []string{"https://github.com/vllm-project/vllm/pull/17045", "https://github.com/vllm-project/vllm/pull/53347", "https://github.com/sgl-project/sglang/issues/37160"},
	Why:   "a prefix cache that customers share tells one what another has sent",
	each: func(w *Worker, d *Deployment) outcome {
		c := w.Facts.PrefixCache
		switch {
		case d.Alone:
			return notApplicable("all requests are one customer's")
		case d.Salted:
			return pass("a gateway keeps customers apart (--salted)")
		case c.Is(false):
			return pass("there is no prefix cache (%s)", c.Source)
		}
		fix := "set cache_salt (SGLang: extra_key) for each customer at the gateway and let no client choose it; kvcanary run prefix shows whether it works"
		if !c.Known {
			return unknown(fix, "whether there is a prefix cache is not known")
		}
		return unknown(fix, "there is a prefix cache (%s); whether customers are kept apart in it is the gateway's to say", c.Source)
	},
}

var prefixHash = Rule{
	ID: "prefix_hash_strong", Severity: Warning, Engines: []string{"vllm"},
	Links: []string{"https://github.com/vllm-project/vllm/pull/12621", "https://github.com/vllm-project/vllm/pull/15297"},
	Why:   "with a weak hash two prompts can be made to share pages",
	each: func(w *Worker, _ *Deployment) outcome {
		h := w.Facts.HashAlgorithm
		switch {
		case w.Facts.PrefixCache.Is(false):
			return notApplicable("there is no prefix cache")
		case h.Value == "":
			return unknown("set --prefix-caching-hash-algo sha256", "the prefix cache's hash: not known")
		case !strings.HasPrefix(h.Value, "sha256"):
			return fail("set --prefix-caching-hash-algo sha256", "the prefix cache's hash is %s (%s)", h.Value, h.Source)
		}
		return pass("the prefix cache's hash is %s (%s)", h.Value, h.Source)
	},
}

var randomIDs = Rule{
	ID: "request_ids_random", Severity: Warning, Engines: []string{"vllm"},
	Links: []string{"https://github.com/vllm-project/vllm/pull/27987", "https://github.com/vllm-project/vllm/issues/10583"},
	Why:   "a request id that a client chooses finds what is late for the one before it",
	each: func(w *Worker, _ *Deployment) outcome {
		return wantFlag(w.Facts.RandomIDs, true, "randomisation of request ids", "leave VLLM_DISABLE_REQUEST_ID_RANDOMIZATION out, and overwrite X-Request-Id at the gateway")
	},
}

var slotsApart = Rule{
	ID: "slots_apart", Severity: Warning, Engines: []string{"llamacpp"},
	Links: []string{"https://github.com/ggml-org/llama.cpp/issues/25992", "https://github.com/lemonade-sdk/lemonade/issues/3276"},
	Why:   "slots that share one buffer have answered with each other's text",
	each: func(w *Worker, _ *Deployment) outcome {
		if s := w.Facts.Slots; s.Value == 1 {
			return pass("there is one slot (%s)", s.Source)
		}
		return wantFlag(w.Facts.Unified, false, "one buffer for all slots", "set --no-kv-unified, or --parallel 1")
	},
}
