package pagetag

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// Seeds of the three folds: the first 64 bits of the fractional parts of the
// square roots of 2, 3 and 5, which are nobody's choice.
const (
	markSeed = 0x6a09e667f3bcc908
	lowSeed  = 0xbb67ae8584caa73b
	highSeed = 0x3c6ef372fe94f82b
)

// fold takes one word into h. For a given h it is a bijection of the word, and
// for a given word a bijection of h, so that a change of one word of many always
// changes the result. The constants are those of the SplitMix64 generator
// (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
func fold(h, word uint64) uint64 {
	h = (h ^ word) + 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// accidentDigest is the XXH3-128 of the page, each half of it exclusive-or a
// fold of the header. The bytes are read once, at the speed of the bare hash, and
// a header that differs in one word from the one that was stamped never has the
// same digest for the same bytes.
func accidentDigest(header *[headerSize]byte, page []byte) (d [DigestSize]byte) {
	content := xxh3.Hash128(page)
	low, high := uint64(lowSeed), uint64(highSeed)
	for i := 0; i < headerSize; i += 8 {
		word := binary.LittleEndian.Uint64(header[i:])
		low, high = fold(low, word), fold(high, word)
	}
	binary.LittleEndian.PutUint64(d[:], content.Lo^low)
	binary.LittleEndian.PutUint64(d[8:], content.Hi^high)
	return d
}
