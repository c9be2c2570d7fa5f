package pagetag

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
)

// KeySize is the length of a key in bytes.
const KeySize = 32

// Key is the secret of a keyed scheme. The ends of a handoff agree on a new one
// for each run; whoever has it can stamp any page for any owner.
type Key [KeySize]byte

// Format keeps the key out of logs, whatever the verb.
func (k Key) Format(f fmt.State, _ rune) { io.WriteString(f, "pagetag key") }

// MarshalText keeps the key out of JSON.
func (k Key) MarshalText() ([]byte, error) { return []byte("pagetag key"), nil }

// keyed makes digests by hash-then-PRF: a universal hash of the page under one
// secret, then a pseudorandom function of header and hash under another.
//
// The universal hash is AES-GMAC with a nonce that never changes. As a MAC that
// would be fatal: two tags of one nonce give away the hash key. Here no GMAC tag
// leaves; only its image under the second function does. So a page can be
// stamped again and again for the same owner and index, as one that grows is,
// with no nonce to keep unique, to store or to run out of.
//
// The second function is AES-CMAC (NIST SP 800-38B) of a message of exactly 64
// bytes: the header and the hash.
type keyed struct {
	hash cipher.AEAD
	prf  cipher.Block
	last [aes.BlockSize]byte // the subkey that CMAC adds to a last block that is full
}

// info separates these keys from all others made from the same secret.
const info = "kvcanary pagetag v1 adversary"

func newKeyed(k Key) *keyed {
	secret, err := hkdf.Key(sha256.New, k[:], nil, info, 2*KeySize)
	must(err)
	block, err := aes.NewCipher(secret[:KeySize])
	must(err)
	hash, err := cipher.NewGCM(block)
	must(err)
	prf, err := aes.NewCipher(secret[KeySize:])
	must(err)
	out := &keyed{hash: hash, prf: prf}
	prf.Encrypt(out.last[:], out.last[:])
	double(&out.last)
	return out
}

// must is for calls that fail only when lengths are wrong, and they are constant.
func must(err error) {
	if err != nil {
		panic("kvcanary: internal error: " + err.Error())
	}
}

// double multiplies by x in the field of CMAC.
func double(b *[aes.BlockSize]byte) {
	carry := b[0] >> 7
	for i := range b {
		b[i] <<= 1
		if i+1 < len(b) {
			b[i] |= b[i+1] >> 7
		}
	}
	b[len(b)-1] ^= 0x87 * carry
}

func (k *keyed) digest(header *[headerSize]byte, page []byte) [DigestSize]byte {
	// In one piece on the heap, because ciphers are called through interfaces.
	work := new(struct {
		nonce [12]byte
		hash  [aes.BlockSize]byte
		chain [aes.BlockSize]byte
	})
	k.hash.Seal(work.hash[:0], work.nonce[:], nil, page)
	for i := 0; i < headerSize; i += aes.BlockSize {
		subtle.XORBytes(work.chain[:], work.chain[:], header[i:i+aes.BlockSize])
		k.prf.Encrypt(work.chain[:], work.chain[:])
	}
	subtle.XORBytes(work.chain[:], work.chain[:], work.hash[:])
	subtle.XORBytes(work.chain[:], work.chain[:], k.last[:])
	k.prf.Encrypt(work.chain[:], work.chain[:])
	return work.chain
}
