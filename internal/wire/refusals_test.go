package wire

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// example is a refusal as a target words it, and what must be read from it.
type example struct {
	rule        string
	status      int
	body        string
	kind        RefusalKind
	limit, sent int
	atLeast     bool
	param       string
	in200       bool
}

// msg wraps a message as OpenAI does.
func msg(s string) string { return `{"error":{"message":` + quote(s) + `,"type":"x","param":null}}` }

// flat wraps a message as SGLang and LMDeploy do.
func flat(s string) string {
	return `{"object":"error","message":` + quote(s) + `,"type":"BadRequestError","param":null,"code":400}`
}

var examples = []example{
	{rule: "bedrock-throttling", status: 400, body: `{"message":"Throttling error: Too many tokens, please wait before trying again."}`, kind: RefusedRate},
	{rule: "tokens-per-minute", status: 429, body: msg("Request too large for gpt-4 in organization org-x on tokens per min (TPM): Limit 30000, Requested 45000. The input or output tokens must be reduced."), kind: RefusedRate},
	{rule: "tokens-per-minute", status: 413, body: `{"error":{"message":"Request too large for model x on tokens per minute (TPM): Limit 6000, Requested 7221","code":"rate_limit_exceeded"}}`, kind: RefusedRate},
	{rule: "quota-code", status: 429, body: `{"error":{"message":"You exceeded your current quota, please check your plan.","type":"insufficient_quota","code":"insufficient_quota"}}`, kind: RefusedQuota},
	{rule: "quota-code", status: 429, body: `{"error":{"code":"1113","message":"Insufficient balance or no resource package. Please recharge."}}`, kind: RefusedQuota},
	{rule: "quota-text", status: 400, body: `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}`, kind: RefusedQuota},
	{rule: "quota-status", status: 402, body: `{"error":{"message":"pay first"}}`, kind: RefusedQuota},
	{rule: "rate-code", status: 429, body: `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your limit"}}`, kind: RefusedRate},
	{rule: "rate-code", status: 200, in200: true, body: `{"error":{"code":"1302","message":"High concurrency usage of this API"}}`, kind: RefusedRate},
	{rule: "bad-key-code", status: 400, body: `{"error":{"message":"no","code":"invalid_api_key"}}`, kind: RefusedAuth},

	{rule: "unsupported-parameter", status: 400, body: `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`, kind: RefusedParameter, param: "max_tokens"},
	{rule: "unsupported-parameter", status: 400, body: msg("Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported."), kind: RefusedParameter, param: "temperature"},
	{rule: "use-instead", status: 400, body: msg("stream_options is not supported for this model"), kind: RefusedParameter, param: "stream_options"},
	{rule: "unknown-parameter", status: 400, body: msg("Unrecognized request argument supplied: stream_options"), kind: RefusedParameter, param: "stream_options"},
	{rule: "extra-inputs", status: 422, body: `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted","input":{"include_usage":true}}]},"type":"invalid_request_error"}`, kind: RefusedParameter, param: "stream_options"},
	{rule: "extra-inputs-text", status: 400, body: msg("stream_options: Extra inputs are not permitted"), kind: RefusedParameter, param: "stream_options"},
	{rule: "unexpected-property", status: 400, body: msg("Additional properties are not allowed ('stream_options' was unexpected)"), kind: RefusedParameter, param: "stream_options"},
	{rule: "parameter-least", status: 400, body: `{"error":{"message":"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 1 instead.","type":"invalid_request_error","param":"max_output_tokens","code":"integer_below_min_value"}}`, kind: RefusedParameter, param: "max_output_tokens"},
	{rule: "unsupported-parameter-code", status: 400, body: `{"error":{"message":"not here","param":"stream_options","code":"unknown_parameter"}}`, kind: RefusedParameter, param: "stream_options"},

	{rule: "sglang-context", status: 400, body: flat("The input (1048600 tokens) is longer than the model's context length (1048576 tokens)."), kind: RefusedContext, limit: 1048576, sent: 1048600},
	{rule: "sglang-pool", status: 400, body: flat("Input length (681274 tokens) exceeds the maximum allowed length (681274 tokens). Use a shorter input or enable --allow-auto-truncate."), kind: RefusedPool, limit: 681274, sent: 681274},
	{rule: "sglang-pool", status: 200, in200: true, body: `{"error":{"object":"error","message":"Input length (20480 tokens) exceeds the maximum allowed length (20474 tokens). Use a shorter input or enable --allow-auto-truncate.","type":"BAD_REQUEST","param":null,"code":400}}`, kind: RefusedPool, limit: 20474, sent: 20480},
	{rule: "sglang-capacity", status: 400, body: flat("Request 5f exceeds the maximum number of tokens: 284937 > 284928"), kind: RefusedPool, limit: 284928, sent: 284937},
	{rule: "sglang-total", status: 400, body: flat("Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 4196 tokens: 4000 tokens from the input messages and 196 tokens for the completion."), kind: RefusedOutput, limit: 4096, sent: 4000},
	{rule: "sglang-kv-checksum", status: 500, body: flat("KV checksum mismatch"), kind: RefusedServer},
	{rule: "sglang-metadata", status: 500, body: flat("Metadata corruption detected - bootstrap_room mismatch"), kind: RefusedServer},
	{rule: "sglang-gateway-prefill", status: 502, body: `{"error":{"type":"prefill_server_error","message":"Prefill failed. This will cause decode timeout."}}`, kind: RefusedServer},

	{rule: "vllm-input", status: 400, body: msg("This model's maximum context length is 8192 tokens. However, your request has 9001 input tokens. Please reduce the length of the input messages."), kind: RefusedContext, limit: 8192, sent: 9001},
	{rule: "vllm-total", status: 400, body: msg("This model's maximum context length is 8192 tokens. However, you requested 512 output tokens and your prompt contains 8000 input tokens, for a total of 8512 tokens (8000 + 512 = 8512 > 8192). Please reduce the length."), kind: RefusedOutput, limit: 8192, sent: 8000},
	{rule: "vllm-total", status: 400, body: `{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 512 output tokens and your prompt contains at least 8193 input tokens, for a total of at least 8705 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=8193)","type":"BadRequestError","param":"input_tokens","code":400}}`, kind: RefusedContext, limit: 8192, sent: 8193, atLeast: true},
	{rule: "vllm-characters", status: 400, body: msg("You passed 999999 input characters and requested 16 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 8176 tokens."), kind: RefusedContext, limit: 8192},
	{rule: "vllm-characters-last", status: 400, body: msg("This model's maximum context length is 8192 tokens. However, you requested 512 output tokens and your prompt contains 999999 characters (parameter=input_text, value=999999)"), kind: RefusedContext, limit: 8192},
	{rule: "vllm-passed", status: 400, body: msg("You passed 8001 input tokens and requested 512 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 7680 tokens."), kind: RefusedOutput, limit: 8192, sent: 8001},
	{rule: "vllm-token-ids", status: 400, body: msg("The decoder prompt (length 9000) is longer than the maximum model length of 8192. Make sure that max_model_len is no smaller."), kind: RefusedContext, limit: 8192, sent: 9000},
	{rule: "vllm-old", status: 400, body: msg("This model's maximum context length is 4097 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion). Please reduce the length."), kind: RefusedOutput, limit: 4097, sent: 4000},
	{rule: "vllm-old", status: 400, body: `{"error":{"message":"This model's maximum context length is 131072 tokens. However, you requested 200010 tokens (200000 in the messages, 10 in the completion).","type":"invalid_request_error"}}`, kind: RefusedContext, limit: 131072, sent: 200000},
	{rule: "vllm-max-tokens", status: 400, body: msg("'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens and your request has 10 input tokens (5000 > 4096 - 10)."), kind: RefusedOutput, limit: 4096, sent: 10},

	{rule: "llm-d-sim-pool", status: 500, body: `{"error":{"message":"the kv cache does not have sufficient capacity to store this request","type":"InternalServerError","param":null,"code":500}}`, kind: RefusedPool},
	{rule: "openai-messages", status: 400, body: `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 128001 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, kind: RefusedContext, limit: 128000, sent: 128001},
	{rule: "openrouter-parts", status: 400, body: msg("This endpoint's maximum context length is 163840 tokens. However, you requested about 200100 tokens (200000 of text input, 100 in the output)."), kind: RefusedContext, limit: 163840, sent: 200000},
	{rule: "requested-total", status: 400, body: msg("This endpoint's maximum context length is 163840 tokens. However, you requested about 200100 tokens."), kind: RefusedOutput, limit: 163840},
	{rule: "vllm-input", status: 400, body: `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"This model's maximum context length is 8192 tokens. However, your request has 9001 input tokens.\"}}","provider_name":"X"}}}`, kind: RefusedContext, limit: 8192, sent: 9001},

	{rule: "llamacpp-type", status: 400, body: `{"error":{"code":400,"message":"too big, in words nobody foresaw","type":"exceed_context_size_error","n_prompt_tokens":5827,"n_ctx":4096}}`, kind: RefusedContext, limit: 4096, sent: 5827},
	{rule: "llamacpp-text", status: 400, body: `{"error":"request (5827 tokens) exceeds the available context size (4096 tokens), try increasing it"}`, kind: RefusedContext, limit: 4096, sent: 5827},
	{rule: "llamacpp-old", status: 400, body: msg("the request exceeds the available context size. try increasing the context size or enable context shift"), kind: RefusedContext},
	{rule: "llamacpp-shared-buffer", status: 500, body: `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`, kind: RefusedServer},
	{rule: "llamacpp-loading", status: 503, body: `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, kind: RefusedServer},

	{rule: "ollama-shift-off", status: 400, body: msg("the prompt is longer than the context length currently available to the model; shorten the prompt"), kind: RefusedContext},
	{rule: "ollama-by", status: 400, body: msg("prompt too long; exceeded max context length by 120 tokens"), kind: RefusedContext},
	{rule: "tensorrt-llm", status: 400, body: flat("The sum of prompt length (72417.0), query length (0) should not exceed max_num_tokens (69632)"), kind: RefusedPool, limit: 69632, sent: 72417},
	{rule: "tgi-inputs", status: 422, body: `{"error":"Input validation error: ` + "`inputs`" + ` must have less than 4096 tokens. Given: 5000","error_type":"validation"}`, kind: RefusedContext, limit: 4096, sent: 5000},
	{rule: "tgi-total", status: 422, body: `{"error":"Input validation error: ` + "`inputs` tokens + `max_new_tokens`" + ` must be <= 4096. Given: 4000 ` + "`inputs`" + ` tokens and 200","error_type":"validation"}`, kind: RefusedOutput, limit: 4096, sent: 4000},
	{rule: "lmdeploy-length", status: 400, body: flat("Input length (9000) must be smaller than the model context length (8192)."), kind: RefusedContext, limit: 8192, sent: 9000},
	{rule: "lmdeploy-pool", status: 400, body: flat("The request exceeds the model context length."), kind: RefusedPool},
	{rule: "lmstudio-loaded", status: 200, in200: true, body: `{"error":"Trying to keep the first 4717 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`, kind: RefusedContext, limit: 4096, sent: 4717},
	{rule: "lmstudio-keep", status: 200, in200: true, body: `{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}`, kind: RefusedContext},

	{rule: "anthropic-numbers", status: 400, body: `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"},"request_id":"r"}`, kind: RefusedContext, limit: 200000, sent: 208310},
	{rule: "anthropic-total", status: 400, body: msg("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again"), kind: RefusedOutput, limit: 200000, sent: 190000},
	{rule: "anthropic-body", status: 413, body: `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, kind: RefusedBodySize},
	{rule: "zai-length", status: 400, body: `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`, kind: RefusedTooLong},
	{rule: "zai-length", status: 429, body: `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`, kind: RefusedTooLong},
	{rule: "zai-text", status: 200, in200: true, body: msg("Prompt exceeds max length"), kind: RefusedTooLong},
	{rule: "sglang-context", status: 400, body: msg("The input (131100 tokens) is longer than the model's context length (131072 tokens)."), kind: RefusedContext, limit: 131072, sent: 131100}, // Together
	{rule: "mistral", status: 400, body: flat("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"), kind: RefusedContext, limit: 32768, sent: 40000},
	{rule: "gemini", status: 400, body: `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, kind: RefusedContext, limit: 1048576, sent: 1200000},
	{rule: "xai", status: 400, body: `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 140000 tokens."}`, kind: RefusedContext, limit: 131072, sent: 140000},
	{rule: "groq", status: 400, body: msg("Please reduce the length of the messages or completion."), kind: RefusedTooLong},
	{rule: "moonshot", status: 400, body: msg("Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)"), kind: RefusedContext, limit: 262144, sent: 300000},
	{rule: "qwen", status: 400, body: `{"code":"InvalidParameter","message":"Range of input length should be [1, 129024]"}`, kind: RefusedContext, limit: 129024},
	{rule: "minimax", status: 400, body: msg("invalid params, context window exceeds limit"), kind: RefusedContext},
	{rule: "bedrock", status: 400, body: `{"__type":"ValidationException","message":"Input is too long for requested model."}`, kind: RefusedTooLong},
	{rule: "copilot", status: 400, body: msg("prompt token count of 140,000 exceeds the limit of 128,000"), kind: RefusedContext, limit: 128000, sent: 140000},
	{rule: "poolside", status: 400, body: msg("Input length 70000 exceeds the maximum allowed input length of 65536 tokens."), kind: RefusedContext, limit: 65536, sent: 70000},
	{rule: "cerebras", status: 400, body: "", kind: RefusedTooLong},
	{rule: "cerebras", status: 413, body: " ", kind: RefusedTooLong},

	{rule: "openai-window", status: 200, in200: true, body: `{"error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model. Please adjust your input and try again."}}`, kind: RefusedContext},
	{rule: "context-limit-only", status: 400, body: msg("This model's maximum context length is 4096 tokens, and that is that."), kind: RefusedContext, limit: 4096},
	{rule: "context-code", status: 400, body: `{"error":{"message":"no","code":"context_length_exceeded"}}`, kind: RefusedContext},
	{rule: "litellm", status: 400, body: msg("litellm.ContextWindowExceededError: it did not fit"), kind: RefusedContext},
	{rule: "anthropic-numbers", status: 503, body: msg(`litellm.ServiceUnavailableError: AnthropicException - {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`), kind: RefusedContext, limit: 200000, sent: 208310},
	{rule: "parameter-range", status: 400, body: msg("max_tokens is too large: 50000. This model supports at most 16384 completion tokens."), kind: RefusedParameter},
	{rule: "body-size", status: 413, body: "<html><head><title>413 Request Entity Too Large</title></head></html>", kind: RefusedBodySize},
	{rule: "body-size", status: 413, body: "Failed to buffer the request body: length limit exceeded", kind: RefusedBodySize},
	{rule: "length-words", status: 400, body: msg("too many tokens: size limit exceeded by 312 tokens."), kind: RefusedTooLong},
	{rule: "length-words", status: 500, body: msg("internal: the context window was exceeded"), kind: RefusedTooLong},

	{rule: "model-code", status: 404, body: `{"error":{"message":"no","code":"model_not_found"}}`, kind: RefusedModel},
	{rule: "model-text", status: 404, body: `{"error":{"message":"model \"tiny\" not found, try pulling it first","type":"not_found_error"}}`, kind: RefusedModel},
	{rule: "model-text", status: 400, body: msg("nosuch/model is not a valid model ID"), kind: RefusedModel},
	{rule: "bad-key-text", status: 400, body: msg("API key not valid. Please pass a valid API key."), kind: RefusedAuth},
	{rule: "status-auth", status: 401, body: `{"detail":"Unauthorized"}`, kind: RefusedAuth},
	{rule: "status-auth", status: 403, body: "<html><title>Just a moment...</title>", kind: RefusedAuth},
	{rule: "status-not-found", status: 404, body: `{"detail":"Not Found"}`, kind: RefusedModel},
	{rule: "status-too-large", status: 413, body: "no", kind: RefusedBodySize},
	{rule: "status-rate", status: 429, body: "slow down", kind: RefusedRate},
	{rule: "server-type", status: 200, in200: true, body: `{"error":{"message":"boom","type":"server_error"}}`, kind: RefusedServer},
	{rule: "status-server", status: 503, body: "upstream gone", kind: RefusedServer},
	{rule: "status-server", status: 200, in200: true, body: `{"error":{"message":"Provider returned error","code":502}}`, kind: RefusedServer},
	{rule: "status-other", status: 400, body: msg("no reason"), kind: RefusedOther},
}

