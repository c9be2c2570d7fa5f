package wire

import (
	"regexp"
	"strings"
)

// rule is one way in which a target says no. The first rule that matches
// decides. Groups of the expression carry what the target named: limit and
// sent in tokens, at_least if sent is a lower bound, param for the field of
// the request that it does not take.
type rule struct {
	name     string
	provider string
	kind     RefusalKind
	status   []int    // any of these; empty for any
	codes    []string // a code or type of the error equals one of these; empty for any
	re       *regexp.Regexp
	noBody   bool   // the answer has no body
	limitKey string // member of the error object that holds the limit
	sentKey  string // member of the error object that holds the prompt length
	source   string
}

// say compiles an expression in which # stands for a number.
func say(expr string) *regexp.Regexp {
	return regexp.MustCompile(`(?is)` + strings.ReplaceAll(expr, "#", `\d[\d,_]*(?:\.\d+)?`))
}

// rules is the table, in order: first what must not be taken for a prompt that
// is too long, then the texts that name numbers, then those that do not, then
// what the status alone says. Sources are files of public repositories, the
// provider's documentation, or "seen": a string seen in public source.
var rules = []rule{
	// Not about the length of the prompt, though the words sound like it.
	{name: "bedrock-throttling", provider: "Bedrock", kind: RefusedRate, re: say(`throttling error: too many tokens|too many tokens, please wait`), source: "seen"},
	{name: "tokens-per-minute", provider: "OpenAI, Groq", kind: RefusedRate, re: say(`tokens? per (min|day|hour)|\((TPM|TPD|ITPM)\)`), source: "seen"},
	{name: "quota-code", provider: "OpenAI, Moonshot, z.ai, Alibaba", kind: RefusedQuota, codes: []string{"insufficient_quota", "exceeded_current_quota_error", "billing_hard_limit_reached", "1113", "Arrearage"}, source: "docs.z.ai/api-reference/api-code; seen"},
	{name: "quota-text", provider: "any", kind: RefusedQuota, re: say(`insufficient (account )?(balance|quota|credits|funds)|exceeded your (current )?quota|credit balance is too low|in arrears|out of credits|requires more credits`), source: "seen"},
	{name: "quota-status", provider: "DeepSeek, OpenRouter", kind: RefusedQuota, status: []int{402}, source: "api-docs.deepseek.com/quick_start/error_codes"},
	{name: "rate-code", provider: "OpenAI, Anthropic, Moonshot, z.ai, AWS", kind: RefusedRate, codes: []string{"rate_limit_exceeded", "rate_limit_error", "rate_limit_reached_error", "engine_overloaded_error", "overloaded_error", "ThrottlingException", "Throttling.RateQuota", "1302", "1303", "1305"}, source: "docs.z.ai/api-reference/api-code; seen"},
	{name: "bad-key-code", provider: "OpenAI, Anthropic, z.ai", kind: RefusedAuth, codes: []string{"invalid_api_key", "authentication_error", "invalid_authentication_error", "1000", "1001", "1002", "1003", "1004"}, source: "docs.z.ai/api-reference/api-code; seen"},

	// A field of the request that the target does not take.
	{name: "unsupported-parameter", provider: "OpenAI", kind: RefusedParameter, status: []int{400, 422}, re: say(`unsupported (?:parameter|value): ['"\x60]?(?P<param>[a-z_]+)`), source: "seen"},
	{name: "use-instead", provider: "OpenAI", kind: RefusedParameter, status: []int{400, 422}, re: say(`['"\x60]?(?P<param>[a-z]+_[a-z_]+|temperature|stream|logprobs)['"\x60]? is not supported`), source: "seen"},
	{name: "unknown-parameter", provider: "OpenAI, Azure, Fireworks", kind: RefusedParameter, status: []int{400, 422}, re: say(`(?:unrecognized request arguments? supplied|unknown (?:parameter|field|argument)|unexpected (?:parameter|keyword argument|field)|unsupported field)s?:? ['"\x60]?(?P<param>[a-z_]+)`), source: "seen"},
	{name: "extra-inputs", provider: "Mistral, pydantic servers", kind: RefusedParameter, status: []int{400, 422}, codes: []string{"extra_forbidden"}, source: "docs.pydantic.dev extra_forbidden"},
	{name: "extra-inputs-text", provider: "Anthropic, pydantic servers", kind: RefusedParameter, status: []int{400, 422}, re: say(`(?P<param>[a-z_]+): extra (?:inputs|fields) (?:are )?not permitted`), source: "seen"},
	{name: "unexpected-property", provider: "JSON Schema servers", kind: RefusedParameter, status: []int{400, 422}, re: say(`additional properties are not allowed \(['"](?P<param>[a-z_]+)`), source: "seen"},
	{name: "parameter-least", provider: "OpenAI", kind: RefusedParameter, status: []int{400, 422}, re: say(`invalid ['"\x60]?(?P<param>max_[a-z_]*tokens)['"\x60]?: integer below minimum value`), source: "seen"},
	{name: "unsupported-parameter-code", provider: "OpenAI", kind: RefusedParameter, status: []int{400, 422}, codes: []string{"unsupported_parameter", "unsupported_value", "unknown_parameter"}, source: "seen"},

	// SGLang: three texts for three limits. Only the second and the third of
	// these rows say that the pool is smaller than the context window.
	{name: "sglang-context", provider: "SGLang, Together", kind: RefusedContext, re: say(`input \((?P<sent>#) tokens\) is longer than the model's context length \((?P<limit>#) tokens\)`), source: "seen"},
	{name: "sglang-pool", provider: "SGLang", kind: RefusedPool, re: say(`input length \((?P<sent>#) tokens\) exceeds the maximum allowed length \((?P<limit>#) tokens\)`), source: "sgl-project/sglang python/sglang/srt/managers/utils.py"},
	{name: "sglang-capacity", provider: "SGLang", kind: RefusedPool, re: say(`exceeds the maximum number of tokens: (?P<sent>#) > (?P<limit>#)`), source: "sgl-project/sglang python/sglang/srt/disaggregation/prefill.py"},
	{name: "sglang-total", provider: "SGLang", kind: RefusedOutput, re: say(`requested token count exceeds the model's maximum context length of (?P<limit>#) tokens(?:\. you requested a total of # tokens: (?P<sent>#) tokens from the input)?`), source: "seen"},
	{name: "sglang-kv-checksum", provider: "SGLang", kind: RefusedServer, re: say(`kv checksum mismatch`), source: "seen"},
	{name: "sglang-metadata", provider: "SGLang", kind: RefusedServer, re: say(`metadata corruption detected`), source: "sgl-project/sglang python/sglang/srt/disaggregation/decode.py"},
	{name: "sglang-gateway-prefill", provider: "sgl-model-gateway", kind: RefusedServer, codes: []string{"prefill_server_error"}, source: "seen"},

	// vLLM and those that took over its words. It stops counting at the limit.
	{name: "vllm-max-tokens", provider: "vLLM", kind: RefusedOutput, re: say(`is too large: #\. this model's maximum context length is (?P<limit>#) tokens and your request has (?P<sent>#) input tokens`), source: "seen"},
	{name: "vllm-input", provider: "vLLM", kind: RefusedContext, re: say(`maximum context length is (?P<limit>#) tokens\. however, your request has (?P<at_least>at least )?(?P<sent>#) input tokens`), source: "seen"},
	{name: "vllm-total", provider: "vLLM", kind: RefusedOutput, re: say(`maximum context length is (?P<limit>#) tokens\. however, you requested # output tokens and your prompt contains (?P<at_least>at least )?(?P<sent>#) (?:input )?tokens`), source: "seen"},
	{name: "vllm-characters", provider: "vLLM", kind: RefusedContext, re: say(`(?:passed|prompt contains) (?:at least )?# (?:input )?characters.*?(?:context length is only|maximum context length is) (?P<limit>#) tokens`), source: "seen"},
	{name: "vllm-characters-last", provider: "vLLM", kind: RefusedContext, re: say(`maximum context length is (?P<limit>#) tokens.*?prompt contains (?:at least )?# (?:input )?characters`), source: "seen"},
	{name: "vllm-passed", provider: "vLLM", kind: RefusedOutput, re: say(`you passed (?P<at_least>at least )?(?P<sent>#) input tokens and requested # output tokens\. however, the model's context length is only (?P<limit>#) tokens`), source: "seen"},
	{name: "vllm-token-ids", provider: "vLLM", kind: RefusedContext, re: say(`prompt \(length (?P<sent>#)\) is longer than the maximum model length of (?P<limit>#)`), source: "seen"},
	{name: "vllm-old", provider: "vLLM, DeepSeek, OpenAI", kind: RefusedOutput, re: say(`maximum context length is (?P<limit>#) tokens\. however, you requested # tokens \((?P<sent>#) in (?:the|your) (?:messages|prompt)`), source: "llm-d/llm-d-inference-sim pkg/llm-d-inference-sim/request.go"},

	// Said of a prompt that is larger than the whole cache, and of one for which
	// other requests leave no room just then.
	{name: "llm-d-sim-pool", provider: "llm-d-inference-sim", kind: RefusedPool, re: say(`kv cache does not have sufficient capacity`), source: "llm-d/llm-d-inference-sim pkg/kv-cache/block_cache.go"},

	{name: "openai-messages", provider: "OpenAI", kind: RefusedContext, re: say(`maximum context length is (?P<limit>#) tokens\. however, your messages resulted in (?P<sent>#) tokens`), source: "charmbracelet/fantasy providers/openai; seen"},
	{name: "openrouter-parts", provider: "OpenRouter", kind: RefusedOutput, re: say(`maximum context length is (?P<limit>#) tokens\. however, you requested about # tokens \((?P<sent>#) of text input`), source: "badlogic/pi-mono overflow.ts"},
	{name: "requested-total", provider: "OpenRouter, DeepSeek", kind: RefusedOutput, re: say(`maximum context length is (?P<limit>#) tokens\. however, you requested (?:about )?# tokens`), source: "badlogic/pi-mono overflow.ts"},

	{name: "llamacpp-type", provider: "llama.cpp", kind: RefusedContext, codes: []string{"exceed_context_size_error"}, limitKey: "n_ctx", sentKey: "n_prompt_tokens", source: "ggml-org/llama.cpp tools/server"},
	{name: "llamacpp-text", provider: "llama.cpp, Ollama", kind: RefusedContext, re: say(`request \((?P<sent>#) tokens\) exceeds the available context size \((?P<limit>#) tokens\)`), source: "ggml-org/llama.cpp tools/server"},
	{name: "llamacpp-old", provider: "llama.cpp", kind: RefusedContext, re: say(`request exceeds the available context size`), source: "ggml-org/llama.cpp tools/server"},
	{name: "llamacpp-shared-buffer", provider: "llama.cpp", kind: RefusedServer, re: say(`context size has been exceeded`), source: "lemonade-sdk/lemonade#3276"},
	{name: "llamacpp-loading", provider: "llama.cpp", kind: RefusedServer, status: []int{503}, re: say(`loading model`), source: "ggml-org/llama.cpp tools/server/README.md"},

	{name: "ollama-shift-off", provider: "Ollama", kind: RefusedContext, re: say(`prompt is longer than the context length currently available`), source: "ollama/ollama llm/llama_server.go"},
	{name: "ollama-by", provider: "Ollama", kind: RefusedContext, re: say(`prompt too long; exceeded max context length by # tokens`), source: "seen"},

	// Checked against the token budget of a batch, which is what the engine
	// can take in at once, not against the context window.
	{name: "tensorrt-llm", provider: "TensorRT-LLM", kind: RefusedPool, re: say(`sum of prompt length \((?P<sent>#)\), query length \(#\) should not exceed max_num_tokens \((?P<limit>#)\)`), source: "seen"},
	{name: "tgi-inputs", provider: "TGI", kind: RefusedContext, re: say(`inputs.{0,3} must have less than (?P<limit>#) tokens\. given: (?P<sent>#)`), source: "huggingface/text-generation-inference router/src/validation.rs"},
	{name: "tgi-total", provider: "TGI", kind: RefusedOutput, re: say(`inputs.{0,3} tokens \+ .{0,3}max_new_tokens.{0,3} must be <= (?P<limit>#)(?:\. given: (?P<sent>#))?`), source: "huggingface/text-generation-inference router/src/validation.rs"},
	{name: "lmdeploy-length", provider: "LMDeploy", kind: RefusedContext, re: say(`input length \((?P<sent>#)\) must be smaller than the model context length \((?P<limit>#)\)`), source: "InternLM/lmdeploy lmdeploy/serve/core/async_engine.py"},
	// The PyTorch engine says this when its blocks cannot hold the prompt.
	{name: "lmdeploy-pool", provider: "LMDeploy", kind: RefusedPool, re: say(`the request exceeds the model context length`), source: "InternLM/lmdeploy lmdeploy/pytorch/engine/engine_instance.py"},
	{name: "lmstudio-loaded", provider: "LM Studio", kind: RefusedContext, re: say(`keep the first (?P<sent>#) tokens.*?context length of only (?P<limit>#) tokens`), source: "seen"},
	{name: "lmstudio-keep", provider: "LM Studio", kind: RefusedContext, re: say(`tokens to keep from the initial prompt is greater than the context length`), source: "badlogic/pi-mono overflow.ts"},

	{name: "anthropic-numbers", provider: "Anthropic", kind: RefusedContext, re: say(`prompt is too long: (?P<sent>#) tokens > (?P<limit>#) maximum`), source: "anthropics/claude-code#12186"},
	{name: "anthropic-total", provider: "Anthropic", kind: RefusedOutput, re: say(`input length and .{0,3}max_tokens.{0,3} exceed context limit(?:: (?P<sent>#) \+ # > (?P<limit>#))?`), source: "seen"},
	{name: "anthropic-body", provider: "Anthropic", kind: RefusedBodySize, codes: []string{"request_too_large"}, source: "docs.anthropic.com errors"},
	{name: "zai-length", provider: "z.ai", kind: RefusedTooLong, codes: []string{"1261"}, source: "docs.z.ai/api-reference/api-code"},
	{name: "zai-text", provider: "z.ai", kind: RefusedTooLong, re: say(`prompt exceeds max length|^prompt too long$`), source: "badlogic/pi-mono overflow.ts"},
	{name: "mistral", provider: "Mistral", kind: RefusedContext, re: say(`prompt contains (?P<sent>#) tokens.*?too large for model with (?P<limit>#) maximum context length`), source: "badlogic/pi-mono overflow.ts"},
	{name: "gemini", provider: "Gemini, Vertex", kind: RefusedContext, re: say(`input token count (?:\((?P<sent>#)\) )?exceeds the maximum number of tokens allowed \(?(?P<limit>#)\)?`), source: "badlogic/pi-mono overflow.ts; charmbracelet/fantasy providers/google"},
	{name: "xai", provider: "xAI", kind: RefusedContext, re: say(`maximum prompt length is (?P<limit>#) but the request contains (?P<sent>#) tokens`), source: "badlogic/pi-mono overflow.ts"},
	{name: "groq", provider: "Groq", kind: RefusedTooLong, re: say(`reduce the length of the messages or completion`), source: "badlogic/pi-mono overflow.ts"},
	{name: "moonshot", provider: "Moonshot", kind: RefusedContext, re: say(`exceeded model token limit: (?P<limit>#)(?: \(requested: (?P<sent>#)\))?`), source: "badlogic/pi-mono overflow.ts"},
	{name: "qwen", provider: "Alibaba", kind: RefusedContext, re: say(`range of input length should be \[1, (?P<limit>#)\]`), source: "charmbracelet/fantasy"},
	{name: "minimax", provider: "MiniMax", kind: RefusedContext, re: say(`context window exceeds limit`), source: "badlogic/pi-mono overflow.ts"},
	{name: "bedrock", provider: "Bedrock", kind: RefusedTooLong, re: say(`input is too long for requested model`), source: "badlogic/pi-mono overflow.ts"},
	{name: "copilot", provider: "Copilot", kind: RefusedContext, re: say(`prompt token count of (?P<sent>#) exceeds the limit of (?P<limit>#)`), source: "badlogic/pi-mono overflow.ts"},
	{name: "poolside", provider: "Poolside", kind: RefusedContext, re: say(`input length (?P<sent>#) exceeds the maximum allowed input length of (?P<limit>#) tokens`), source: "seen"},
	{name: "cerebras", provider: "Cerebras", kind: RefusedTooLong, status: []int{400, 413}, noBody: true, source: "badlogic/pi-mono overflow.ts"},

	// Too long, without numbers.
	{name: "openai-window", provider: "OpenAI", kind: RefusedContext, re: say(`input exceeds the context window`), source: "seen"},
	{name: "context-limit-only", provider: "any", kind: RefusedContext, status: []int{400, 413, 422}, re: say(`maximum context length (?:is|of) (?P<limit>#)`), source: "wording shared by OpenAI, vLLM, SGLang"},
	{name: "context-code", provider: "OpenAI, LMDeploy", kind: RefusedContext, codes: []string{"context_length_exceeded", "string_above_max_length"}, source: "charmbracelet/fantasy providers/openai"},
	{name: "litellm", provider: "LiteLLM", kind: RefusedContext, re: say(`ContextWindowExceededError`), source: "docs.litellm.ai/docs/exception_mapping"},
	{name: "parameter-range", provider: "OpenAI", kind: RefusedParameter, status: []int{400, 422}, re: say(`max_(?:completion_|output_)?tokens.{0,40}(?:too large|must be|at most|supports at most)`), source: "seen"},
	{name: "body-size", provider: "nginx, axum, Express", kind: RefusedBodySize, re: say(`request entity too large|payload too large|request body too large|body is too large|length limit exceeded|exceeds the maximum size`), source: "seen"},
	{name: "length-words", provider: "any", kind: RefusedTooLong, status: []int{400, 413, 422, 500}, re: say(`context[ _](?:length|window|size|limit)[^.]{0,60}exceed|exceed[^.]{0,60}context[ _](?:length|window|size|limit)|(?:prompt|input) (?:is )?too long|too many (?:input |prompt )?tokens`), source: "wording shared by many"},

	// The rest, by what is named and then by status.
	{name: "model-code", provider: "OpenAI, z.ai", kind: RefusedModel, codes: []string{"model_not_found", "model_not_available", "1211"}, source: "docs.z.ai/api-reference/api-code; seen"},
	{name: "model-text", provider: "vLLM, Ollama, OpenRouter", kind: RefusedModel, re: say(`model\b.{0,120}?(?:not found|does not exist|not exist|isn't available)|is not a valid model`), source: "ollama/ollama server/routes.go; seen"},
	{name: "bad-key-text", provider: "xAI, Gemini", kind: RefusedAuth, re: say(`(?:incorrect|invalid) api key|api key not valid`), source: "seen"},
	{name: "status-auth", provider: "any", kind: RefusedAuth, status: []int{401, 403}, source: "RFC 9110 15.5"},
	{name: "status-not-found", provider: "any", kind: RefusedModel, status: []int{404, 405}, source: "RFC 9110 15.5"},
	{name: "status-too-large", provider: "any", kind: RefusedBodySize, status: []int{413}, source: "RFC 9110 15.5.14"},
	{name: "status-rate", provider: "any", kind: RefusedRate, status: []int{429, 529}, source: "RFC 6585 4; docs.anthropic.com errors"},
	{name: "server-type", provider: "any", kind: RefusedServer, codes: []string{"server_error", "internal_error", "internal_server_error", "InternalServerError", "api_error"}, source: "seen"},
}
