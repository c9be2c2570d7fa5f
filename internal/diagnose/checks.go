package diagnose

// advised is what is known of a class: what goes wrong, and what to look at.
type advised struct {
	means string
	check []string
}

// advice names what to look at for a class of fault. Flags and fields are those
// of the engines that docs/engines.md and the lab's reports are about.
func advice(class string) (means string, check []string) {
	a, ok := classes[class]
	if !ok {
		a = classes[Other]
	}
	return a.means, a.check
}

// classes holds the lab's faults by name, and what is none of them.
var classes = map[string]advised{
	"stale_reserve": {
		"pages are reserved for a prompt, never written, and read anyway",
		[]string{
			"Compare the smallest KV pool of all roles with the context: SGLang max_total_num_tokens against context_length in /server_info of every prefill and decode node; vLLM kv_cache_size_tokens in /metrics.",
			"SGLang: lower --context-length to the smallest pool (kvcanary preflight computes the number, less what decode keeps free), or raise --max-total-tokens, on both roles.",
			"Look for requests that prefill refused and decode served: status 200, prompt_tokens far below what was sent, finish_reason length.",
		},
	},
	"late_write": {
		"a transfer that was under way when its request was aborted lands in pages that somebody else has by now",
		[]string{
			"Turn off client timeouts and retries at the gateway for a test: without aborts this does not happen.",
			"Disaggregated engines: see whether pages of an aborted request wait for the transfer's acknowledgement before they are freed (SGLang pull 35049 makes it optional; vLLM pull 32255).",
			"vLLM: kv_load_failure_policy has to be fail, and versions before the fix of pull 56104 reassign blocks under transfers.",
		},
	},
	"stale_source": {
		"a faithful copy of the wrong bytes: the source was given to somebody else before or while it was read",
		[]string{
			"Turn off the second tier for a test: SGLang --enable-hierarchical-cache, LMCache's local disk, vLLM's offloading connector, Mooncake's store.",
			"See whether a handle is compared with its source's generation after the copy; a lease that only runs out by the clock is not enough.",
			"A gateway must drop kv_transfer_params that clients send.",
		},
	},
	"early_publish": {
		"a prefix is in the cache before it is computed, or although it never was",
		[]string{
			"Turn off prefix reuse for a test: SGLang --disable-radix-cache, vLLM --no-enable-prefix-caching, llama.cpp cache_prompt false.",
			"See whether blocks of an aborted prefill stay in the cache: abort a long prompt, send it again and look at cached_tokens.",
			"Flush the cache: if answers are right again until the next abort, this is it.",
		},
	},
	"double_owner": {
		"one page is in the tables of two requests",
		[]string{
			"Look for frees in two places on abort, and for an allocator that several threads call without a lock.",
			"Switch on the engine's own check of its memory pool, if it has one; pages in use and pages free must add up to the pool.",
			"Send mixed prompt lengths: uniform ones hide it.",
		},
	},
	"dirty_slot": {
		"a slot or a recurrent state is given to the next request as the last one has left it",
		[]string{
			"llama.cpp: run with --cache-ram 0, and with -np 1; look for slots that are restored without a match.",
			"Hybrid models: see whether the recurrent state is cleared with the attention pages, in vLLM and SGLang by the version's notes on Mamba.",
			"cached_tokens is 0 in such answers and proves nothing.",
		},
	},
	"thin_key": {
		"the cache's key leaves out something that the cached values depend on: an image, an adapter, part of the text",
		[]string{
			"Turn off prefix reuse for a test: SGLang --disable-radix-cache, vLLM --no-enable-prefix-caching.",
			"Send one text with two images and with two adapters: each has to be part of the key with its content, not its name.",
			"vLLM: choose --prefix-caching-hash-algo sha256; set cache_salt for each tenant at the gateway.",
		},
	},
	"shared_prefix": {
		"a prefix that one tenant has sent is served from the cache to another: no wrong text, but it can be guessed at",
		[]string{
			"vLLM: set cache_salt for each tenant at the gateway, and drop what clients send as one.",
			"See that every tier keeps the salt: SGLang with an external store loses it (issue 37160).",
			"To leave out cached_tokens hides the count and not the timing.",
		},
	},
	"id_reuse": {
		"two requests are known by one id inside the engine, and one gets what is meant for the other",
		[]string{
			"Have the gateway replace X-Request-Id, traceparent, rid and request_id by its own.",
			"vLLM: VLLM_DISABLE_REQUEST_ID_RANDOMIZATION must not be set.",
			"SGLang: look at the bootstrap rooms and metadata buffers of requests that were aborted (pull 27374).",
		},
	},
	"row_skew": {
		"results of a batch go to its requests in another order than they were computed in",
		[]string{
			"Run with a batch of one for a test (vLLM --max-num-seqs 1, SGLang --max-running-requests 1, llama.cpp -np 1): alone nothing is mixed up.",
			"Turn off, one at a time, speculative decoding, overlapped scheduling (SGLang --disable-overlap-schedule) and CUDA graphs (--disable-cuda-graph, vLLM --enforce-eager).",
			"Send mixed lengths, grammars and adapters: uniform batches hide it.",
		},
	},
	"stream_desync": {
		"a connection, buffer or parser between client and engine is used again with somebody else's answer in it",
		[]string{
			"Send the same to the engine itself, past every gateway: if it is clean there, this is the gateway's.",
			"Have the gateway close upstream connections whose request was cancelled, and compare the id in an answer with the request's.",
			"See whether tool and reasoning parsers are made for each stream.",
		},
	},
	"answer_cache": {
		"a response cache answers one tenant with what another was told",
		[]string{
			"Turn off the gateway's response cache, exact and semantic, for a test.",
			"Its key needs the tenant as a hard part, not inside an embedding.",
			"Equal completion ids or an answer at once for a prompt of a thousand tokens give it away.",
		},
	},
	"auto_truncate": {
		"prompts that are too long are cut, and the answer does not say so",
		[]string{
			"SGLang: take away --allow-auto-truncate. vLLM: drop truncate_prompt_tokens at the gateway. llama.cpp: --no-context-shift.",
			"Ollama: raise OLLAMA_CONTEXT_LENGTH or num_ctx; its OpenAI API cannot refuse, the native one can with truncate false.",
		},
	},
	Other: {
		"none of the faults that the lab has looks much like this",
		[]string{
			"Run all protocols with two tenants, so that there is more to compare; keep the run directory.",
			"Send the same to the engine itself, past every gateway, and then with prefix reuse off: which of them it takes says where to look.",
		},
	},
}
