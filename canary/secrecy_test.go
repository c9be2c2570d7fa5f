package canary

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// uniform checks by chi-square that counts are what chance makes of equal
// shares: within six standard deviations. The data is the same in every run.
func uniform(t *testing.T, what string, counts []int) {
	t.Helper()
	sum := 0
	for _, n := range counts {
		sum += n
	}
	want, chi2 := float64(sum)/float64(len(counts)), 0.0
	for _, n := range counts {
		chi2 += (float64(n) - want) * (float64(n) - want) / want
	}
	free := float64(len(counts) - 1)
	if z := (chi2 - free) / math.Sqrt(2*free); math.Abs(z) > 6 {
		t.Errorf("%s: chi-square %.0f with %.0f degrees of freedom is %.1f standard deviations off", what, chi2, free, z)
	}
}

// TestLooksRandom (C8): the words, how they follow each other, and how canaries
// of neighbouring ids compare look as chance makes them.
func TestLooksRandom(t *testing.T) {
	c := New(testKey(8))
	const n = 1 << 18
	numbers := func(id ID, n int) []uint64 {
		out, s := make([]uint64, n), c.chain.seed(id)
		for i := range out {
			out[i] = s.first
			s = s.push(c.chain.next(s))
		}
		return out
	}
	stream := numbers(1, n)
	counts := make([]int, wordCount)
	for _, w := range stream {
		counts[w]++
	}
	uniform(t, "words of one canary", counts)
	for lag := 1; lag <= 8; lag++ {
		xor, diff := make([]int, wordCount), make([]int, wordCount)
		for i := lag; i < n; i++ {
			xor[stream[i]^stream[i-lag]]++
			diff[(stream[i]-stream[i-lag])&wordMask]++
		}
		uniform(t, fmt.Sprintf("words %d apart, XOR", lag), xor)
		uniform(t, fmt.Sprintf("words %d apart, difference", lag), diff)
	}
	const ids, place = 1 << 16, 12
	at, next := make([][]int, place), make([][]int, place)
	for i := range at {
		at[i], next[i] = make([]int, wordCount), make([]int, wordCount)
	}
	before := numbers(0, place)
	for id := ID(1); id < ids; id++ {
		w := numbers(id, place)
		for i := range w {
			at[i][w[i]]++
			next[i][w[i]^before[i]]++
		}
		before = w
	}
	for i := range at {
		uniform(t, fmt.Sprintf("word %d of many canaries", i), at[i])
		uniform(t, fmt.Sprintf("word %d of neighbouring ids", i), next[i])
	}
	var chars [tokenChars][]int
	for i := range chars {
		chars[i] = make([]int, tokenRadix)
	}
	for id := range ID(ids) {
		for i, ch := range c.Token(id)[len(tokenPrefix):] {
			chars[i][strings.IndexRune(digits36, ch)]++
		}
	}
	for i := range chars {
		uniform(t, fmt.Sprintf("character %d of tokens", i), chars[i])
	}
}

// TestOtherKeys (C8): canary text of another key is just words.
func TestOtherKeys(t *testing.T) {
	c := New(testKey(8))
	n := 4000
	if long {
		n = 1_000_000
	}
	for seed := range byte(4) {
		other := New(testKey(100 + seed))
		if hits := c.Scan([]byte(mint(other, 1, 0, n))); len(hits) > 0 {
			t.Errorf("another key's text: %+v", hits)
		}
	}
	// A key that differs in one bit is another key.
	k := testKey(8)
	k[31] ^= 1
	if hits := c.Scan([]byte(mint(New(k), 1, 0, n))); len(hits) > 0 {
		t.Errorf("a near key's text: %+v", hits)
	}
}

// TestForgery (C8): words changed, swapped, left out, or put together from two
// canaries make no more than the pieces that were left whole.
func TestForgery(t *testing.T) {
	c := New(testKey(8))
	a, b := strings.Fields(mint(c, 1, 0, 60)), strings.Fields(mint(c, 2, 0, 60))
	for at := 1; at < 59; at++ {
		for name, words := range map[string][]string{
			"changed":  slices.Concat(a[:at], []string{listWords[at]}, a[at+1:]),
			"swapped":  slices.Concat(a[:at], []string{a[at+1], a[at]}, a[at+2:]),
			"left out": slices.Concat(a[:at], a[at+1:]),
			"twice":    slices.Concat(a[:at], []string{a[at]}, a[at:]),
			"spliced":  slices.Concat(a[:at], b[at:]),
		} {
			text := strings.Join(words, " ")
			for _, h := range c.Scan([]byte(text)) {
				source := a
				if h.ID == 2 {
					source = b
				}
				if h.ID > 2 || text[h.Start:h.End] != strings.Join(source[h.Word:h.Word+h.Words], " ") {
					t.Errorf("%s at %d: %+v: %q", name, at, h, text[h.Start:h.End])
				}
			}
		}
	}
	// Every eighth word changed, nothing is left.
	for i := 7; i < len(a); i += 8 {
		a[i] = listWords[i]
	}
	if hits := c.Scan([]byte(strings.Join(a, " "))); len(hits) > 0 {
		t.Errorf("every eighth word changed: %+v", hits)
	}
}

// TestNoSharedRuns (C9): of many canaries, no two share eight words in a row,
// as far as a sample of their runs tells.
func TestNoSharedRuns(t *testing.T) {
	c := New(testKey(9))
	ids := 1 << 16
	if long {
		ids = 1_000_000
	}
	const samples = 4
	r := rand.New(rand.NewPCG(3, 4))
	runs := make([]uint64, 0, ids*samples)
	for range ids {
		// Ids as runs give them out, and ids from all over.
		id := ID(len(runs) / samples)
		if id%2 == 1 {
			id = id * (slotMult | 1) % (1 << idBits)
		}
		s := c.chain.seed(id)
		for range samples {
			for range r.IntN(12) + 1 {
				s = s.push(c.chain.next(s))
			}
			// Six words and the two that follow from them: the six decide.
			runs = append(runs, s.tail*slotMult^s.first<<52)
		}
	}
	slices.Sort(runs)
	same := 0
	for i := 1; i < len(runs); i++ {
		if runs[i] == runs[i-1] {
			same++
		}
	}
	// 64-bit hashes of four million runs meet by chance once in two million
	// sweeps.
	if same > 0 {
		t.Errorf("%d of %d runs are shared", same, len(runs))
	}
}