func TestRefusals(t *testing.T) {
	for i, e := range examples {
		t.Run(fmt.Sprintf("%d-%s", i, e.rule), func(t *testing.T) {
			r, param := classify(e.status, http.Header{}, []byte(e.body), e.in200, time.Now())
			if r.Rule != e.rule || r.Kind != e.kind || r.Limit != e.limit || r.Sent != e.sent || r.AtLeast != e.atLeast || param != e.param || r.InAnswer != e.in200 {
				t.Errorf("%s\ngot  %+v param %q\nwant %+v", e.body, *r, param, e)
			}
			if r.Message == "" {
				t.Error("no message")
			}
		})
	}
}

// Every row of the table has an example, a source, and groups that are known.
func TestRefusalTable(t *testing.T) {
	used, names := map[string]bool{}, map[string]bool{}
	for _, e := range examples {
		used[e.rule] = true
	}
	for _, r := range rules {
		if !used[r.name] {
			t.Errorf("row %s has no example", r.name)
		}
		if names[r.name] || r.source == "" || r.provider == "" || r.kind == "" {
			t.Errorf("row %s: name twice, or source, provider or kind missing", r.name)
		}
		names[r.name] = true
		if r.re == nil && r.codes == nil && r.status == nil {
			t.Errorf("row %s matches everything", r.name)
		}
		if r.re != nil {
			for _, g := range r.re.SubexpNames() {
				if g != "" && !strings.Contains(" limit sent at_least param ", " "+g+" ") {
					t.Errorf("row %s: group %q", r.name, g)
				}
			}
		}
	}
}

