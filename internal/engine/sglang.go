package engine

import (
	"context"
	"fmt"
	"strings"
)

// sglang also stands for what imitates its endpoints, such as this project's lab.
var sglang = Engine{
	Name: "sglang", ask: askSGLang, line: sglangLine,
	names: []string{"sglang", "lmsysorg/sglang"},
	flags: map[string]setting{
		"context-length":                               number(func(f *Facts) *Number { return &f.Context }),
		"max-total-tokens":                             atMost(func(f *Facts) *Number { return &f.Pool }),
		"page-size":                                    number(func(f *Facts) *Number { return &f.PageSize }),
		"num-reserved-decode-tokens":                   number(func(f *Facts) *Number { return &f.Reserve }),
		"disaggregation-mode":                          sglangRole,
		"disaggregation-transfer-backend":              text(func(f *Facts) *Text { return &f.Transfer }),
		"disaggregation-enable-kv-checksum":            on(func(f *Facts) *Flag { return &f.Checksum }),
		"allow-auto-truncate":                          on(func(f *Facts) *Flag { return &f.Truncates }),
		"disable-radix-cache":                          off(func(f *Facts) *Flag { return &f.PrefixCache }),
		"enable-hierarchical-cache":                    tier("hicache"),
		"enable-lmcache":                               tier("lmcache"),
		"disaggregation-decode-enable-offload-kvcache": tier("decode offload"),
	},
	defaults: sglangDefaults,
}

// sglangWorker is the part of SGLang's /server_info that states facts. The
// answer carries api_key and admin_api_key in clear beside them; a field that
// is not named here is not kept.
type sglangWorker struct {
	MaxTotalNumTokens count  `json:"max_total_num_tokens"`
	MaxReqInputLen    count  `json:"max_req_input_len"`
	ContextLength     count  `json:"context_length"` // null unless set by flag
	PageSize          count  `json:"page_size"`
	Reserved          *count `json:"num_reserved_decode_tokens"`
	Version           word   `json:"version"`
	Mode              word   `json:"disaggregation_mode"` // "null", "prefill" or "decode"
	Backend           word   `json:"disaggregation_transfer_backend"`
	Checksum          onOff  `json:"disaggregation_enable_kv_checksum"`
	AutoTruncate      onOff  `json:"allow_auto_truncate"`
	NoRadixCache      onOff  `json:"disable_radix_cache"`
	Hierarchical      onOff  `json:"enable_hierarchical_cache"`
	LMCache           onOff  `json:"enable_lmcache"`
	DecodeOffload     onOff  `json:"disaggregation_decode_enable_offload_kvcache"`
	// One entry a data-parallel rank.
	InternalStates []struct {
		MemoryUsage struct {
			TokenCapacity count `json:"token_capacity"`
		} `json:"memory_usage"`
	} `json:"internal_states"`
}

// askSGLang reads /server_info, or /get_server_info as older releases and the
// load balancers for prefill and decode workers have it. The latter merge
// their workers' answers under "prefill" and "decode".
func askSGLang(ctx context.Context, a *asker, f *Facts) bool {
	for _, path := range []string{"/server_info", "/get_server_info"} {
		var answer struct {
			sglangWorker
			Prefill []sglangWorker `json:"prefill"`
			Decode  []sglangWorker `json:"decode"`
		}
		if !a.get(ctx, path, &answer) {
			continue
		}
		from := "GET " + path + " "
		for i, w := range answer.Prefill {
			f.addWorker(w, &f.Pool, from+"prefill[].")
			f.addBehind(w, "prefill", fmt.Sprintf("%sprefill[%d].", from, i))
		}
		for i, w := range answer.Decode {
			f.addWorker(w, &f.DecodePool, from+"decode[].")
			f.addBehind(w, "decode", fmt.Sprintf("%sdecode[%d].", from, i))
		}
		if f.Pool.Value == 0 {
			f.addWorker(answer.sglangWorker, &f.Pool, from)
		} else {
			f.Router.set(true, from+"prefill[]")
			f.Role.set("both", from+"prefill[], decode[]")
		}
		if f.Pool.Value == 0 {
			*f = Facts{Engine: f.Engine}
			continue // another engine that happens to answer here
		}
		f.Version.set(either(f.Version, string(answer.Version)), either(Text{f.Version.Source, "", ""}, from+"version"))
		// The resolved window stands in the model list; /server_info has it
		// only where a flag set it.
		f.addListed(ctx, a)
		for i := range f.Behind {
			if b := &f.Behind[i]; b.Context.Value == 0 {
				b.Context = listedContext(f)
			}
			f.Behind[i].infer()
		}
		return true
	}
	return false
}

// listedContext is the window that a router lists: of whichever worker it
// asked, so the larger of those that are known.
func listedContext(f *Facts) Number {
	n := f.Context
	for _, m := range f.Models {
		if m.Context > n.Value {
			n = Number{Value: m.Context, Source: "GET /v1/models max_model_len of " + m.ID, Basis: Stated}
		}
	}
	for _, b := range f.Behind {
		if b.Context.Value > n.Value {
			n = b.Context
		}
	}
	return n
}

