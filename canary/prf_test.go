package canary

import (
	"encoding/binary"
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// slowSip is SipHash-2-4 as its paper has it; without the last block if bare.
func slowSip(k0, k1 uint64, msg []byte, bare bool) uint64 {
	v := [4]uint64{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573}
	rounds := func(n int) {
		for range n {
			v[0] += v[1]
			v[1] = bits.RotateLeft64(v[1], 13)
			v[1] ^= v[0]
			v[0] = bits.RotateLeft64(v[0], 32)
			v[2] += v[3]
			v[3] = bits.RotateLeft64(v[3], 16)
			v[3] ^= v[2]
			v[0] += v[3]
			v[3] = bits.RotateLeft64(v[3], 21)
			v[3] ^= v[0]
			v[2] += v[1]
			v[1] = bits.RotateLeft64(v[1], 17)
			v[1] ^= v[2]
			v[2] = bits.RotateLeft64(v[2], 32)
		}
	}
	block := func(m uint64) {
		v[3] ^= m
		rounds(2)
		v[0] ^= m
	}
	n := len(msg)
	for ; len(msg) >= 8; msg = msg[8:] {
		block(binary.LittleEndian.Uint64(msg))
	}
	if !bare {
		var last [8]byte
		copy(last[:], msg)
		last[7] = byte(n)
		block(binary.LittleEndian.Uint64(last[:]))
	}
	v[2] ^= 0xff
	rounds(4)
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

func TestSipHash(t *testing.T) {
	// The test vector of the paper's appendix A.
	msg := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
	if got := slowSip(0x0706050403020100, 0x0f0e0d0c0b0a0908, msg, false); got != 0xa129ca6149be45e5 {
		t.Fatalf("textbook SipHash gives %#x", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		k := testKey(rapid.Byte().Draw(t, "key"))
		use := rapid.StringN(0, 8, -1).Draw(t, "use")
		m := rapid.Uint64().Draw(t, "m")
		kb := derive(&k, use, 16)
		f := newPRF(&k, use)
		want := slowSip(binary.LittleEndian.Uint64(kb), binary.LittleEndian.Uint64(kb[8:]), binary.LittleEndian.AppendUint64(nil, m), true)
		if got := f.sum(m); got != want {
			t.Fatalf("sum(%#x) = %#x, want %#x", m, got, want)
		}
	})
}

func TestPermutation(t *testing.T) {
	k := testKey(7)
	for _, half := range []uint64{1 << 30, tokenHalf} {
		p := perm{newPRF(&k, "test"), half}
		rapid.Check(t, func(t *rapid.T) {
			id := ID(rapid.Uint64Range(0, 1<<idBits-1).Draw(t, "id"))
			l, r := p.seal(id)
			if l >= half || r >= half {
				t.Fatalf("seal(%d) = %d, %d", id, l, r)
			}
			if got, ok := p.open(l, r); !ok || got != id {
				t.Fatalf("open(seal(%d)) = %d, %v", id, got, ok)
			}
			if _, ok := p.open(l, (r+rapid.Uint64Range(1, half-1).Draw(t, "off"))%half); ok {
				t.Fatalf("another value opens as well")
			}
		})
	}
}
