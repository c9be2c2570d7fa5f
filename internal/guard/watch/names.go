package watch

import (
	"bytes"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// Channel says where in an answer a text stands, in the words of a run's
// findings.
type Channel string

// The channels of an answer.
const (
	Content   = Channel(wire.Content)
	Reasoning = Channel(wire.Reasoning)
	ToolCalls = Channel(wire.ToolCalls)
	Logprobs  = Channel(wire.Logprobs)
	Header    = Channel(wire.Header)
	ErrorBody = Channel(wire.ErrorBody)
	Raw       = Channel(wire.Raw) // where the place does not tell
)

// class is what the name of a member says of its value.
type class uint8

const (
	other        class = iota
	label              // a word of the dialect or a number of the server's, which comes whole
	kind               // a label: the type of an event, where it stands at the top
	index              // which choice, tool call or block the object belongs to
	content            // and the other texts of an answer
	reasoning          //
	tool               //
	probs              // log probabilities
	alternatives       // lists of them: places are ranks, names may be tokens
	alternative        // a member of one of these that is no token
	failure            // an error
	usage              // an object that counts tokens
	done               // true ends a stream of Ollama's

	// Numbers in such an object.
	promptTokens
	inputTokens
	cachedTokens
	cacheRead
	cacheCreation
	cacheHit
	evalCount
	promptN
	cacheN
	outputTokens
	counters // how many classes there are
)

// classOf tells what a member is by its name as it is written.
func classOf(name []byte) class {
	switch string(name) {
	case "id", "object", "model", "role", "created_at", "system_fingerprint", "service_tier", "finish_reason",
		"stop_reason", "done_reason", "native_finish_reason", "status", "obfuscation", "timestamp", "time",
		"item_id", "response_id", "request_id", "trace_id", "message_id", "call_id", "tool_call_id":
		return label
	case "type":
		return kind
	case "content", "text", "delta", "message", "refusal", "transcript", "output", "response":
		return content
	case "tool_calls", "function_call", "tool_use", "arguments", "partial_json", "input":
		return tool
	case "logprobs", "completion_probabilities":
		return probs
	case "top_logprobs", "prompt_logprobs", "top_probs": // the last of llama.cpp, for post_sampling_probs
		return alternatives
	case "token", "logprob", "prob", "bytes", "rank", "decoded_token":
		return alternative
	case "error":
		return failure
	case "usage", "timings":
		return usage
	case "done":
		return done
	case "prompt_tokens":
		return promptTokens
	case "input_tokens":
		return inputTokens
	case "cached_tokens":
		return cachedTokens
	case "cache_read_input_tokens":
		return cacheRead
	case "cache_creation_input_tokens":
		return cacheCreation
	case "prompt_cache_hit_tokens":
		return cacheHit
	case "prompt_eval_count":
		return evalCount
	case "prompt_n":
		return promptN
	case "cache_n":
		return cacheN
	case "completion_tokens", "output_tokens", "eval_count", "predicted_n":
		return outputTokens
	}
	switch {
	case bytes.HasSuffix(name, []byte("index")):
		return index
	case bytes.HasPrefix(name, []byte("reasoning")), bytes.HasPrefix(name, []byte("thinking")), bytes.HasPrefix(name, []byte("thought")):
		return reasoning
	}
	return other
}

// below is the channel of what a member of that class holds, in an object of a
// channel: the first name that says something counts, content giving way to
// what is more exact.
func (c Channel) below(m class) Channel {
	if c != Raw && c != Content {
		return c
	}
	switch m {
	case content:
		return Content
	case reasoning:
		return Reasoning
	case tool:
		return ToolCalls
	case probs, alternatives:
		return Logprobs
	case failure:
		return ErrorBody
	}
	return c
}

// says reports a channel by which an engine answers.
func (c Channel) says() bool { return c == Content || c == Reasoning || c == ToolCalls }
