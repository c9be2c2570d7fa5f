package explore

import (
	"slices"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// oneSided is an engine whose prefill writes into decode's memory; with
// messages it sends pages instead.
func oneSided(pageSize, prefill, decode, context int) handoff.Config {
	c := messages(pageSize, prefill, decode, context)
	c.OneSided = true
	return c
}

func messages(pageSize, prefill, decode, context int) handoff.Config {
	return handoff.Config{PageSize: pageSize, PrefillPages: prefill, DecodePages: decode, Context: context}
}

var (
	// The first answer needs a page more than its prompt.
	twoOfFour = []Shape{{Tenant: "a", Tokens: 4, MaxNew: 2, Count: 1, ID: 1}, {Tenant: "b", Tokens: 6, MaxNew: 2, Count: 1, ID: 1}}
	// The same, for pools that hold only one of them at a time.
	twoTight = []Shape{{Tenant: "a", Tokens: 4, MaxNew: 2, Count: 1, ID: 1}, {Tenant: "b", Tokens: 5, MaxNew: 2, Count: 1, ID: 1}}
	// The first answer grows to all of a small pool.
	growing = []Shape{{Tenant: "a", Tokens: 3, MaxNew: 7, Count: 1, ID: 1}, {Tenant: "b", Tokens: 5, MaxNew: 2, Count: 1, ID: 1}}
	// The first client asks for more than a small pool ever holds.
	boundless = []Shape{{Tenant: "a", Tokens: 3, MaxNew: 13, Count: 1, ID: 1}, {Tenant: "b", Tokens: 5, MaxNew: 2, Count: 1, ID: 1}}
	twoPages  = []Shape{{Tenant: "a", Tokens: 5, MaxNew: 2, Count: 1, ID: 1}, {Tenant: "b", Tokens: 5, MaxNew: 2, Count: 1, ID: 1}}
	// The second answer is read once more after its last page was written to.
	twoLong     = []Shape{{Tenant: "a", Tokens: 4, MaxNew: 2, Count: 1, ID: 1}, {Tenant: "b", Tokens: 6, MaxNew: 3, Count: 1, ID: 1}}
	threeOfFour = []Shape{{Tenant: "a", Tokens: 4, MaxNew: 2, Count: 2, ID: 1}, {Tenant: "b", Tokens: 6, MaxNew: 2, Count: 1, ID: 1}}
	threeOfTwo  = []Shape{{Tenant: "a", Tokens: 5, MaxNew: 2, Count: 2, ID: 1}, {Tenant: "b", Tokens: 2, MaxNew: 2, Count: 1, ID: 1}}
	threeOfOne  = []Shape{{Tenant: "a", Tokens: 3, MaxNew: 2, Count: 2, ID: 1}, {Tenant: "b", Tokens: 3, MaxNew: 1, Count: 1, ID: 1}}
	// The last prompt is of the first length that prefill must refuse.
	tooLong = []Shape{
		{Tenant: "a", Tokens: 5, MaxNew: 2, Count: 1, ID: 1},
		{Tenant: "b", Tokens: 6, MaxNew: 3, Count: 1, ID: 1},
		{Tenant: "b", Tokens: 10, MaxNew: 3, Count: 1, ID: 2},
	}
	// The last prompt is one that prefill must refuse for another reason than its length.
	flawed = []Shape{
		{Tenant: "a", Tokens: 5, MaxNew: 2, Count: 1, ID: 1},
		{Tenant: "b", Tokens: 6, MaxNew: 3, Count: 1, ID: 2, Flawed: true},
	}
	// The last prompt is of the first length that decode must refuse.
	tooLongForDecode = []Shape{
		{Tenant: "a", Tokens: 4, MaxNew: 2, Count: 1, ID: 1},
		{Tenant: "b", Tokens: 10, MaxNew: 2, Count: 1, ID: 2},
	}
)

// Setups are explored by kvcanary verify model. The first of them are small:
// each takes a fraction of a second.
var Setups = []Setup{
	{
		Name: "pair", About: "one request each of two tenants, one-sided writes in two halves, one client that goes away",
		Engine: oneSided(4, 4, 4, 16), Shapes: twoOfFour, Bounds: Bounds{Cancels: 1}, Torn: true, Small: true,
	}, {
		Name: "pair-lossy", About: "one request each of two tenants, one-sided writes, one message lost or repeated, or one time limit",
		Engine: oneSided(4, 4, 4, 16), Shapes: twoOfFour, Bounds: Bounds{Losses: 1, Copies: 1, Expiries: 1, Total: 1}, Unordered: true, Small: true,
	}, {
		Name: "pair-crash", About: "one request each of two tenants, one-sided writes, one crash of a node",
		Engine: oneSided(4, 4, 4, 16), Shapes: twoOfFour, Bounds: Bounds{Crashes: 1}, Small: true,
	}, {
		Name: "tight", About: "one request each of two tenants, a pool of decode's that holds one of them, one client that goes away",
		Engine: oneSided(4, 4, 3, 16), Shapes: twoTight, Bounds: Bounds{Cancels: 1}, Small: true,
	}, {
		Name: "tight-growth", About: "the same, with an answer that grows to all of that pool",
		Engine: oneSided(4, 4, 3, 16), Shapes: growing, Bounds: Bounds{Cancels: 1}, Small: true,
	}, {
		Name: "tight-lossy", About: "the same as tight, with one message lost or repeated, or one time limit",
		Engine: oneSided(4, 4, 3, 16), Shapes: twoTight, Bounds: Bounds{Losses: 1, Copies: 1, Expiries: 1, Total: 1}, Unordered: true, Small: true,
	}, {
		Name: "tight-crash", About: "the same as tight, with one crash of a node",
		Engine: oneSided(4, 4, 3, 16), Shapes: twoTight, Bounds: Bounds{Crashes: 1}, Small: true,
	}, {
		Name: "tight-prefill", About: "one request each of two tenants, a pool of prefill's that holds one of them, one client that goes away",
		Engine: oneSided(4, 3, 4, 16), Shapes: twoPages, Bounds: Bounds{Cancels: 1}, Small: true,
	}, {
		Name: "too-long", About: "three requests of two tenants, one of them too long for prefill, one-sided writes",
		Engine: oneSided(4, 4, 6, 24), Shapes: tooLong, Small: true,
	}, {
		Name: "too-long-for-decode", About: "two requests, one of them too long for decode, one-sided writes",
		Engine: oneSided(4, 6, 4, 24), Shapes: tooLongForDecode, Bounds: Bounds{Cancels: 1}, Small: true,
	}, {
		Name: "flawed", About: "one request each of two tenants, of which prefill must refuse one though it is short, one-sided writes, one client that goes away",
		Engine: oneSided(4, 4, 4, 16), Shapes: flawed, Bounds: Bounds{Cancels: 1}, Small: true,
	}, {
		Name: "waiting", About: "three requests of two tenants, of which 6 pages of 2 tokens hold two, one-sided writes",
		Engine: oneSided(2, 6, 6, 12), Shapes: threeOfTwo, Small: true,
	}, {
		Name: "tight-boundless", About: "the same as tight-growth, with an answer that may be longer than that pool",
		Engine: oneSided(4, 4, 3, 16), Shapes: boundless, Bounds: Bounds{Cancels: 1}, Small: true,
	}, {
		Name: "tight-crashes", About: "the same as tight, with two crashes, of one node or of both",
		Engine: oneSided(4, 4, 3, 16), Shapes: twoTight, Bounds: Bounds{Crashes: 2}, Small: true,
	}, {
		Name: "pair-messages", About: "one request each of two tenants, pages as messages, which may be reordered, and one lost or repeated",
		Engine: messages(4, 4, 4, 16), Shapes: twoLong, Bounds: Bounds{Losses: 1, Copies: 1, Total: 1}, Unordered: true,
	}, {
		Name: "pair-aborts", About: "one request each of two tenants, one-sided writes, both clients go away",
		Engine: oneSided(4, 4, 4, 16), Shapes: twoOfFour, Bounds: Bounds{Cancels: 2},
	}, {
		Name: "three", About: "three requests of two tenants, a page each, sent as messages in order, one client that goes away",
		Engine: messages(4, 3, 3, 12), Shapes: threeOfOne, Bounds: Bounds{Cancels: 1},
	}, {
		Name: "three-one-sided", About: "the same with one-sided writes",
		Engine: oneSided(4, 3, 3, 12), Shapes: threeOfOne, Bounds: Bounds{Cancels: 1},
	}, {
		Name: "too-long-abort", About: "three requests of two tenants, one of them too long for prefill, and one client that goes away",
		Engine: oneSided(4, 4, 6, 24), Shapes: tooLong, Bounds: Bounds{Cancels: 1},
	}, {
		Name: "churn", About: "three requests of two tenants, 6 pages of 4 tokens, one-sided writes, one client that goes away",
		Engine: oneSided(4, 4, 6, 24), Shapes: threeOfFour, Bounds: Bounds{Cancels: 1},
	}, {
		Name: "waiting-abort", About: "the same as waiting, and one client that goes away",
		Engine: oneSided(2, 6, 6, 12), Shapes: threeOfTwo, Bounds: Bounds{Cancels: 1},
	}, {
		Name: "waiting-messages", About: "the same with pages as messages in order",
		Engine: messages(2, 6, 6, 12), Shapes: threeOfTwo, Bounds: Bounds{Cancels: 1},
	}, {
		Name: "crash", About: "three requests of two tenants, 6 pages of 4 tokens, one-sided writes, one crash of a node",
		Engine: oneSided(4, 4, 6, 24), Shapes: threeOfFour, Bounds: Bounds{Crashes: 1},
	}, {
		Name: "lossy", About: "one request each of two tenants, one-sided writes, one message lost, one repeated, one client that goes away",
		Engine: oneSided(4, 4, 4, 16), Shapes: twoOfFour, Bounds: Bounds{Cancels: 1, Losses: 1, Copies: 1}, Unordered: true,
	}, {
		Name: "three-lossy", About: "three requests of two tenants, a page each, one-sided writes, messages in any order, one of them lost",
		Engine: oneSided(4, 3, 3, 12), Shapes: threeOfOne, Bounds: Bounds{Losses: 1}, Unordered: true,
	}, {
		Name: "everything", About: "one request each of two tenants, one-sided writes in two halves, any two of: a client that goes away, a time limit, a message lost, one repeated, a crash",
		Engine: oneSided(4, 4, 4, 16), Shapes: twoOfFour,
		Bounds: Bounds{Cancels: 1, Expiries: 1, Losses: 1, Copies: 1, Crashes: 1, Total: 2}, Unordered: true, Torn: true,
	},
}

// Find returns the setup of a name.
func Find(name string) (Setup, bool) {
	if i := slices.IndexFunc(Setups, func(s Setup) bool { return s.Name == name }); i >= 0 {
		return Setups[i], true
	}
	return Setup{}, false
}

// With returns the setup with an engine that has these switches.
func (s Setup) With(sw handoff.Switches) Setup {
	s.Engine.Switches = sw
	return s
}
