package request

import "maps"

// The texts whose tokens the bytes of a body bound come in parts of these
// types. Every other type of part is opaque: what a later API adds is not
// taken for text before somebody has looked at it.
var textTypes = map[string]bool{
	"text": true, "input_text": true, "output_text": true, "summary_text": true, "reasoning_text": true, "refusal": true,
	"thinking": true, "reasoning": true, "message": true, "function": true, "custom": true,
	"tool_use": true, "tool_result": true, "tool_calls": true, "tool_call": true, "tool_reference": true,
	"function_call": true, "function_call_output": true, "custom_tool_call": true, "custom_tool_call_output": true,
}

// clientTools are the types of tools that clients run, or beginnings of them in
// clientToolsOf. What others find (the web, files, servers of tools) the engine
// puts into the prompt by itself, and nobody knows how much that will be.
var (
	clientTools   = map[string]bool{"": true, "function": true, "custom": true, "namespace": true, "local_shell": true, "apply_patch": true}
	clientToolsOf = []string{"computer", "bash_", "text_editor_", "memory_"}
)

// resultTypes are the answers of tools.
var resultTypes = map[string]bool{"tool_result": true, "function_call_output": true, "custom_tool_call_output": true}

// opaqueTypes are known to be opaque wherever they stand below a prompt.
var opaqueTypes = map[string]bool{
	"image": true, "image_url": true, "input_image": true, "image_embeds": true, "image_pil": true,
	"audio": true, "audio_url": true, "input_audio": true, "audio_embeds": true,
	"video": true, "video_url": true, "input_video": true,
	"file": true, "input_file": true, "document": true, "container_upload": true, "redacted_thinking": true, "computer_screenshot": true,
}

// opaqueNames are members that make an object opaque, whatever its type: some
// engines go by the member and not by the type. Those of mediaNames hold an
// address, or an object that does.
var (
	opaqueNames = []string{"image_pil", "image_embeds", "audio_embeds", "input_audio", "file_data", "encrypted_content"}
	mediaNames  = []string{"image_url", "image", "input_image", "audio_url", "audio", "video_url", "video", "input_video", "file", "file_url"}
)

// opaqueLists are members with one opaque part an item.
var opaqueLists = []string{"images", "image_data", "audio_data", "video_data", "multimodal_data", "multi_modal_data", "mm_data", "videos", "audios"}

// structured are members of the body that a chat template may write anew, as
// it does what stands deep inside a prompt: indented, one line for each item,
// so that what is nested deeply becomes many times as long.
var structured = []string{"tools", "functions", "documents", "response_format", "text", "chat_template_kwargs", "mcp_servers", "output_config", "output_format", "format"}

// bodies are the members that make an item of a list of inputs one of its own,
// and not a reference to one that is stored.
var bodies = []string{"role", "content", "output", "arguments", "input", "summary", "encrypted_content", "action", "actions", "code", "result", "queries", "tools", "operation", "approve"}

// plantPrompts makes places of everything that becomes a prompt.
func plantPrompts(root *node) {
	deep := &node{structured: true}
	deep.rest, deep.elem = deep, deep
	deep.child("type").look = lookKind
	addOpaque(deep, deep, false)
	// What stands in n is looked through like what stands deeper.
	through := func(n *node) { n.known, n.rest, n.elem = maps.Clone(deep.known), deep, deep }
	through(deep.known["type"])

	part := &node{fold: true, rest: deep, elem: deep}
	part.child("type").look = lookType
	through(part.child("text"))
	through(part.child("cache_control"))
	called := &node{look: lookCalled}
	through(called)
	part.known["name"] = named(called, "name")
	addOpaque(part, deep, true)
	content := &node{fold: true, elem: part, known: part.known, rest: deep}
	part.known["content"] = named(content, "content")
	stored := named(&node{look: lookStored}, "file_id")
	part.known["file_id"] = stored
	source := named(&node{known: maps.Clone(deep.known), rest: deep, elem: deep}, "source")
	source.child("url").look = lookURL
	source.known["file_id"] = stored
	part.known["source"] = source

	message := &node{fold: true, rest: deep, elem: deep}
	message.child("type").look = lookType
	addOpaque(message, deep, true)
	message.known["audio"].child("id").look = lookStored
	message.child("id").mark = markID
	for _, name := range bodies {
		c := message.child(name)
		c.mark = markBody
		through(c)
	}
	for _, name := range []string{"content", "output", "summary"} {
		c := *content
		c.name, c.path, c.mark = name, name, markBody
		message.known[name] = &c
	}
	for _, name := range []string{"reasoning_content", "thinking"} {
		through(message.child(name))
	}
	message.child("role").look = lookRole
	message.known["name"] = called
	message.child("arguments").structured, message.child("arguments").quoted = true, true
	call := named(&node{structured: true, fold: true}, "function")
	through(call)
	call.known["name"] = called
	one := &node{structured: true, fold: true}
	through(one)
	one.known["name"], one.known["function"] = called, call
	message.known["function_call"] = named(&node{structured: true, fold: true, known: call.known, rest: deep, elem: deep}, "function_call")
	calls := message.child("tool_calls")
	through(calls)
	calls.elem = one

	for _, name := range []string{"messages", "input"} {
		through(root.child(name))
		root.child(name).elem = message
	}
	for _, name := range []string{"system", "instructions"} {
		n := root.child(name)
		n.elem, n.known, n.rest, n.fold = part, part.known, deep, true
	}
	prompt := root.child("prompt")
	through(prompt)
	prompt.elem = &node{}
	through(prompt.elem)
	through(root.child("documents"))
	root.rest = &node{structured: true} // of what nobody knows, it may be
	for _, name := range structured {
		if n := root.known[name]; n != nil {
			n.structured = true
		}
	}
	for list, name := range map[string]string{"tools": "server_url", "mcp_servers": "url"} {
		if n := root.known[list]; n != nil {
			n.elem = &node{path: n.path + "[]"}
			n.elem.child(name).look = lookURL
			if n.elem.each = list == "mcp_servers"; !n.elem.each {
				n.elem.child("type").look = lookTool
			}
		}
	}
	addLists(root, deep)
}

