package lab

import (
	"fmt"
	"runtime"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/node"
	"github.com/kvcanary/kvcanary/internal/lab/prefix"
)

// Config says what engine to start. Sizes are in tokens.
type Config struct {
	Context     int
	PrefillPool int
	DecodePool  int
	PageSize    int // pools hold as many whole pages as fit
	// Policy is the order in which free pages are used again: "lifo", "fifo"
	// or "sort"; empty is sort, as SGLang does when it is disaggregated.
	Policy string
	// Faults and Defences are switched on by "name" or "name:mode".
	Faults   []string
	Defences []string
	// PrefixCache is how much computed KV prefill keeps for prompts that begin
	// alike, and Tier how much of what it has no room for any more, in slower
	// memory. 0 is none, except that a fault which needs one gets a small one.
	PrefixCache int
	Tier        int
	// PrefillRate is how many tokens prefill computes in a second at most, so that
	// a prompt takes as long as it would on an engine with a large model; 0 is as
	// many as it can.
	PrefillRate int
	// DecodeRate is how many steps decode computes in a second at most, so that
	// answers are under way at the same time, as a large model's are; 0 is as many
	// as it can.
	DecodeRate int
	// AutoTruncate cuts a prompt that is too long, silently, instead of refusing it.
	AutoTruncate bool
	// Workers is how many goroutines each node computes with; 0 is one a processor.
	Workers int
	// OneSided has prefill write straight into decode's pool, which is memory
	// that both have mapped, as RDMA does. Otherwise pages are messages.
	OneSided bool
	// Lag is how long such a write takes at most; they end in any order.
	Lag time.Duration
	// Restart starts a node that dies anew, after all requests under way have
	// ended with an error. Otherwise the engine ends with it.
	Restart bool
	// Replaced, if set, is told of each node that is started anew what its
	// process died of.
	Replaced func(role string, why error)
	// TimeLimit is how long a request may take; 0 is for ever.
	TimeLimit time.Duration
	// AnswerCache has the gateway keep answers: "exact" for the same prompt,
	// "semantic" for one much like it, both for the same tenant only.
	AnswerCache string
	// SlotCache has each of prefill's slots keep so many tokens of a prompt, for
	// the next one of the same tenant that begins like it; 0 keeps none.
	SlotCache int
	// Now is the clock that ids come from, where they do; nil is [time.Now].
	Now func() time.Time
	// Trace is a file that every step of every machine is appended to; empty traces nothing.
	Trace string
}

// Small is an engine with the incident's proportions that fits anywhere.
func Small() Config {
	return Config{Context: 16_384, PrefillPool: 10_640, DecodePool: 20_480, PageSize: 16}
}

// Full is an engine with the incident's own numbers. The decode pool is an assumption: it
// is larger than the context, as it must have been for the incident to happen.
func Full() Config {
	return Config{Context: 1_048_576, PrefillPool: 681_280, DecodePool: 1_310_720, PageSize: 64}
}

// setup reads the configuration; the error says what is wrong with it.
func (c Config) setup() (node.Setup, error) {
	policy := handoff.Sort
	if c.Policy != "" {
		var err error
		if policy, err = handoff.ParsePolicy(c.Policy); err != nil {
			return node.Setup{}, err
		}
	}
	h := handoff.Config{Context: c.Context, PageSize: c.PageSize, Policy: policy, AutoTruncate: c.AutoTruncate, OneSided: c.OneSided}
	if c.PageSize > 0 {
		h.PrefillPages, h.DecodePages = c.PrefillPool/c.PageSize, c.DecodePool/c.PageSize
	}
	if err := h.Validate(); err != nil {
		return node.Setup{}, err
	}
	on, err := c.settings()
	if err != nil {
		return node.Setup{}, err
	}
	h.Switches = on.Handoff
	if len(c.Faults) > 0 { // as handoff has it for its own
		h.Switches.Without |= handoff.Coverage | handoff.Generations | handoff.TagsByWriter
	}
	reuse, err := c.prefix(on)
	if err != nil {
		return node.Setup{}, err
	}
	slots, err := c.slotTokens(on)
	if err != nil {
		return node.Setup{}, err
	}
	workers := c.Workers
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	return node.Setup{Handoff: h, Also: on.Node, Prefix: reuse, SlotTokens: slots, Workers: workers, Trace: c.Trace, Lag: c.Lag, PrefillRate: max(0, c.PrefillRate), DecodeRate: max(0, c.DecodeRate)}, nil
}

