package canary

import (
	_ "embed"
	"encoding/binary"
	"strings"
	"sync"
)

// wordList is 4,096 words, one a line, sorted; the line is the word's number.
// It is a selection from SCOWL (see words-LICENSE.txt): words of 4 to 8
// letters that eight widely used tokenizers know as one token, but for a few
// that one of the eight cuts in two. No function words, no words that weigh on
// a model's manners, few that are frequent in program text, and no two words
// that differ by one of the letters b, f, n, r, t, v in front, so that the
// letter of a backslash escape can never be mistaken for part of a word.
// Changing the list changes every canary.
//
//go:embed words.txt
var wordList string

const (
	wordCount  = 1 << wordBits
	minLetters = 4
	maxLetters = 8
	slotBits   = 14
	filterBits = 16
	beginBits  = 18
	slotMult   = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
)

// lexicon maps words to numbers and back. A word is packed with its first
// letter in the low byte.
type lexicon struct {
	packed  [wordCount]uint64
	letters [wordCount]uint8
	filter  [1 << (filterBits - 6)]uint64
	begins  [1 << (beginBits - 6)]uint64 // a filter of what words begin with
	keys    [1 << slotBits]uint64        // open addressing; 0 is empty
	numbers [1 << slotBits]uint16
}

// theLexicon builds the table on first use.
var theLexicon = sync.OnceValue(func() *lexicon {
	lx := new(lexicon)
	for i, w := range strings.Fields(wordList) {
		var b [8]byte
		copy(b[:], w)
		key := binary.LittleEndian.Uint64(b[:])
		lx.packed[i], lx.letters[i] = key, uint8(len(w))
		f := key * slotMult >> (64 - filterBits)
		lx.filter[f/64] |= 1 << (f % 64)
		for n := 1; n <= len(w); n++ {
			f := key << (64 - 8*n) >> (64 - 8*n) * slotMult >> (64 - beginBits)
			lx.begins[f/64] |= 1 << (f % 64)
		}
		h := slot(key)
		for lx.keys[h] != 0 {
			h = (h + 1) % uint64(len(lx.keys))
		}
		lx.keys[h], lx.numbers[h] = key, uint16(i)
	}
	return lx
})

func slot(key uint64) uint64 { return key * slotMult >> (64 - slotBits) }

// mayHold is false for most keys that are not in the list. Its table is small
// enough to stay in the fastest cache.
func (lx *lexicon) mayHold(key uint64) bool {
	f := key * slotMult >> (64 - filterBits)
	return lx.filter[f/64]>>(f%64)&1 != 0
}

// mayBegin is false for most keys that no word of the list begins with.
func (lx *lexicon) mayBegin(key uint64) bool {
	f := key * slotMult >> (64 - beginBits)
	return lx.begins[f/64]>>(f%64)&1 != 0
}

// find returns the number of a packed word, or -1.
func (lx *lexicon) find(key uint64) int {
	for h := slot(key); ; h = (h + 1) % (1 << slotBits) {
		switch lx.keys[h] {
		case key:
			return int(lx.numbers[h])
		case 0:
			return -1
		}
	}
}