func named(n *node, name string) *node {
	n.name, n.path = name, name
	return n
}

// addOpaque makes n one whose members may be opaque. In a part, media must not
// come from the engine's disk or from what the server keeps.
func addOpaque(n, deep *node, inPart bool) {
	for _, name := range opaqueNames {
		c := n.child(name)
		c.opaque, c.rest, c.elem = true, deep, deep
		if n != deep {
			c.known = deep.known
		}
	}
	for _, name := range mediaNames {
		c := n.child(name)
		c.opaque, c.rest, c.elem = true, deep, deep
		if inPart {
			c.look = lookURL
			c.child("url").look = lookURL
			c.child("file_id").look = lookStored
			// A video may be a list of pictures.
			c.elem = &node{name: name, path: c.path + "[]", look: lookURL, each: true, known: c.known, rest: deep}
			c.elem.elem = c.elem
		}
	}
	addLists(n, deep)
}

func addLists(n, deep *node) {
	for _, name := range opaqueLists {
		c := n.child(name)
		c.each, c.rest = true, deep
		c.elem = &node{each: true, rest: deep}
		c.elem.elem = c.elem
	}
}

// known are the fields that the documentation of each dialect has, beside those
// that the guard acts on: what may pass where the unknown is refused.
var known = map[string][]string{
	"openai": append([]string{"messages", "reasoning_effort", "verbosity", "modalities", "audio", "moderation", "prediction", "functions", "function_call", "web_search_options",
		"max_completion_tokens", "top_logprobs", "reasoning", "thinking", "enable_thinking", "chat_template_kwargs", "add_generation_prompt",
		"continue_final_message", "documents"}, sampled...),
	"completions": append([]string{"prompt", "suffix", "echo", "best_of"}, sampled...),
	"responses": append([]string{"input", "instructions", "reasoning", "text", "include", "max_output_tokens", "max_tool_calls", "top_logprobs", "image", "moderation", "access_programs"},
		sampled...),
	"anthropic": {"model", "messages", "system", "max_tokens", "metadata", "stop_sequences", "stream", "temperature", "thinking", "tool_choice", "tools",
		"top_k", "top_p", "service_tier", "mcp_servers", "output_config", "output_format", "cache_control", "inference_geo", "speed"},
	"ollama": {"model", "messages", "prompt", "suffix", "system", "tools", "format", "options", "stream", "think", "raw", "context", "images", "logprobs", "top_logprobs", "width", "height", "steps"},
}

// sampled are the fields of every OpenAI dialect, and of the engines that
// serve it.
var sampled = []string{"model", "stream", "stream_options", "max_tokens", "temperature", "top_p", "top_k", "min_p", "n", "stop", "seed",
	"presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias", "logprobs", "prompt_logprobs", "user", "safety_identifier", "metadata",
	"service_tier", "tools", "tool_choice", "parallel_tool_calls", "response_format", "stop_token_ids", "ignore_eos", "min_tokens", "skip_special_tokens",
	"spaces_between_special_tokens", "include_stop_str_in_output", "add_special_tokens", "guided_json", "guided_regex", "guided_choice", "guided_grammar",
	"structured_outputs", "regex", "ebnf", "json_schema", "grammar",
	// embeddings
	"input", "encoding_format", "dimensions",
	// vLLM, SGLang, TensorRT-LLM
	"use_beam_search", "length_penalty", "early_stopping", "thinking_token_budget", "include_reasoning", "allowed_token_ids", "bad_words", "logprob_token_ids", "watermarking",
	"return_tokens_as_token_ids", "return_token_ids", "return_prompt_token_ids", "return_token_offsets", "return_prompt_text", "repetition_detection",
	"top_p_min", "no_stop_trim", "stop_regex", "separate_reasoning", "stream_reasoning", "task", "enable_response_messages",
	// llama.cpp
	"typical_p", "repeat_penalty", "repeat_last_n", "dynatemp_range", "dynatemp_exponent", "dry_multiplier", "dry_base", "dry_allowed_length",
	"dry_penalty_last_n", "dry_sequence_breakers", "xtc_probability", "xtc_threshold", "mirostat", "mirostat_tau", "mirostat_eta", "n_probs", "min_keep",
	"t_max_predict_ms", "samplers", "timings_per_token", "post_sampling_probs", "n_indent", "reasoning_format"}
