package canary

import "fmt"

const (
	tokenPrefix = "CANARY-"
	tokenChars  = 16
	tokenRadix  = 36
	// tokenHalf is what half of a token's characters can say: 36^8.
	tokenHalf = tokenRadix * tokenRadix * tokenRadix * tokenRadix * tokenRadix * tokenRadix * tokenRadix * tokenRadix

	digits36 = "abcdefghijklmnopqrstuvwxyz0123456789"
	digits32 = "abcdefghijklmnopqrstuvwxyz234567"
)

// Token is the short form: CANARY- and 16 characters a-z0-9 that carry the id
// and 48 bits by which it is known to be genuine.
func (c *Coder) Token(id ID) string {
	id.check()
	l, r := c.token.seal(id)
	var b [len(tokenPrefix) + tokenChars]byte
	copy(b[:], tokenPrefix)
	for i := len(b) - 1; i >= len(tokenPrefix); i-- {
		v := &r
		if i < len(tokenPrefix)+tokenChars/2 {
			v = &l
		}
		b[i] = digits36[*v%tokenRadix]
		*v /= tokenRadix
	}
	return string(b[:])
}

// openToken returns the id that 16 characters, lower-case, carry.
func (c *Coder) openToken(b *[tokenChars]byte) (ID, bool) {
	var v [2]uint64
	for i, ch := range b {
		d := uint64(ch - 'a')
		if ch <= '9' {
			d = uint64(ch-'0') + 26
		}
		v[i/(tokenChars/2)] = v[i/(tokenChars/2)]*tokenRadix + d
	}
	return c.token.open(v[0], v[1])
}

// maxPlace is the largest place of a nonce.
const maxPlace = 1<<(64-idBits) - 1

// Nonce returns a short word, like k7f3q-2mp4x, for place 0, 1, 2 ... of an
// exchange: something to ask back that no text holds by chance (50 bits). It
// does not say whose it is; compare it with the nonces that were sent.
func (c *Coder) Nonce(id ID, place int) string {
	id.check()
	if place < 0 || place > maxPlace {
		panic(fmt.Sprintf("kvcanary: internal error: nonce place %d out of range", place))
	}
	v := c.nonce.sum(uint64(place)<<idBits | uint64(id))
	var b [11]byte
	for i := range b {
		if i == 5 {
			b[i] = '-'
			continue
		}
		b[i] = digits32[v%32]
		v /= 32
	}
	return string(b[:])
}
