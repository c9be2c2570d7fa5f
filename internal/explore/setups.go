package explore

import (
	"slices"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

func engine(pageSize, prefill, decode, context int) handoff.Config {
	return handoff.Config{PageSize: pageSize, PrefillPages: prefill, DecodePages: decode, Context: context, OneSided: true}
}

// Small are setups that are explored in about a second: for tests, and for
// finding what a fault or a mutant breaks.
var Small = []Setup{
	{
		Name: "pair", About: "two tenants, one request each, and a client that may go away",
		Engine: engine(4, 4, 4, 16),
		Shapes: []Shape{{Tenant: "a", Tokens: 5, MaxNew: 2, Count: 1}, {Tenant: "b", Tokens: 6, MaxNew: 2, Count: 1}},
		Bounds: Bounds{Cancels: 1}, Torn: true,
	},
}

// Find returns the setup of a name.
func Find(name string) (Setup, bool) {
	if i := slices.IndexFunc(Small, func(s Setup) bool { return s.Name == name }); i >= 0 {
		return Small[i], true
	}
	return Setup{}, false
}
