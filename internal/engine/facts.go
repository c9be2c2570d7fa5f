package engine

import (
	"encoding/json"
	"strings"
	"unicode"
)

// Facts are what is known of one engine or worker. What is not known is zero.
type Facts struct {
	Engine  string  `json:"engine"` // name of a row of All
	Version Text    `json:"version"`
	Models  []Model `json:"models,omitempty"`

	Context    Number `json:"context"`     // context window in tokens; with several models, the smallest
	Pool       Number `json:"pool"`        // smallest KV pool that a prompt is computed in, tokens; the least over data-parallel ranks
	DecodePool Number `json:"decode_pool"` // smallest KV pool of the decode workers, tokens; 0 where there are none
	MaxInput   Number `json:"max_input"`   // shortest prompt that is refused, tokens
	PageSize   Number `json:"page_size"`   // tokens a page of the pool holds

	// Role is "prefill" or "decode" where the two are apart, "both" where one worker does all.
	Role Text `json:"role,omitzero"`
	// Router says that others do the work: what it says of them is hearsay.
	Router Flag `json:"router,omitzero"`
	// Reserve is how many tokens decode keeps free beyond what it has reserved.
	// It may be 0: it is not known where it has no source.
	Reserve Number `json:"reserve,omitzero"`
	Slots   Number `json:"slots,omitzero"` // requests that a buffer is divided among, where it is

	Truncates    Flag `json:"truncates,omitzero"`     // a prompt that is too long is cut, silently
	ContextShift Flag `json:"context_shift,omitzero"` // an answer that reaches the window's end drops what came before
	Unified      Flag `json:"unified,omitzero"`       // one buffer for all slots
	PromptCache  Flag `json:"prompt_cache,omitzero"`  // prompts of idle slots are kept in memory and restored
	PoolOverride Flag `json:"pool_override,omitzero"` // the pool's size was set by hand, past the engine's own check

	PrefixCache   Flag `json:"prefix_cache,omitzero"`
	HashAlgorithm Text `json:"hash_algorithm,omitzero"` // of the prefix cache's keys
	Offload       Text `json:"offload,omitzero"`        // tiers behind the pool, commas between them; "none" for none
	Transfer      Text `json:"transfer,omitzero"`       // what moves KV between workers
	Checksum      Flag `json:"checksum,omitzero"`       // of transferred KV
	LoadFailure   Text `json:"load_failure,omitzero"`   // what a failed load of KV does: "fail" or "recompute"
	RandomIDs     Flag `json:"random_ids,omitzero"`     // the engine makes request ids unique by itself
	DevMode       Flag `json:"dev_mode,omitzero"`

	// Behind is what a router says of each worker behind it.
	Behind []Facts `json:"behind,omitempty"`
	// Open are debug and admin paths that answered without a key.
	Open []string `json:"open,omitempty"`
	// OpenChecked says that they were asked.
	OpenChecked bool `json:"-"`
}

// Basis says how far a fact can be relied on.
type Basis string

// The bases, the best first.
const (
	Measured Basis = "measured" // the engine was seen to behave so
	Stated   Basis = "stated"   // the engine, its log or its command line says so
	Inferred Basis = "inferred" // it follows from what is stated and from how this engine works
)

// Number is a count, where it comes from and how far it can be relied on.
type Number struct {
	Value  int    `json:"value"`            // 0 for not known
	Source string `json:"source,omitempty"` // for people: "GET /server_info max_total_num_tokens"
	Basis  Basis  `json:"basis,omitempty"`
	AtMost bool   `json:"at_most,omitempty"` // the engine may come to less than this
}

// Text is a word and where it comes from.
type Text struct {
	Value  string `json:"value"` // empty for not known
	Source string `json:"source,omitempty"`
	Basis  Basis  `json:"basis,omitempty"`
}

// Flag is something that is on or off, and where that comes from.
type Flag struct {
	Known  bool
	On     bool
	Source string
	Basis  Basis
}

// MarshalJSON writes a flag as the other facts are written; an unknown one has
// no value.
func (f Flag) MarshalJSON() ([]byte, error) {
	out := struct {
		Value  *bool  `json:"value"`
		Source string `json:"source,omitempty"`
		Basis  Basis  `json:"basis,omitempty"`
	}{Source: f.Source, Basis: f.Basis}
	if f.Known {
		out.Value = &f.On
	}
	return json.Marshal(out)
}

// Is reports whether the flag is known to be on, or known to be off.
func (f Flag) Is(on bool) bool { return f.Known && f.On == on }

// set makes a flag known, as somebody states it.
func (f *Flag) set(on bool, source string) { *f = Flag{true, on, source, Stated} }

// set takes a word that is not empty, as somebody states it. What is long or
// could drive a terminal is no word of an engine's.
func (t *Text) set(w, source string) {
	if w != "" && len(w) <= maxWord && !strings.ContainsFunc(w, unprintable) {
		*t = Text{w, source, Stated}
	}
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// least lowers n to a count that is known and smaller.
func (n *Number) least(c count, source string) { n.leastBy(c, source, Stated) }

func (n *Number) leastBy(c count, source string, by Basis) {
	if c > 0 && (n.Value == 0 || int(c) < n.Value) {
		*n = Number{Value: int(c), Source: source, Basis: by}
	}
}

// Model is one model that the engine serves.
type Model struct {
	ID      string `json:"id"`
	Context int    `json:"context"` // tokens, 0 for not known
}

// ContextOf is the context window of one model in tokens, or 0 if the engine
// does not say.
func (f *Facts) ContextOf(model string) int {
	for _, m := range f.Models {
		if m.ID == model {
			return m.Context
		}
	}
	return 0
}
