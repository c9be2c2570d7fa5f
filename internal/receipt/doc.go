// Package receipt seals what was decided and seen, so that a stranger can check
// it offline.
//
// A receipt is an in-toto statement in a DSSE envelope, signed with Ed25519. Its
// digest is an entry of a transparency log on this machine: tiles and signed
// checkpoints in the forms of c2sp.org (tlog-tiles, tlog-checkpoint, signed-note),
// and a proof of the entry is one text file (tlog-proof).
//
// What it proves is order and integrity: that this was sealed, before that, and
// that nothing was changed since. That the log is the only one, and that nothing
// was left out before it was sealed, takes a witness: somebody else who
// cosigns checkpoints (tlog-cosignature). A [Policy] says which of them are
// believed and how many are needed; package witness asks them.
package receipt
