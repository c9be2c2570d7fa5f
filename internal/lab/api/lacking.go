package api

import "slices"

// neutral is the value of a field that this engine lacks: it may be present
// with a value that asks for nothing.
type neutral string

// UnmarshalJSON implements [encoding/json.Unmarshaler]. It keeps enough to
// tell a neutral value from others.
func (n *neutral) UnmarshalJSON(p []byte) error {
	*n = neutral(p[:min(len(p), 32)])
	return nil
}

// lacking are the fields that change an answer in ways that this engine
// cannot. Fields that are in neither struct are ignored, as SGLang does.
type lacking struct {
	N                    neutral `json:"n"`
	BestOf               neutral `json:"best_of"`
	Tools                neutral `json:"tools"`
	Functions            neutral `json:"functions"`
	ToolChoice           neutral `json:"tool_choice"`
	Logprobs             neutral `json:"logprobs"`
	TopLogprobs          neutral `json:"top_logprobs"`
	Echo                 neutral `json:"echo"`
	Suffix               neutral `json:"suffix"`
	ResponseFormat       neutral `json:"response_format"`
	Modalities           neutral `json:"modalities"`
	Audio                neutral `json:"audio"`
	TopP                 neutral `json:"top_p"`
	TopK                 neutral `json:"top_k"`
	MinP                 neutral `json:"min_p"`
	FrequencyPenalty     neutral `json:"frequency_penalty"`
	PresencePenalty      neutral `json:"presence_penalty"`
	RepetitionPenalty    neutral `json:"repetition_penalty"`
	LogitBias            neutral `json:"logit_bias"`
	MinTokens            neutral `json:"min_tokens"`
	IgnoreEOS            neutral `json:"ignore_eos"`
	Regex                neutral `json:"regex"`
	EBNF                 neutral `json:"ebnf"`
	JSONSchema           neutral `json:"json_schema"`
	SessionParams        neutral `json:"session_params"`
	LoraPath             neutral `json:"lora_path"`
	ReturnHiddenStates   neutral `json:"return_hidden_states"`
	ContinueFinalMessage neutral `json:"continue_final_message"`
}

// first names a field that asks for something, or "".
func (l *lacking) first() string {
	zero := []string{"0", "0.0"}
	one := []string{"1", "1.0"}
	no := []string{"false"}
	empty := []string{"[]", `""`, "{}"}
	for _, f := range []struct {
		name  string
		value neutral
		means []string
	}{
		{"n other than 1", l.N, one},
		{"best_of other than 1", l.BestOf, one},
		{"tools", l.Tools, empty},
		{"functions", l.Functions, empty},
		{"tool_choice", l.ToolChoice, []string{`"none"`, `"auto"`}},
		{"logprobs", l.Logprobs, no},
		{"top_logprobs", l.TopLogprobs, zero},
		{"echo", l.Echo, no},
		{"suffix", l.Suffix, empty},
		{"response_format other than text", l.ResponseFormat, []string{`{"type":"text"}`, `{"type": "text"}`}},
		{"modalities other than text", l.Modalities, []string{`["text"]`}},
		{"audio", l.Audio, nil},
		{"top_p other than 1", l.TopP, one},
		{"top_k", l.TopK, []string{"-1"}},
		{"min_p", l.MinP, zero},
		{"frequency_penalty", l.FrequencyPenalty, zero},
		{"presence_penalty", l.PresencePenalty, zero},
		{"repetition_penalty", l.RepetitionPenalty, one},
		{"logit_bias", l.LogitBias, empty},
		{"min_tokens", l.MinTokens, zero},
		{"ignore_eos", l.IgnoreEOS, no},
		{"regex", l.Regex, empty},
		{"ebnf", l.EBNF, empty},
		{"json_schema", l.JSONSchema, empty},
		{"session_params", l.SessionParams, empty},
		{"lora_path", l.LoraPath, empty},
		{"return_hidden_states", l.ReturnHiddenStates, no},
		{"continue_final_message", l.ContinueFinalMessage, no},
	} {
		if f.value != "" && f.value != "null" && !slices.Contains(f.means, string(f.value)) {
			return f.name
		}
	}
	return ""
}
