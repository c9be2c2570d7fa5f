package canary

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// prf is SipHash-2-4 of one 64-bit block, under a key of its own. All inputs
// have the same length, so the length block that SipHash appends to messages
// of any length is left out. Aumasson and Bernstein, "SipHash: a fast
// short-input PRF", 2012.
type prf struct{ v0, v1, v2, v3 uint64 }

// newPRF derives the function that the key has for one use.
func newPRF(k *Key, use string) prf {
	b := derive(k, use, 16)
	k0, k1 := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	return prf{
		v0: k0 ^ 0x736f6d6570736575,
		v1: k1 ^ 0x646f72616e646f6d,
		v2: k0 ^ 0x6c7967656e657261,
		v3: k1 ^ 0x7465646279746573,
	}
}

// derive returns n bytes of key material for one use, by HKDF-SHA256.
func derive(k *Key, use string, n int) []byte {
	b, err := hkdf.Key(sha256.New, k[:], nil, "kvcanary canary v1: "+use, n)
	if err != nil {
		panic("kvcanary: internal error: key derivation: " + err.Error())
	}
	return b
}

// sum is the function's value at m. The rounds are written out because the
// compiler does not unroll loops and this is the cost of every word.
func (p *prf) sum(m uint64) uint64 {
	v0, v1, v2, v3 := sipRound(p.v0, p.v1, p.v2, p.v3^m)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0^m, v1, v2^0xff, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	return v0 ^ v1 ^ v2 ^ v3
}

func sipRound(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v2 += v3
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 = bits.RotateLeft64(v0, 32) + v3
	v2 += v1
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	return v0, v1, bits.RotateLeft64(v2, 32), v3
}

// perm is a keyed permutation of pairs of numbers below half: a Feistel
// network that adds instead of XORing, so that half need not be a power of
// two. An id is sealed as the number L + half*R, which leaves most of R zero;
// that redundancy is the authenticator, since a value not made by seal opens
// to an id only by chance.
type perm struct {
	f    prf
	half uint64
}

// permRounds is more than the 8 that proofs for balanced networks want and
// what NIST SP 800-38G takes for FF1.
const permRounds = 10

func (p *perm) round(i int, x uint64) uint64 { return p.f.sum(uint64(i)<<56|x) % p.half }

// seal maps an id to two numbers below half.
func (p *perm) seal(id ID) (l, r uint64) {
	l, r = uint64(id)%p.half, uint64(id)/p.half
	for i := range permRounds {
		l, r = r, (l+p.round(i, r))%p.half
	}
	return l, r
}

// open is the inverse of seal; ok is false for what seal never returns.
func (p *perm) open(l, r uint64) (id ID, ok bool) {
	for i := permRounds - 1; i >= 0; i-- {
		l, r = (r+p.half-p.round(i, l))%p.half, l
	}
	if r > (1<<idBits-1)/p.half {
		return 0, false
	}
	v := l + p.half*r
	return ID(v), v < 1<<idBits
}
