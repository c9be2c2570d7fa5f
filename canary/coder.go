package canary

// Coder mints and scans canaries of one key. It is safe for concurrent use.
type Coder struct {
	lx    *lexicon
	chain chain
	token perm
	nonce prf
}

// New returns the coder of a key.
func New(k Key) *Coder {
	return &Coder{
		lx:    theLexicon(),
		chain: newChain(&k),
		token: perm{f: newPRF(&k, "token"), half: tokenHalf},
		nonce: newPRF(&k, "nonce"),
	}
}