// Sizes of the prefix cache where a fault needs one and no other is asked for,
// tokens: small beside the pools, so that little traffic pushes a prompt out of
// the first tier, and out of the second where that has to be.
const (
	cacheTokens = 6144
	tierTokens  = 12_288
	largeTier   = 65_536 // for a fault that shows while a prompt is in there
)

// prefix is the setup of the prefix cache.
func (c Config) prefix(on Settings) (prefix.Config, error) {
	if c.PrefixCache < 0 || c.Tier < 0 {
		return prefix.Config{}, fmt.Errorf("prefix cache of %d tokens with a second tier of %d: neither can be negative", c.PrefixCache, c.Tier)
	}
	cache, tier := c.PrefixCache, c.Tier
	if cache == 0 && (tier > 0 || on.Prefix.Needed()) {
		cache = cacheTokens
	}
	if tier == 0 && on.Prefix.NeedsTier() {
		tier = largeTier
		if on.Prefix.Has(prefix.StaleBlob) {
			tier = tierTokens
		}
	}
	on.Prefix.Elsewhere = len(c.Faults) > 0
	p := prefix.Config{PageSize: c.PageSize, Switches: on.Prefix}
	if cache > 0 {
		p.Pages, p.Blobs = max(1, cache/c.PageSize), tier/c.PageSize
	}
	return p, nil
}

// slotTokens is how much each slot keeps: whole pages, and some where a fault
// needs it.
func (c Config) slotTokens(on Settings) (int, error) {
	tokens := c.SlotCache
	switch {
	case tokens < 0:
		return 0, fmt.Errorf("slot cache of %d tokens: it cannot be negative", tokens)
	case tokens == 0 && on.Node.Faults.Any(node.DirtyRestore|node.DirtyTail):
		tokens = cacheTokens
	case tokens == 0:
		return 0, nil
	}
	return max(1, tokens/c.PageSize) * c.PageSize, nil
}

// settings reads the names of faults and defences.
func (c Config) settings() (on Settings, err error) {
	switch on.Gateway.Cache = CacheKind(c.AnswerCache); on.Gateway.Cache {
	case "", CacheExact, CacheSemantic:
	default:
		return on, fmt.Errorf("unknown answer cache %q: use exact or semantic", c.AnswerCache)
	}
	on.Faulty, on.Gateway.Faulty, on.Node.Faulty = len(c.Faults) > 0, len(c.Faults) > 0, len(c.Faults) > 0
	for _, spec := range c.Faults {
		apply, err := ParseFault(spec)
		if err != nil {
			return on, err
		}
		apply(&on)
	}
	for _, spec := range c.Defences {
		apply, err := ParseDefence(spec)
		if err != nil {
			return on, err
		}
		apply(&on)
	}
	return on, nil
}

// begin reads a configuration and opens the trace.
func begin(c Config) (node.Setup, *node.Tracer, error) {
	s, err := c.setup()
	if err != nil {
		return s, nil, err
	}
	t, err := startTrace(s)
	return s, t, err
}

// startTrace opens the router's trace, with the engine's setup as its first line.
func startTrace(s node.Setup) (*node.Tracer, error) {
	t, err := node.OpenTrace(s.Trace, handoff.ToRouter)
	if err != nil {
		return nil, err
	}
	t.Begin(s.Handoff)
	return t, t.Flush()
}

// Validate says what is wrong with a configuration.
func (c Config) Validate() error {
	if _, err := c.setup(); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	return nil
}