// either is what is known, or else w.
func either(known Text, w string) string {
	if known.Value != "" {
		return known.Value
	}
	return w
}

// addBehind keeps what a router says of one worker.
func (f *Facts) addBehind(w sglangWorker, role, from string) {
	if len(f.Behind) == maxModels {
		return
	}
	b := Facts{Engine: f.Engine}
	b.addWorker(w, &b.Pool, from)
	b.Role.set(role, from)
	f.Behind = append(f.Behind, b)
}

// addWorker takes the smaller of what is known and what one worker says.
func (f *Facts) addWorker(w sglangWorker, pool *Number, from string) {
	pool.least(w.MaxTotalNumTokens, from+"max_total_num_tokens")
	for _, s := range w.InternalStates {
		pool.least(s.MemoryUsage.TokenCapacity, from+"internal_states[].memory_usage.token_capacity")
	}
	f.MaxInput.least(w.MaxReqInputLen, from+"max_req_input_len")
	f.Context.least(w.ContextLength, from+"context_length")
	f.PageSize.least(w.PageSize, from+"page_size")
	if n := w.Reserved; n != nil && int(*n) >= f.Reserve.Value {
		f.Reserve = Number{Value: int(*n), Source: from + "num_reserved_decode_tokens", Basis: Stated}
	}
	if f.Version.Value == "" {
		f.Version.set(string(w.Version), from+"version")
	}
	if w.Mode != "" {
		f.Role.set(roleOf(string(w.Mode)), from+"disaggregation_mode")
	}
	f.Transfer.set(string(w.Backend), from+"disaggregation_transfer_backend")
	// One worker with a weakness is enough.
	worst(&f.Truncates, w.AutoTruncate, true, from+"allow_auto_truncate")
	worst(&f.Checksum, w.Checksum, false, from+"disaggregation_enable_kv_checksum")
	if o := w.NoRadixCache; o.known {
		worst(&f.PrefixCache, onOff{true, !o.on}, true, from+"disable_radix_cache")
	}
	for _, t := range []struct {
		name string
		is   onOff
		key  string
	}{{"hicache", w.Hierarchical, "enable_hierarchical_cache"}, {"lmcache", w.LMCache, "enable_lmcache"}, {"decode offload", w.DecodeOffload, "disaggregation_decode_enable_offload_kvcache"}} {
		if t.is.known {
			f.addTier(t.name, t.is.on, from+t.key)
		}
	}
}

// worst takes a switch of one of several workers: bad wins over good.
func worst(f *Flag, o onOff, bad bool, source string) {
	if o.known && (!f.Known || o.on == bad) {
		f.set(o.on, source)
	}
}

// roleOf is the role that a disaggregation mode names.
func roleOf(mode string) string {
	switch mode {
	case "prefill", "decode":
		return mode
	case "null", "none", "None":
		return "both"
	}
	return ""
}

func sglangRole(f *Facts, value, source string) { f.Role.set(roleOf(value), source) }

// sglangDefaults are those of release 0.5.
func sglangDefaults(f *Facts) {
	f.Role.orDefault("both", "SGLang's default")
	f.Truncates.orDefault(false, "SGLang's default")
	f.PrefixCache.orDefault(true, "SGLang's default")
	f.Checksum.orDefault(false, "SGLang's default")
	f.Offload.orDefault("none", "SGLang's default")
	if f.Reserve.Source == "" {
		f.Reserve = Number{Value: 512, Source: "SGLang's default", Basis: Inferred}
	}
}

// sglangLine reads what a worker logs once it has its pool:
// "max_total_num_tokens=171008, ..., context_len=169000, ...", and the
// arguments that it was started with: "server_args=ServerArgs(...)".
func sglangLine(f *Facts, line string) {
	const at = "startup log "
	f.Pool.least(after(line, "max_total_num_tokens="), at+"max_total_num_tokens")
	f.Context.least(after(line, "context_len="), at+"context_len")
	if !strings.Contains(line, "ServerArgs(") {
		return
	}
	f.Context.least(after(line, "context_length="), at+"context_length")
	f.PageSize.least(after(line, "page_size="), at+"page_size")
	f.Reserve.least(after(line, "num_reserved_decode_tokens="), at+"num_reserved_decode_tokens")
	f.Role.set(roleOf(wordAfter(line, "disaggregation_mode=")), at+"disaggregation_mode")
	f.Transfer.set(wordAfter(line, "disaggregation_transfer_backend="), at+"disaggregation_transfer_backend")
	f.Truncates.state(parseOnOff(wordAfter(line, "allow_auto_truncate=")), at+"allow_auto_truncate")
	f.Checksum.state(parseOnOff(wordAfter(line, "disaggregation_enable_kv_checksum=")), at+"disaggregation_enable_kv_checksum")
	if o := parseOnOff(wordAfter(line, "disable_radix_cache=")); o.known {
		f.PrefixCache.set(!o.on, at+"disable_radix_cache")
	}
}
