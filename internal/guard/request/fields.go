package request

import "slices"

// Action is what is done about a field.
type Action uint8

// Strip takes a field out, whatever its value: a route, an identity, a hint.
// Refuse refuses the request, since the field is about what is asked and an
// answer without it would be an answer to something else.
const (
	Strip Action = iota + 1
	Refuse
)

// Field is a row of the table of what no client may set.
type Field struct {
	Path     string   // from the top of the body; [] stands for any item of a list
	Dialects []string // in which it is acted on; nil for all
	Do       Action
	Unless   []string // JSON values that pass, {} for any object; null always passes
	Stored   bool     // it names what the server keeps, and passes where the policy allows that
	Why      string
	Source   string
}

var (
	responsesOnly = []string{"responses"}
	ollamaOnly    = []string{"ollama"}
	chats         = []string{"openai", "anthropic", "ollama"}
	hosted        = []string{"openai", "responses", "anthropic"}
)

// Paths are the fields of the table, in its order: what a policy may allow.
func Paths() []string {
	var paths []string
	for _, f := range Table {
		if !slices.Contains(paths, f.Path) {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// Table is what the guard does about the fields that reach across requests or
// make an engine cut a prompt. What is not in it passes, unless the policy
// refuses the unknown.
var Table = []Field{
	// Where an engine takes the keys and values of a prompt from.
	{Path: "kv_transfer_params", Do: Strip, Why: "names KV blocks of another worker, which are read without asking whose they are", Source: "vllm-project/vllm#52234"},
	{Path: "ec_transfer_params", Do: Strip, Why: "names encoder outputs of another worker", Source: "vLLM vllm/entrypoints/openai/chat_completion/protocol.py"},
	{Path: "vllm_xargs", Do: Strip, Why: "becomes the engine's extra arguments, kv_transfer_params among them", Source: "vLLM vllm/entrypoints/openai/chat_completion/protocol.py"},
	{Path: "extra_args", Do: Strip, Why: "becomes the engine's extra arguments", Source: "vLLM vllm/sampling_params.py"},
	{Path: "extra_body", Do: Strip, Why: "gateways merge it into the body, past every check of names", Source: "docs.litellm.ai"},
	{Path: "bootstrap_host", Do: Strip, Why: "chooses the prefill worker whose KV is read", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "bootstrap_port", Do: Strip, Why: "chooses the prefill worker whose KV is read", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "bootstrap_room", Do: Strip, Why: "names the handoff whose KV is read", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "disaggregated_params", Do: Strip, Why: "names another request's context phase", Source: "TensorRT-LLM tensorrt_llm/serve/openai_protocol.py"},
	{Path: "migration_request", Do: Strip, Why: "names another worker's blocks and session", Source: "LMDeploy lmdeploy/serve/openai/protocol.py"},
	{Path: "with_cache", Do: Strip, Why: "keeps KV blocks for another worker to read", Source: "LMDeploy lmdeploy/serve/openai/protocol.py"},
	{Path: "preserve_cache", Do: Strip, Why: "keeps KV blocks after the request", Source: "LMDeploy lmdeploy/serve/openai/protocol.py"},
	{Path: "nvext", Do: Strip, Why: "chooses worker, tokens and cache of NVIDIA Dynamo", Source: "Dynamo lib/llm/src/protocols/openai/nvext.rs"},
	{Path: "api_base", Do: Strip, Why: "chooses the server that a gateway behind asks", Source: "LiteLLM proxy, client-side credentials"},
	{Path: "base_url", Do: Strip, Why: "chooses the server that a gateway behind asks", Source: "LiteLLM proxy, client-side credentials"},
	{Path: "api_key", Do: Strip, Why: "chooses the key with which a gateway behind asks", Source: "LiteLLM proxy, client-side credentials"},
	{Path: "user_config", Do: Strip, Why: "configures a gateway behind", Source: "LiteLLM proxy"},
	{Path: "extra_headers", Do: Strip, Why: "gateways send them on as headers, past every check of these", Source: "docs.litellm.ai"},
	{Path: "default_headers", Do: Strip, Why: "gateways send them on as headers, past every check of these", Source: "docs.litellm.ai"},
	{Path: "headers", Do: Strip, Why: "gateways send them on as headers, past every check of these", Source: "docs.litellm.ai"},
	{Path: "extra_query", Do: Strip, Why: "gateways put it into the address that they ask", Source: "docs.litellm.ai"},
	{Path: "custom_llm_provider", Do: Strip, Why: "chooses the server that a gateway behind asks", Source: "LiteLLM proxy"},
	{Path: "litellm_credential_name", Do: Strip, Why: "chooses the key with which a gateway behind asks", Source: "LiteLLM proxy"},
	{Path: "litellm_metadata", Do: Strip, Why: "routes and configures a gateway behind", Source: "LiteLLM proxy"},
	{Path: "tags", Do: Strip, Why: "routes to servers that a gateway behind keeps for others", Source: "LiteLLM proxy, tag based routing"},
	{Path: "model_list", Do: Strip, Why: "names models to ask, whose limits were not checked", Source: "LiteLLM proxy"},
	{Path: "models", Do: Strip, Why: "names models to fall back to, whose limits were not checked", Source: "OpenRouter API reference"},
	{Path: "fallbacks", Do: Strip, Why: "names models to fall back to, whose limits were not checked", Source: "LiteLLM proxy, reliability"},
	{Path: "context_window_fallbacks", Do: Strip, Why: "names models to fall back to, whose limits were not checked", Source: "LiteLLM proxy, reliability"},

	// Who a request is, and which worker, slot or session serves it.
	{Path: "rid", Do: Strip, Why: "two requests of one id share state", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "request_id", Do: Strip, Why: "two requests of one id share state", Source: "vLLM vllm/entrypoints/openai/chat_completion/protocol.py"},
	{Path: "id_slot", Do: Strip, Why: "chooses the slot, and with it whose prompt is in it", Source: "llama.cpp tools/server/README.md"},
	{Path: "slot_id", Do: Strip, Why: "chooses the slot, and with it whose prompt is in it", Source: "llama.cpp, older name of id_slot"},
	{Path: "session_id", Do: Strip, Why: "goes on with a session that may be another's", Source: "SGLang, LMDeploy: serve/openai/protocol.py"},
	{Path: "session_params", Do: Strip, Why: "goes on with a session that may be another's", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "conversation_params", Do: Strip, Why: "routes to the worker of a conversation that may be another's", Source: "TensorRT-LLM tensorrt_llm/serve/openai_protocol.py"},
	{Path: "agent_hierarchy", Do: Strip, Why: "has the request scheduled with others", Source: "TensorRT-LLM tensorrt_llm/scheduling_params.py"},
	{Path: "litellm_session_id", Do: Strip, Why: "joins the request with others", Source: "LiteLLM proxy"},
	{Path: "litellm_trace_id", Do: Strip, Why: "joins the request with others", Source: "LiteLLM proxy; BerriAI/litellm#40124"},
	{Path: "litellm_call_id", Do: Strip, Why: "two requests of one id share state", Source: "LiteLLM proxy"},
	{Path: "routed_dp_rank", Do: Strip, Why: "chooses the worker", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "disagg_prefill_dp_rank", Do: Strip, Why: "chooses the worker whose KV is read", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "data_parallel_rank", Do: Strip, Why: "chooses the worker", Source: "SGLang, vLLM: entrypoints"},
	{Path: "priority", Do: Strip, Why: "lets a client go before others and have them preempted", Source: "vLLM, SGLang, TensorRT-LLM"},
	{Path: "custom_labels", Do: Strip, Why: "writes into the operator's metrics", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},

	// Whose prefixes are shared.
	{Path: "cache_salt", Do: Strip, Why: "chooses whose cached prefixes are used", Source: "vLLM, SGLang, TensorRT-LLM"},
	{Path: "extra_key", Do: Strip, Why: "chooses whose cached prefixes are used", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "prompt_cache_key", Do: Strip, Why: "chooses whose cached prefixes are used", Source: "OpenAI API reference, chat and responses"},
	{Path: "prompt_cache_retention", Do: Strip, Why: "keeps a prefix for longer than the operator has it", Source: "OpenAI API reference"},
	{Path: "prompt_cache_options", Do: Strip, Why: "chooses which cached prefixes are used and kept", Source: "OpenAI API reference"},
	{Path: "cache", Do: Strip, Why: "chooses whose cached answers are used", Source: "LiteLLM proxy, caching"},
	{Path: "caching", Do: Strip, Why: "chooses whose cached answers are used", Source: "LiteLLM proxy, caching"},
	{Path: "cache_prompt", Do: Strip, Why: "reuses what the slot's last request left", Source: "llama.cpp tools/server/README.md"},
	{Path: "n_cache_reuse", Do: Strip, Why: "reuses chunks that the slot's last request left", Source: "llama.cpp tools/server/README.md"},
	{Path: "ngram_corpus_id", Do: Strip, Why: "drafts from a corpus that may be another's", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "messages[].content[].uuid", Dialects: chats, Do: Strip, Why: "names an image in the engine's cache, which may be another's", Source: "vLLM documentation, multimodal inputs: cached inputs by UUID"},
	{Path: "input[].content[].uuid", Dialects: responsesOnly, Do: Strip, Why: "names an image in the engine's cache, which may be another's", Source: "vLLM documentation, multimodal inputs: cached inputs by UUID"},
	{Path: "messages[].content[].image_url.content_hash", Dialects: chats, Do: Strip, Why: "names an image in the engine's cache, which may be another's", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "input[].content[].image_url.content_hash", Dialects: responsesOnly, Do: Strip, Why: "names an image in the engine's cache, which may be another's", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},

	// What cuts a prompt without saying so.
	{Path: "truncate_prompt_tokens", Do: Refuse, Why: "cuts the prompt", Source: "vLLM, TensorRT-LLM: serve protocols"},
	{Path: "truncation_side", Do: Refuse, Why: "cuts the prompt", Source: "vLLM vllm/entrypoints/openai/chat_completion/protocol.py"},
	{Path: "truncate", Do: Refuse, Unless: []string{"false"}, Why: "cuts the prompt, or drops its first messages", Source: "Ollama api/types.go; TGI router/src/lib.rs"},
	{Path: "shift", Do: Refuse, Unless: []string{"false"}, Why: "drops a part of the prompt when the window is full", Source: "Ollama api/types.go"},
	{Path: "context_shift", Do: Refuse, Unless: []string{"false"}, Why: "drops a part of the prompt when the window is full", Source: "llama.cpp tools/server/README.md"},
	{Path: "truncation", Do: Refuse, Unless: []string{`"disabled"`}, Why: "drops items of the prompt", Source: "OpenAI API reference, responses"},
	{Path: "transforms", Do: Refuse, Unless: []string{"[]"}, Why: "compresses the middle of the prompt", Source: "OpenRouter documentation, message transforms"},
	{Path: "context_management", Do: Refuse, Unless: []string{"[]"}, Why: "takes parts of the prompt out", Source: "Anthropic and OpenAI API references"},
	{Path: "plugins", Do: Refuse, Unless: []string{"[]"}, Why: "compresses the prompt, or adds to it", Source: "OpenRouter documentation, plugins"},
	{Path: "prompt_truncation", Do: Refuse, Unless: []string{`"OFF"`}, Why: "drops parts of the prompt", Source: "Cohere API reference, chat"},
	{Path: "truncation_length", Do: Refuse, Why: "cuts the prompt", Source: "text-generation-webui, OpenAI API"},
	{Path: "max_context_length", Do: Refuse, Why: "cuts the prompt", Source: "KoboldCpp API"},
	{Path: "context_overflow_policy", Do: Refuse, Why: "cuts the prompt", Source: "LM Studio, contextOverflowPolicy"},
	{Path: "n_keep", Do: Strip, Why: "says what is kept when the prompt is cut", Source: "llama.cpp tools/server/README.md"},
	{Path: "n_discard", Do: Strip, Why: "says what is dropped when the prompt is cut", Source: "llama.cpp tools/server/README.md"},
	{Path: "options.num_ctx", Dialects: ollamaOnly, Do: Strip, Why: "loads the model anew with another window, for everybody", Source: "Ollama api/types.go"},
	{Path: "options.num_keep", Dialects: ollamaOnly, Do: Strip, Why: "says what is kept when the prompt is cut", Source: "Ollama api/types.go"},
	{Path: "options.num_batch", Dialects: ollamaOnly, Do: Strip, Why: "loads the model anew, for everybody", Source: "Ollama api/types.go"},
	{Path: "options.num_gpu", Dialects: ollamaOnly, Do: Strip, Why: "loads the model anew, for everybody", Source: "Ollama api/types.go"},
	{Path: "options.main_gpu", Dialects: ollamaOnly, Do: Strip, Why: "loads the model anew, for everybody", Source: "Ollama api/types.go"},
	{Path: "options.num_thread", Dialects: ollamaOnly, Do: Strip, Why: "loads the model anew, for everybody", Source: "Ollama api/types.go"},
	{Path: "options.use_mmap", Dialects: ollamaOnly, Do: Strip, Why: "loads the model anew, for everybody", Source: "Ollama api/types.go"},
	{Path: "options.draft_num_predict", Dialects: ollamaOnly, Do: Strip, Why: "loads the model anew, for everybody", Source: "Ollama api/types.go"},
	{Path: "options.numa", Dialects: ollamaOnly, Do: Strip, Why: "loads the model anew, for everybody", Source: "Ollama, older api/types.go"},
	{Path: "options.low_vram", Dialects: ollamaOnly, Do: Strip, Why: "loads the model anew, for everybody", Source: "Ollama, older api/types.go"},
	{Path: "options.f16_kv", Dialects: ollamaOnly, Do: Strip, Why: "loads the model anew, for everybody", Source: "Ollama, older api/types.go"},
	{Path: "options.logits_all", Dialects: ollamaOnly, Do: Strip, Why: "loads the model anew, for everybody", Source: "Ollama, older api/types.go"},
	{Path: "options.vocab_only", Dialects: ollamaOnly, Do: Strip, Why: "loads the model anew, for everybody", Source: "Ollama, older api/types.go"},
	{Path: "options.use_mlock", Dialects: ollamaOnly, Do: Strip, Why: "loads the model anew, for everybody", Source: "Ollama, older api/types.go"},
	{Path: "options.embedding_only", Dialects: ollamaOnly, Do: Strip, Why: "loads the model anew, for everybody", Source: "Ollama, older api/types.go"},
	{Path: "options.rope_frequency_base", Dialects: ollamaOnly, Do: Strip, Why: "loads the model anew, for everybody", Source: "Ollama, older api/types.go"},
	{Path: "options.rope_frequency_scale", Dialects: ollamaOnly, Do: Strip, Why: "loads the model anew, for everybody", Source: "Ollama, older api/types.go"},
	{Path: "keep_alive", Do: Strip, Why: "unloads the model that others use, or keeps it from being", Source: "Ollama api/types.go"},

	// What brings its own text, code or vectors past the count of the tokens.
	{Path: "chat_template", Do: Refuse, Why: "a template may repeat the prompt, or loop", Source: "CVE-2025-61620"},
	{Path: "chat_template_kwargs.chat_template", Do: Refuse, Why: "a template may repeat the prompt, or loop", Source: "CVE-2025-61620"},
	{Path: "chat_template_kwargs.tokenize", Do: Refuse, Why: "has the engine's front end do its work twice", Source: "CVE-2025-62426"},
	{Path: "chat_template_kwargs.padding", Do: Refuse, Unless: []string{"false"}, Why: "makes a prompt longer than what is in it", Source: "Transformers apply_chat_template, which SGLang calls with the client's arguments"},
	{Path: "chat_template_kwargs.truncation", Do: Refuse, Unless: []string{"false"}, Why: "cuts the prompt", Source: "Transformers apply_chat_template, which SGLang calls with the client's arguments"},
	{Path: "chat_template_kwargs.max_length", Do: Refuse, Why: "cuts the prompt, or makes it longer than what is in it", Source: "Transformers apply_chat_template, which SGLang calls with the client's arguments"},
	{Path: "chat_template_kwargs.tokenizer_kwargs", Do: Refuse, Unless: []string{"{}"}, Why: "cuts the prompt, or makes it longer than what is in it", Source: "Transformers apply_chat_template, which SGLang calls with the client's arguments"},
	{Path: "chat_template_kwargs.processor_kwargs", Do: Refuse, Unless: []string{"{}"}, Why: "cuts the prompt, or makes it longer than what is in it", Source: "Transformers apply_chat_template, which SGLang calls with the client's arguments"},
	{Path: "template", Dialects: ollamaOnly, Do: Refuse, Unless: []string{`""`}, Why: "a template may repeat the prompt, or loop", Source: "Ollama api/types.go"},
	{Path: "prompt_embeds", Do: Refuse, Why: "vectors in place of a prompt: nothing counts them, and they are unpickled", Source: "CVE-2025-62164"},
	{Path: "input_embeds", Do: Refuse, Why: "vectors in place of a prompt: nothing counts them", Source: "SGLang python/sglang/srt/managers/io_struct.py"},
	{Path: "input_ids", Do: Refuse, Why: "is read in place of the prompt that is counted", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "prompt_token_ids", Do: Refuse, Why: "is read in place of the prompt that is counted", Source: "TensorRT-LLM tensorrt_llm/serve/openai_protocol.py"},
	{Path: "prompt_token_ids_b64", Do: Refuse, Why: "is read in place of the prompt that is counted", Source: "TensorRT-LLM tensorrt_llm/serve/openai_protocol.py"},
	{Path: "previous_input_messages", Do: Refuse, Why: "is read before the prompt that is counted", Source: "vLLM vllm/entrypoints/openai/responses/protocol.py"},
	{Path: "previous_response", Do: Refuse, Why: "is read before the prompt that is counted, from a code that nothing counts", Source: "vLLM vllm/entrypoints/openai/responses/protocol.py"},
	{Path: "prompt", Dialects: []string{"openai", "anthropic"}, Do: Refuse, Why: "is a second prompt, and only one of two is counted", Source: "vLLM: /tokenize takes a prompt or messages"},
	{Path: "messages", Dialects: []string{"completions", "responses"}, Do: Refuse, Why: "is a second prompt, and only one of two is counted", Source: "vLLM: /tokenize takes a prompt or messages"},
	{Path: "documents", Do: Refuse, Unless: []string{"[]"}, Why: "becomes a part of the prompt that no engine counts", Source: "vLLM: /tokenize has no documents"},
	{Path: "messages[].content[].image_embeds", Dialects: chats, Do: Refuse, Why: "vectors in place of an image, which are unpickled", Source: "CVE-2025-62164"},
	{Path: "messages[].content[].audio_embeds", Dialects: chats, Do: Refuse, Why: "vectors in place of a sound, which are unpickled", Source: "CVE-2025-62164"},
	{Path: "custom_logit_processor", Do: Refuse, Why: "code that runs in the engine", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "custom_params", Do: Strip, Why: "arguments of code that runs in the engine", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "logits_processors", Do: Refuse, Unless: []string{"[]"}, Why: "code that runs in the engine", Source: "vLLM, older protocol.py"},
	{Path: "mm_processor_kwargs", Do: Strip, Why: "changes how many tokens an image takes", Source: "vLLM vllm/entrypoints/openai/chat_completion/protocol.py"},
	{Path: "media_io_kwargs", Do: Strip, Why: "changes how many tokens a video takes", Source: "vLLM vllm/entrypoints/openai/chat_completion/protocol.py"},
	{Path: "images_config", Do: Strip, Why: "changes how many tokens an image takes", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "use_audio_in_video", Do: Strip, Why: "changes how many tokens a video takes", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "max_dynamic_patch", Do: Strip, Why: "changes how many tokens an image takes", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "min_dynamic_patch", Do: Strip, Why: "changes how many tokens an image takes", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "messages[].content[].image_url.max_dynamic_patch", Dialects: chats, Do: Strip, Why: "changes how many tokens an image takes", Source: "SGLang, LMDeploy: serve/openai protocols"},
	{Path: "messages[].content[].image_url.min_dynamic_patch", Dialects: chats, Do: Strip, Why: "changes how many tokens an image takes", Source: "SGLang, LMDeploy: serve/openai protocols"},
	{Path: "messages[].content[].video_url.max_dynamic_patch", Dialects: chats, Do: Strip, Why: "changes how many tokens a video takes", Source: "SGLang, LMDeploy: serve/openai protocols"},
	{Path: "messages[].content[].video_url.min_dynamic_patch", Dialects: chats, Do: Strip, Why: "changes how many tokens a video takes", Source: "SGLang, LMDeploy: serve/openai protocols"},
	{Path: "messages[].content[].min_pixels", Dialects: chats, Do: Strip, Why: "changes how many tokens an image takes", Source: "Alibaba Model Studio API reference, multimodal input"},
	{Path: "messages[].content[].max_pixels", Dialects: chats, Do: Strip, Why: "changes how many tokens an image takes", Source: "Alibaba Model Studio API reference, multimodal input"},
	{Path: "messages[].content[].total_pixels", Dialects: chats, Do: Strip, Why: "changes how many tokens an image takes", Source: "Alibaba Model Studio API reference, multimodal input"},
	{Path: "messages[].content[].fps", Dialects: chats, Do: Strip, Why: "changes how many tokens a video takes", Source: "Alibaba Model Studio API reference, multimodal input"},
	{Path: "input[].content[].image_url.max_dynamic_patch", Dialects: responsesOnly, Do: Strip, Why: "changes how many tokens an image takes", Source: "SGLang, LMDeploy: serve/openai protocols"},
	{Path: "input[].content[].image_url.min_dynamic_patch", Dialects: responsesOnly, Do: Strip, Why: "changes how many tokens an image takes", Source: "SGLang, LMDeploy: serve/openai protocols"},
	{Path: "input[].content[].video_url.max_dynamic_patch", Dialects: responsesOnly, Do: Strip, Why: "changes how many tokens a video takes", Source: "SGLang, LMDeploy: serve/openai protocols"},
	{Path: "input[].content[].video_url.min_dynamic_patch", Dialects: responsesOnly, Do: Strip, Why: "changes how many tokens a video takes", Source: "SGLang, LMDeploy: serve/openai protocols"},
	{Path: "input[].content[].min_pixels", Dialects: responsesOnly, Do: Strip, Why: "changes how many tokens an image takes", Source: "Alibaba Model Studio API reference, multimodal input"},
	{Path: "input[].content[].max_pixels", Dialects: responsesOnly, Do: Strip, Why: "changes how many tokens an image takes", Source: "Alibaba Model Studio API reference, multimodal input"},
	{Path: "input[].content[].total_pixels", Dialects: responsesOnly, Do: Strip, Why: "changes how many tokens an image takes", Source: "Alibaba Model Studio API reference, multimodal input"},
	{Path: "input[].content[].fps", Dialects: responsesOnly, Do: Strip, Why: "changes how many tokens a video takes", Source: "Alibaba Model Studio API reference, multimodal input"},

	// Which weights answer.
	{Path: "lora_path", Do: Refuse, Why: "chooses an adapter that may be another's", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "lora_request", Do: Refuse, Why: "loads an adapter from a path", Source: "TensorRT-LLM tensorrt_llm/serve/openai_protocol.py"},
	{Path: "lora", Do: Refuse, Unless: []string{"[]"}, Why: "chooses adapters that may be another's", Source: "llama.cpp tools/server/README.md"},
	{Path: "adapter_id", Do: Refuse, Why: "chooses an adapter that may be another's", Source: "TGI router/src/lib.rs"},
	{Path: "draft_model", Do: Strip, Why: "loads another model", Source: "LM Studio"},

	// What shows the engine's inside.
	{Path: "return_hidden_states", Do: Strip, Why: "shows the engine's inside, row by row of a batch", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "return_routed_experts", Do: Strip, Why: "shows the engine's inside", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "return_meta_info", Do: Strip, Why: "shows the engine's inside", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "return_context_logits", Do: Strip, Why: "shows the engine's inside", Source: "TensorRT-LLM tensorrt_llm/serve/openai_protocol.py"},
	{Path: "return_cached_tokens_details", Do: Strip, Why: "shows which tier held a prefix: whether others sent it", Source: "SGLang python/sglang/srt/entrypoints/openai/protocol.py"},
	{Path: "return_progress", Do: Strip, Why: "shows how much of a prompt was in the cache already", Source: "llama.cpp tools/server/README.md"},
	{Path: "detokenize", Do: Refuse, Unless: []string{"true"}, Why: "has the answer come as numbers, which nobody can watch", Source: "TensorRT-LLM tensorrt_llm/serve/openai_protocol.py"},
	{Path: "response_fields", Do: Strip, Why: "hides the counts by which an answer is checked", Source: "llama.cpp tools/server/README.md"},
	{Path: "_debug_render_only", Do: Strip, Why: "shows the template", Source: "Ollama api/types.go"},

	// What the server keeps, of whoever sent it.
	{Path: "previous_response_id", Do: Refuse, Stored: true, Why: "goes on with a stored answer that may be another's", Source: "OpenAI API reference, responses"},
	{Path: "conversation", Do: Refuse, Stored: true, Why: "goes on with a stored conversation that may be another's", Source: "OpenAI API reference, responses"},
	{Path: "background", Do: Refuse, Stored: true, Unless: []string{"false"}, Why: "stores the answer for whoever asks for its id", Source: "OpenAI API reference, responses"},
	{Path: "prompt", Dialects: responsesOnly, Do: Refuse, Stored: true, Why: "names a stored prompt that may be another's", Source: "OpenAI API reference, responses"},
	{Path: "store", Dialects: hosted, Do: Strip, Stored: true, Why: "stores the answer for whoever asks for its id", Source: "OpenAI API reference"},
	{Path: "container", Dialects: hosted, Do: Refuse, Stored: true, Why: "names a stored container that may be another's", Source: "Anthropic API reference, messages"},
	{Path: "context_id", Do: Refuse, Stored: true, Why: "names a stored context that may be another's", Source: "Volcengine Ark API reference, context"},
	{Path: "cached_content", Do: Refuse, Stored: true, Why: "names a stored context that may be another's", Source: "Gemini API reference, caching"},
	{Path: "memory_id", Do: Refuse, Stored: true, Why: "names a stored memory that may be another's", Source: "Alibaba Model Studio API reference"},
	{Path: "data_sources", Do: Refuse, Stored: true, Unless: []string{"[]"}, Why: "names stored documents that may be another's", Source: "Azure OpenAI, On Your Data"},
	{Path: "vector_store_ids", Do: Refuse, Stored: true, Unless: []string{"[]"}, Why: "adds stored documents to the prompt, which may be another's", Source: "LiteLLM proxy, vector stores"},
	{Path: "prompt_id", Do: Refuse, Stored: true, Why: "names a stored prompt that may be another's", Source: "LiteLLM proxy, prompt management"},
	{Path: "preset", Do: Refuse, Stored: true, Why: "names a stored prompt that may be another's", Source: "OpenRouter documentation, presets"},
	{Path: "tools[].container", Dialects: responsesOnly, Do: Refuse, Stored: true, Unless: []string{"{}"}, Why: "names a stored container that may be another's", Source: "OpenAI API reference, code interpreter"},
	{Path: "tools[].container.container_id", Dialects: responsesOnly, Do: Refuse, Stored: true, Why: "names a stored container that may be another's", Source: "OpenAI API reference, code interpreter"},
	{Path: "tools[].container.file_ids", Dialects: responsesOnly, Do: Refuse, Stored: true, Unless: []string{"[]"}, Why: "names stored files that may be another's", Source: "OpenAI API reference, code interpreter"},
	{Path: "tools[].environment.container_id", Dialects: responsesOnly, Do: Refuse, Stored: true, Why: "names a stored container that may be another's", Source: "OpenAI API reference, shell"},
	{Path: "tools[].environment.file_ids", Dialects: responsesOnly, Do: Refuse, Stored: true, Unless: []string{"[]"}, Why: "names stored files that may be another's", Source: "OpenAI API reference, shell"},
	{Path: "tools[].input_image_mask.file_id", Dialects: responsesOnly, Do: Refuse, Stored: true, Why: "names a stored file that may be another's", Source: "OpenAI API reference, image generation"},
	{Path: "tools[].vector_store_ids", Dialects: responsesOnly, Do: Refuse, Stored: true, Unless: []string{"[]"}, Why: "names stored files that may be another's", Source: "OpenAI API reference, file search"},
}

// set is a member that the guard puts into every body of a dialect.
type set struct {
	name, value string
	stored      bool // not where the policy allows stored content
}

// sets are the members whose default is not safe.
var sets = map[string][]set{
	// Both are on by default, and cut a prompt that is too long without a word.
	"ollama": {{name: "truncate", value: "false"}, {name: "shift", value: "false"}},
	// Answers are kept by default. vLLM takes a truncation of null for "auto".
	"responses": {{name: "store", value: "false", stored: true}, {name: "truncation", value: `"disabled"`}},
}
