package engine

import "context"

var tgi = Engine{
	Name: "tgi", ask: askTGI, line: tgiLine,
	names: []string{"text-generation-launcher", "text-generation-inference", "huggingface/text-generation-inference"},
	flags: map[string]setting{
		"max-input-tokens":       tgiMaxInput,
		"max-input-length":       tgiMaxInput,
		"max-total-tokens":       number(func(f *Facts) *Number { return &f.Context }),
		"max-batch-total-tokens": number(func(f *Facts) *Number { return &f.Pool }),
	},
	environ: map[string]setting{
		"MAX_INPUT_TOKENS":       tgiMaxInput,
		"MAX_INPUT_LENGTH":       tgiMaxInput,
		"MAX_TOTAL_TOKENS":       number(func(f *Facts) *Number { return &f.Context }),
		"MAX_BATCH_TOTAL_TOKENS": number(func(f *Facts) *Number { return &f.Pool }),
	},
	defaults: func(f *Facts) {
		f.Truncates.orDefault(false, refuses)
	},
}

// tgiMaxInput is the longest prompt that is served.
func tgiMaxInput(f *Facts, value, source string) {
	f.MaxInput = Number{}
	if n := parseCount(value); n > 0 {
		f.MaxInput = Number{Value: int(n) + 1, Source: source, Basis: Stated}
	}
}

// askTGI reads /info and the gauge of the pool that it has settled for when it
// warmed up.
func askTGI(ctx context.Context, a *asker, f *Facts) bool {
	var info struct {
		MaxInput count `json:"max_input_tokens"`
		MaxTotal count `json:"max_total_tokens"`
		Version  word  `json:"version"`
		Model    word  `json:"model_id"`
	}
	if !a.get(ctx, "/info", &info) || info.MaxTotal == 0 {
		return false
	}
	f.Context.least(info.MaxTotal, "GET /info max_total_tokens")
	if info.MaxInput > 0 {
		f.MaxInput.least(info.MaxInput+1, "GET /info max_input_tokens + 1")
	}
	f.Version.set(string(info.Version), "GET /info version")
	f.Pool.least(a.metrics(ctx).least("tgi_batch_max_total_tokens"), "GET /metrics tgi_batch_max_total_tokens")
	f.Truncates.orDefault(false, refuses)
	if info.Model != "" {
		f.Models = []Model{{string(info.Model), int(info.MaxTotal)}}
	}
	return true
}

// tgiLine reads "Setting max batch total tokens to 133696".
func tgiLine(f *Facts, line string) {
	f.Pool.least(after(line, "Setting max batch total tokens to "), "startup log max batch total tokens")
	f.Context.least(after(line, "max_total_tokens: Some("), "startup log max_total_tokens")
	if n := after(line, "max_input_tokens: Some("); n > 0 {
		f.MaxInput.least(n+1, "startup log max_input_tokens + 1")
	}
}
