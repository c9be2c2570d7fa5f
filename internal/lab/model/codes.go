package model

// A matching code word has entries of +-1/4 and so unit length; an average of code
// words, which is all that attention makes of them, has entries in [-1/4, 1/4]. The
// cache keeps them as int8 in units of 1/256: code words and averages of two or four
// exactly, other averages to 1/512. Eight-bit caches are common practice in serving
// (fp8 KV); for this model one loses nothing.
const (
	codeUnit = 256 // units in 1
	codeMax  = 64  // an entry of a code word, in units
)

// code is a code word or an average of some: int8 entries as they lie in the cache.
type code [codeDims]byte

// matchingCodes gives each byte a word of the Nordstrom-Robinson code, seen as a
// Kerdock code: 256 words of 16 signs at Hamming distance at least 6. Any two bytes
// have inner product -1/4, 0 or 1/4, except that the word of v+128 is the negative of
// that of v. (16, 256, 6) is an optimal binary code: no more tokens fit in 16 signs at
// this separation.
func matchingCodes() (codes [256]code) {
	for v := range codes {
		a, b, c, d := v&7, v>>3&7, v>>6&1, v>>7&1
		for i := range codes[v] {
			x, e := i>>1, i&1
			ax := mul8(a, x)
			bit := trace8(mul8(ax, mul8(ax, ax))) ^ e&trace8(ax) ^ trace8(mul8(b, x)) ^ c&e ^ d
			codes[v][i] = byte(codeMax * (1 - 2*bit))
		}
	}
	return codes
}

// mul8 multiplies in GF(8), built with x^3 = x + 1.
func mul8(a, b int) int {
	p := 0
	for i := range 3 {
		if b>>i&1 == 1 {
			p ^= a << i
		}
	}
	for i := 4; i >= 3; i-- {
		if p>>i&1 == 1 {
			p ^= 0b1011 << (i - 3)
		}
	}
	return p
}

// trace8 is the trace of GF(8) over GF(2): x + x^2 + x^4.
func trace8(x int) int {
	x2 := mul8(x, x)
	return (x ^ x2 ^ mul8(x2, x2)) & 1
}

// outputCodes gives each byte a row of the 128-Hadamard matrix, bytes above 127 the
// negative of the row 128 below, as int8 in units of 1/sqrt(128). ASCII rows are exactly
// orthogonal: layer 2 averages values over ties, and with a shorter code an average
// would resemble bytes that nobody wrote.
func outputCodes() (codes [256][outDims]byte) {
	for v := range codes {
		for i := range codes[v] {
			codes[v][i] = byte(hadamard(v, i))
		}
	}
	return codes
}

func hadamard(v, i int) int8 {
	odd := v >> 7
	for bits := v & 127 & i; bits != 0; bits &= bits - 1 {
		odd ^= 1
	}
	return int8(1 - 2*odd)
}

// transform multiplies by the 128-Hadamard matrix in place: additions only, so there
// is nothing to fuse and the result is the same everywhere.
func transform(x *[outDims]float64) {
	for width := 1; width < outDims; width *= 2 {
		for i := 0; i < outDims; i += 2 * width {
			for j := i; j < i+width; j++ {
				x[j], x[j+width] = x[j]+x[j+width], x[j]-x[j+width]
			}
		}
	}
}
