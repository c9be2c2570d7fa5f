package engine

import (
	"context"
	"strings"
)

var llamacpp = Engine{
	Name: "llamacpp", ask: askLlamaCpp, line: llamaCppLine,
	names: []string{"llama-server", "llama.cpp", "ggml-org/llama.cpp"},
	flags: map[string]setting{
		"c":                llamaCppContext,
		"ctx-size":         llamaCppContext,
		"np":               number(func(f *Facts) *Number { return &f.Slots }),
		"parallel":         number(func(f *Facts) *Number { return &f.Slots }),
		"kvu":              on(func(f *Facts) *Flag { return &f.Unified }),
		"kv-unified":       on(func(f *Facts) *Flag { return &f.Unified }),
		"no-kv-unified":    off(func(f *Facts) *Flag { return &f.Unified }),
		"context-shift":    on(func(f *Facts) *Flag { return &f.ContextShift }),
		"no-context-shift": off(func(f *Facts) *Flag { return &f.ContextShift }),
		"cache-ram":        llamaCppCache,
		"cram":             llamaCppCache,
	},
	environ: map[string]setting{
		"LLAMA_ARG_CTX_SIZE":      llamaCppContext,
		"LLAMA_ARG_N_PARALLEL":    number(func(f *Facts) *Number { return &f.Slots }),
		"LLAMA_ARG_KV_UNIFIED":    on(func(f *Facts) *Flag { return &f.Unified }),
		"LLAMA_ARG_CONTEXT_SHIFT": on(func(f *Facts) *Flag { return &f.ContextShift }),
		"LLAMA_ARG_CACHE_RAM":     llamaCppCache,
	},
	defaults: llamaCppDefaults,
}

// llamaCppContext is the buffer of all slots. Which part of it a slot has is
// decided once both it and the slots are known.
func llamaCppContext(f *Facts, value, source string) {
	f.Pool = Number{}
	if n := parseCount(value); n > 0 {
		f.Pool = Number{Value: int(n), Source: source, Basis: Stated}
	}
}

// llamaCppCache takes the size of the cache in MiB: 0 switches it off.
func llamaCppCache(f *Facts, value, source string) { f.PromptCache.set(value != "0", source) }

// llamaCppDefaults are those of builds of 2026. A slot has its share of the
// buffer, or sees all of it where it is one for all.
func llamaCppDefaults(f *Facts) {
	const by = "llama-server's default"
	if f.Slots.Value == 0 {
		f.Unified.orDefault(true, by+" where --parallel is not set")
	} else {
		f.Unified.orDefault(false, by+" where --parallel is set")
	}
	f.ContextShift.orDefault(false, by)
	f.PromptCache.orDefault(true, by)
	f.Truncates.orDefault(false, refuses)
	if pool, slots := f.Pool, max(f.Slots.Value, 1); pool.Value > 0 && f.Context.Value == 0 {
		if f.Unified.On {
			slots = 1
		}
		f.Context = Number{Value: pool.Value / slots, Source: pool.Source + " a slot", Basis: Inferred}
	}
}

// llamaCppLine reads "initializing, n_slots = 4, n_ctx_slot = 131072,
// kv_unified = 'true'".
func llamaCppLine(f *Facts, line string) {
	const at = "startup log "
	slot := after(line, "n_ctx_slot = ")
	if slot == 0 {
		if n := after(line, "build: "); n > 0 && strings.Contains(line, "(") {
			f.Version.set("b"+numeral(tailOf(line, "build: ")), at+"build")
		}
		return
	}
	f.Context.least(slot, at+"n_ctx_slot")
	f.Slots.least(after(line, "n_slots = "), at+"n_slots")
	f.Unified.state(parseOnOff(wordAfter(line, "kv_unified = ")), at+"kv_unified")
	switch {
	case f.Unified.Is(true):
		f.Pool = Number{Value: int(slot), Source: at + "n_ctx_slot, one buffer for all slots", Basis: Stated}
	case f.Unified.Is(false):
		f.Pool = Number{Value: int(times(slot, max(count(f.Slots.Value), 1))), Source: at + "n_ctx_slot * n_slots", Basis: Inferred}
	}
}

// askLlamaCpp reads /props of llama.cpp's server. The window stated there is
// that of one slot. How large the cache behind all slots is stands nowhere:
// slots may have a share each or all of it in common.
func askLlamaCpp(ctx context.Context, a *asker, f *Facts) bool {
	var props struct {
		Settings *struct {
			Context count `json:"n_ctx"`
		} `json:"default_generation_settings"`
		Slots count `json:"total_slots"`
		Build word  `json:"build_info"`
	}
	if !a.get(ctx, "/props", &props) || props.Settings == nil || props.Slots == 0 {
		return false
	}
	f.Version.set(string(props.Build), "GET /props build_info")
	f.Slots.least(props.Slots, "GET /props total_slots")
	f.Truncates.orDefault(false, refuses)
	f.addListed(ctx, a)
	f.Context.least(props.Settings.Context, "GET /props default_generation_settings.n_ctx")
	for i := range f.Models {
		f.Models[i].Context = int(props.Settings.Context) // it serves one model, under all its names
	}
	return true
}
