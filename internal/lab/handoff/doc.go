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
//	decode  Reserved  -> prefill          ceil(prompt/page) pages, by number
//	prefill Run       -> its own node     compute the prompt's KV
//	prefill Page ...  -> decode           one page each, then
//	prefill Meta      -> decode           first token, how much was sent
//	decode  Ack       -> prefill          prefill's pages are free again
//	decode  Token ... -> router -> client
//	decode  Done      -> router -> client
//
// Links between two roles keep order. Whatever ends a request early makes the
// router send Abort to both nodes, and both let go of all that it held.
//
// [Switches] make the machines wrong in known ways and add defences. With the
// zero value they are correct.
package handoff
