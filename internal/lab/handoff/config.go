package handoff

import "fmt"

// Config is what the machines of one engine agree on.
type Config struct {
	Context      int // tokens: prompt and answer together stay under it
	PageSize     int // tokens
	PrefillPages int
	DecodePages  int
	Policy       Policy
	// AutoTruncate makes the router cut a prompt that is too long instead of
	// letting it be refused, silently, as engines do when asked to.
	AutoTruncate bool
	// OneSided says that prefill's writes land in decode's pages without decode
	// being asked, in any order, until their completion, which prefill alone is
	// told of. Otherwise a page is a message that decode stores.
	OneSided bool
	Switches Switches
}

// margin is what SGLang keeps between the longest sequence and the longest prompt.
const margin = 5

// MaxRequest is the longest sequence that a node with a pool of that many
// tokens serves: min(context, pool) - 1, as SGLang has it.
func MaxRequest(context, pool int) int { return min(context, pool) - 1 }

// MaxInput is the prompt length that a node with a pool of that many tokens
// refuses, together with all longer ones: min(context, pool) - 6.
func MaxInput(context, pool int) int { return MaxRequest(context, pool) - margin }

// PrefillInput is the prompt length from which on prefill refuses.
func (c Config) PrefillInput() int { return MaxInput(c.Context, c.PrefillPages*c.PageSize) }

// DecodeInput is the prompt length from which on decode refuses.
func (c Config) DecodeInput() int { return MaxInput(c.Context, c.DecodePages*c.PageSize) }

// MaxInput is the prompt length from which on one of the nodes refuses.
func (c Config) MaxInput() int { return min(c.PrefillInput(), c.DecodeInput()) }

// pages is how many pages n tokens take.
func (c Config) pages(n int) int { return (n + c.PageSize - 1) / c.PageSize }

// answer is how long an answer to a prompt of n tokens may get in decode's pool.
func (c Config) answer(n, maxNew int) int {
	return min(maxNew, MaxRequest(c.Context, c.DecodePages*c.PageSize)-n)
}

// Validate says what cannot be served with.
func (c Config) Validate() error {
	switch {
	case c.PageSize < 1:
		return fmt.Errorf("page size is %d tokens: it must be at least 1", c.PageSize)
	case c.PrefillPages < 1 || c.DecodePages < 1:
		return fmt.Errorf("pools of %d and %d pages of %d tokens: each pool must hold at least one page",
			c.PrefillPages, c.DecodePages, c.PageSize)
	case c.MaxInput() < 2:
		return fmt.Errorf("context %d with pools of %d and %d tokens leaves no room for a prompt: "+
			"each must be at least 8", c.Context, c.PrefillPages*c.PageSize, c.DecodePages*c.PageSize)
	}
	return nil
}
