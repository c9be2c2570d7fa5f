// Package handoff decides who may use which KV page, and when.
//
// An engine with separate prefill and decode nodes hands a prompt's KV pages
// from one to the other. Three machines share the decision: [Router] admits and
// ends requests, [Prefill] owns the pool that prompts are computed in, [Decode]
// owns the pool that answers are read from. Each is given one [Event] at a time
// and says what follows as [Action]s; there is no clock, goroutine, network,
// randomness or page content here, so that every interleaving can be replayed.
//
// The flow of a request that is served:
//
//	client  Open      -> router
//	router  Submit    -> decode, prefill
//	prefill Hello     -> decode           the prompt has passed prefill's door
//	decode  Reserved  -> prefill          ceil(prompt/page) pages, by number, under a lease
//	prefill Run       -> its own node     compute the prompt's KV
//	prefill Page ...  -> decode           one page each, as a message or written into its memory
//	prefill Meta      -> decode           all are written: first token, how much was sent
//	decode  Verify    -> its own node     are the pages this room's?
//	decode  Ack       -> prefill          prefill's pages are free again
//	decode  Token ... -> router -> client
//	decode  Done      -> router -> client
//
// Links to and from the router keep order and lose nothing until one of their
// ends dies. What prefill and decode tell each other may be lost, repeated and
// reordered: that costs requests, never a page's ownership. Whatever ends a
// request early makes the router send Abort to both nodes, and both let go of
// all that it held; pages that a write may be under way to drain first.
//
// [Switches] make the machines wrong in known ways and add defences. With the
// zero value they are correct.
package handoff
