package gateway

import (
	"bytes"

	"github.com/zeebo/xxh3"
)

// alike is the likeness from which on a semantic cache takes two prompts for
// the same: engines ship 0.8 and compare embeddings; here it is the share of
// pairs of neighbouring words that both have.
const alike = 0.7

// sketch stands for the set of a text's features: for each of so many classes,
// the least hash of the features in it (one-permutation MinHash), 0 for none.
type sketch [256]uint64

// newSketch takes the neighbouring words of a text as its features, in lower
// case and whatever is between them.
func newSketch(text []byte) *sketch {
	s := new(sketch)
	before := ""
	for word := range bytes.FieldsFuncSeq(bytes.ToLower(text), func(r rune) bool {
		return r < '0' || r > '9' && r < 'a' || r > 'z' && r < 128
	}) {
		s.add(before, string(word))
		before = string(word)
	}
	return s
}

// add adds one feature.
func (s *sketch) add(first, second string) {
	h := xxh3.HashString(first+" "+second) | 1
	class := &s[h>>56]
	if *class == 0 || h < *class {
		*class = h
	}
}

// likeness estimates the share of the features of either text that both have,
// from 0 to 1.
func (s *sketch) likeness(o *sketch) float64 {
	same, either := 0, 0
	for i, h := range s {
		if h != 0 || o[i] != 0 {
			either++
			if h == o[i] {
				same++
			}
		}
	}
	return float64(same) / float64(max(either, 1))
}
