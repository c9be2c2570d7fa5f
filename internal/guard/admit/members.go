package admit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// members are those of a request's body, by name, undecoded.
type members map[string]json.RawMessage

// inert are members that add nothing to a prompt: how the answer is sampled and
// sent, and whose request it is. They are kept from the counter, which may not
// know them, and from what makes two prompts equal.
var inert = []string{
	"stream", "stream_options", "background", "include", "n", "best_of", "max_tokens", "max_completion_tokens", "max_output_tokens", "min_tokens",
	"temperature", "top_p", "top_k", "min_p", "typical_p", "seed", "stop", "stop_sequences", "stop_token_ids", "ignore_eos",
	"presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias", "logprobs", "top_logprobs",
	"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
	"rid", "request_id", "cache_salt", "extra_key", "cache_prompt", "priority", "max_tool_calls",
}

// parseMembers reads a body without what is inert.
func parseMembers(body []byte) (members, error) {
	var m members
	if err := json.Unmarshal(body, &m); err != nil || m == nil {
		return nil, fmt.Errorf("%w: its body is no JSON object", ErrNoCounter)
	}
	for _, name := range inert {
		delete(m, name)
	}
	return m, nil
}

// digest is equal for prompts of a tenant that are counted alike.
func (m members) digest(q Question) digest {
	h := sha256.New()
	put := func(p []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write(p)
	}
	put([]byte(q.Dialect))
	put([]byte(q.Tenant))
	put(fmt.Append(nil, q.Limit))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		put([]byte(name))
		put(m[name])
	}
	return digest(h.Sum(nil))
}

// only keeps members of some names. One that has no place among them may add to
// the prompt without being counted, which makes the whole uncountable.
func (m members) only(names []string) (members, error) {
	out := members{}
	for name, value := range m {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("%w: it has a field that the upstream's counter does not take", ErrNoCounter)
		}
		out[name] = value
	}
	return out, nil
}

// unproven are members that a template may write out beside tool definitions,
// and that older counters pass over.
var unproven = []string{"documents", "functions", "chat_template_kwargs"}

// beside are members that an engine puts into the prompt of a text completion
// beside the text itself.
var beside = []string{"suffix", "input_prefix", "input_suffix", "input_extra"}

// judged are members whose part in a prompt is known otherwise: their bytes are
// bounded as what a template writes anew, or they say how the answer is formed.
var judged = []string{
	"model", "tools", "documents", "functions", "chat_template_kwargs",
	"tool_choice", "parallel_tool_calls", "function_call", "structured_outputs", "guided_json", "guided_regex", "guided_choice",
	"guided_grammar", "json_schema", "regex", "ebnf", "grammar", "reasoning", "reasoning_effort", "thinking", "verbosity", "modalities",
}

// counted is the member that a counter of a dialect was tried with. An engine that
// finds another prompt beside it, as the input of embeddings beside messages, may
// read that one.
var counted = map[string]string{"openai": "messages", "completions": "prompt"}

// noSchema is up to how many bytes a response_format has no schema.
const noSchema = 40

// others is how many bytes the members have that a counter takes without having
// shown that it counts them: SGLang puts the suffix of a text completion into its
// prompt, and its tokenizer endpoint passes it over. Numbers, true and false are
// no text. A schema of the answer, which some renderers tell the model, may be
// written with a blank behind every comma and colon.
func (m members) others(dialect string) (n int64) {
	for name, value := range m {
		if len(value) == 0 || value[0] != '"' && value[0] != '{' && value[0] != '[' || name == counted[dialect] || slices.Contains(judged, name) {
			continue
		}
		if name == "response_format" && len(value) <= noSchema {
			continue
		}
		n += int64(len(name) + len(value))
		if name == "response_format" {
			n += int64(len(value))
		}
	}
	return n
}

// has reports whether any of some names is there.
func (m members) has(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return len(m[name]) > 0 && string(m[name]) != "null" })
}

// write is the body with the members in the order of their names.
func (m members) write() []byte {
	b, err := json.Marshal(map[string]json.RawMessage(m))
	if err != nil {
		panic("kvcanary: internal error: JSON that was read cannot be written: " + err.Error())
	}
	return b
}
