// Package prefix decides which blocks of computed KV are used again, and by whom.
//
// A block is a whole page of tokens. Its key is a hash chain: of the key of the
// block before it, its own tokens and everything else that its KV depends on
// (the adapter, the pictures behind placeholder tokens), begun with the tenant.
// The cache owns pages of its own, which are never cleared; what is in a page may
// be found once all of it has been written, and goes to a second tier, of blobs
// in slower memory, when its page is needed for something else.
//
// [Cache] is bookkeeping: it holds no KV and copies nothing. Whoever owns the
// memory asks it what to copy where, does that, and says so:
//
//	Find    -> a Loan: copy its blocks into the prompt's pages; Give it back
//	Plan    -> Puts: make way as each of them says
//	Commit  <- the blocks that have been written: they can be found from here on
//	Abandon <- nothing more will be written
//
// [Switches] make it wrong in known ways and add defences. With the zero value it
// is correct.
package prefix
