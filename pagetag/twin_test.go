package pagetag

import (
	"crypto/aes"
	"crypto/hmac"
	"crypto/sha256"
	"math/big"
	"slices"
)

// The slow and obvious twins of what is fast in this package. They share no
// code with it but the XXH3 library and the AES block.

var two64 = new(big.Int).Lsh(big.NewInt(1), 64)

func slowFold(words []uint64, seed uint64) uint64 {
	h := new(big.Int).SetUint64(seed)
	xorShift := func(n uint) { h.Xor(h, new(big.Int).Rsh(h, n)) }
	times := func(by uint64) { h.Mul(h, new(big.Int).SetUint64(by)).Mod(h, two64) }
	for _, w := range words {
		h.Xor(h, new(big.Int).SetUint64(w))
		h.Add(h, new(big.Int).SetUint64(0x9e3779b97f4a7c15)).Mod(h, two64)
		xorShift(30)
		times(0xbf58476d1ce4e5b9)
		xorShift(27)
		times(0x94d049bb133111eb)
		xorShift(31)
	}
	return h.Uint64()
}

// slowHeader writes the layout table of the document byte by byte.
func slowHeader(t Tag) []byte {
	var b []byte
	put := func(v uint64, bytes int) {
		for range bytes {
			b = append(b, byte(v%256))
			v /= 256
		}
	}
	put(1, 1)
	put(uint64(t.Strength), 1)
	if t.Complete {
		put(1, 2)
	} else {
		put(0, 2)
	}
	put(uint64(t.Index), 4)
	put(uint64(t.Length), 4)
	put(uint64(t.Space), 4)
	for _, v := range []uint64{t.Epoch, t.Tenant, t.Request, t.Generation} {
		put(v, 8)
	}
	return b
}

func littleEndian(b []byte) uint64 {
	b = slices.Clone(b)
	slices.Reverse(b)
	return new(big.Int).SetBytes(b).Uint64()
}

func slowAccident(t Tag, low, high uint64) []byte {
	header := slowHeader(t)
	var words []uint64
	for len(header) > 0 {
		words, header = append(words, littleEndian(header[:8])), header[8:]
	}
	out := make([]byte, 0, 16)
	for _, v := range []uint64{low ^ slowFold(words, 0xbb67ae8584caa73b), high ^ slowFold(words, 0x3c6ef372fe94f82b)} {
		for range 8 {
			out = append(out, byte(v))
			v >>= 8
		}
	}
	return out
}

// slowAdversary is HKDF (RFC 5869), GMAC (NIST SP 800-38D) and CMAC (NIST SP
// 800-38B) as their documents write them.
func slowAdversary(t Tag, page []byte, key Key) []byte {
	mac := func(k []byte, parts ...[]byte) []byte {
		h := hmac.New(sha256.New, k)
		for _, p := range parts {
			h.Write(p)
		}
		return h.Sum(nil)
	}
	label := []byte("kvcanary pagetag v1 adversary")
	extracted := mac(make([]byte, 32), key[:])
	first := mac(extracted, label, []byte{1})
	second := mac(extracted, first, label, []byte{2})
	return slowCMAC(second, slices.Concat(slowHeader(t), slowGMAC(first, page)))
}

func encrypt(key, block []byte) []byte {
	c, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	out := make([]byte, 16)
	c.Encrypt(out, block)
	return out
}

func xor(a, b []byte) []byte {
	return new(big.Int).Xor(new(big.Int).SetBytes(a), new(big.Int).SetBytes(b)).FillBytes(make([]byte, 16))
}

func slowGMAC(key, data []byte) []byte {
	hashKey := encrypt(key, make([]byte, 16))
	padded := slices.Concat(data, make([]byte, (16-len(data)%16)%16))
	lengths := new(big.Int).Lsh(big.NewInt(int64(len(data))*8), 64).FillBytes(make([]byte, 16))
	sum := make([]byte, 16)
	for block := range slices.Chunk(append(padded, lengths...), 16) {
		sum = multiply(xor(sum, block), hashKey)
	}
	counter := make([]byte, 16) // a nonce of zeros and the counter 1
	counter[15] = 1
	return xor(sum, encrypt(key, counter))
}

// multiply is the product in the field of GCM, one bit after another; bit 0 is
// the highest bit of byte 0.
func multiply(x, y []byte) []byte {
	reduction := new(big.Int).Lsh(big.NewInt(0xe1), 120)
	z, v := new(big.Int), new(big.Int).SetBytes(y)
	for i := range 128 {
		if x[i/8]>>(7-i%8)&1 == 1 {
			z.Xor(z, v)
		}
		low := v.Bit(0)
		v.Rsh(v, 1)
		if low == 1 {
			v.Xor(v, reduction)
		}
	}
	return z.FillBytes(make([]byte, 16))
}

func slowCMAC(key, message []byte) []byte {
	subkey := new(big.Int).SetBytes(encrypt(key, make([]byte, 16)))
	subkey.Lsh(subkey, 1)
	if subkey.Bit(128) == 1 {
		subkey.SetBit(subkey, 128, 0)
		subkey.Xor(subkey, big.NewInt(0x87))
	}
	sum := make([]byte, 16)
	for len(message) > 16 {
		sum, message = encrypt(key, xor(sum, message[:16])), message[16:]
	}
	return encrypt(key, xor(xor(sum, message), subkey.FillBytes(make([]byte, 16))))
}

// slowMarks is the check of marks as the document words it: page by page, field
// by field, first difference first.
func slowMarks(marks []Mark, e Expected) (class Class, page int) {
	if e.Tokens == 0 || e.PageTokens == 0 || e.PageTokens > MaxLength {
		return BadExpectation, -1
	}
	var lengths []uint32
	for left := e.Tokens; left > 0; {
		take := min(left, uint64(e.PageTokens))
		lengths, left = append(lengths, uint32(take)), left-take
	}
	if len(marks) < len(lengths) {
		return ShortTable, -1
	}
	if len(marks) > len(lengths) {
		return LongTable, -1
	}
	o := e.Owner
	word := slowFold([]uint64{o.Epoch, o.Tenant, o.Request, o.Generation, uint64(o.Space)}, 0x6a09e667f3bcc908)
	for i, m := range marks {
		version, complete := m.Place/(1<<60), m.Place/(1<<56)%16
		length, index := m.Place/(1<<32)%(1<<24), m.Place%(1<<32)
		switch {
		case version == 0:
			return Absent, i
		case version != 1:
			return BadVersion, i
		case complete > 1:
			return Malformed, i
		case m.Owner != word:
			return WrongOwner, i
		case index != uint64(e.First)+uint64(i):
			return WrongIndex, i
		case complete == 0 || length < uint64(lengths[i]):
			return Incomplete, i
		case length > uint64(lengths[i]):
			return LongPage, i
		}
	}
	return 0, -1
}