func TestEffectiveStatus(t *testing.T) {
	for body, want := range map[string]int{
		`{"error":{"code":400,"message":"x"}}`:   400,
		`{"error":{"code":"503","message":"x"}}`: 503,
		`{"error":{"code":"1261"}}`:              200,
		`{"error":"x"}`:                          200,
	} {
		if r, _ := classify(200, nil, []byte(body), true, time.Now()); r.Status != want {
			t.Errorf("%s: status %d, want %d", body, r.Status, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", " 1.5 ", 1500 * time.Millisecond},
		{"Retry-After", "Sun, 01 Nov 2026 12:00:30 GMT", 30 * time.Second},
		{"Retry-After", "Sun, 01 Nov 2026 11:00:30 GMT", 0},
		{"Retry-After", "-5", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "soon", 0},
		{"Retry-After", "1e300", maxRetryAfter},
		{"Retry-After-Ms", "250", 250 * time.Millisecond},
		{"X-Ratelimit-Reset", "12", 12 * time.Second},
		{"X-Ratelimit-Reset", fmt.Sprint(now.Unix() + 9), 9 * time.Second},
		{"X-Ratelimit-Reset", fmt.Sprint(now.UnixMilli() + 4000), 4 * time.Second},
		{"X-Ratelimit-Reset-Requests", "1m2s", 62 * time.Second},
		{"X-Ratelimit-Reset-Tokens", "20ms", 20 * time.Millisecond},
		{"X-Other", "5", 0},
	} {
		r, _ := classify(429, http.Header{c.name: {c.value}}, nil, false, now)
		got := r.RetryAfter
		if diff := got - c.want; diff > time.Millisecond || diff < -time.Millisecond {
			t.Errorf("%s: %s gives %v, want %v", c.name, c.value, got, c.want)
		}
	}
	if r, _ := classify(400, http.Header{"X-Ratelimit-Reset": {"5"}}, []byte("no"), false, now); r.RetryAfter != 0 {
		t.Errorf("a rate limit that was not hit: wait %v", r.RetryAfter)
	}
	skewed := http.Header{"Retry-After": {"Sun, 01 Nov 2026 13:00:30 GMT"}, "Date": {"Sun, 01 Nov 2026 13:00:00 GMT"}}
	if got := retryAfter(skewed, now); got != 30*time.Second {
		t.Errorf("by the server's own clock: %v", got)
	}
}

func FuzzClassify(f *testing.F) {
	for _, e := range examples {
		f.Add(e.status, e.body, e.in200)
	}
	f.Add(200, strings.Repeat(`{"error":`, 100), true)
	f.Add(500, `{"error":"{\"error\":\"{\\\"error\\\":{}}\"}","detail":[[[[]]]]}`, false)
	f.Fuzz(func(t *testing.T, status int, body string, in200 bool) {
		r, _ := classify(status, http.Header{}, []byte(body), in200, time.Now())
		if r.Kind == "" || r.Rule == "" || r.Limit < 0 || r.Sent < 0 {
			t.Errorf("refusal %+v", r)
		}
		if len(r.Message) > 2*maxMessage || strings.ContainsAny(r.Message, "\n\r\x1b") || !utf8.ValidString(r.Message) {
			t.Errorf("message %q", r.Message)
		}
	})
}
