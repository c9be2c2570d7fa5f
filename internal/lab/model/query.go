package model

import "encoding/binary"

// query is what layer 2 looks for: the codes of the current token and of seven before it.
type query struct {
	back [depth]pattern
	rest [depth + 1]int64 // the most that depths k.. can add to a score
}

// pattern is the code to match at one depth.
type pattern struct {
	code  code
	word  bool      // a token's code word: all entries are +-codeMax
	blank bool      // all entries are zero
	flip  [2]uint64 // for a word: ones in the bytes whose entry is negative
	bias  int64     // for a word: what wordDot's sum has too much
}

func newQuery(current *code, back *codes8) *query {
	q := new(query)
	q.back[0] = newPattern(current)
	for k := 1; k < depth; k++ {
		q.back[k] = newPattern(&back[k-1])
	}
	// Key entries are averages of code words, so none exceeds codeMax.
	for k := depth - 1; k >= 0; k-- {
		reach := int64(0)
		for _, b := range &q.back[k].code {
			v := int64(int8(b))
			reach += max(v, -v) * codeMax
		}
		q.rest[k] = q.rest[k+1] + depthWeight[k]*reach
	}
	return q
}

func newPattern(c *code) pattern {
	p := pattern{code: *c, word: true, blank: true, bias: 128 * codeDims}
	for i, b := range c {
		v := int8(b)
		p.word = p.word && (v == codeMax || v == -codeMax)
		p.blank = p.blank && v == 0
		if v < 0 {
			p.flip[i/8] |= 0xff << (i % 8 * 8)
			p.bias--
		}
	}
	for i := range p.flip {
		p.flip[i] ^= 0x8080808080808080 // moves signed bytes to 0..255
	}
	return p
}

// score is the whole score of a key whose rows of successive depths lie stride bytes apart.
//
//go:norace
func (q *query) score(row []byte, stride int, offset int64) int64 {
	for d := range q.back {
		offset += depthWeight[d] * q.back[d].dot((*code)(row[d*stride:]))
	}
	return offset
}

// dot is the inner product with a row of a key, in units of 1/256^2.
//
//go:norace
func (p *pattern) dot(key *code) int64 {
	switch {
	case p.word:
		return p.wordDot(key)
	case p.blank:
		return 0
	}
	sum := int64(0)
	for i, b := range &p.code {
		sum += int64(int8(b)) * int64(int8(key[i]))
	}
	return sum
}

// wordDot is dot for a code word: the sum of the key's entries, those under a negative
// entry of the word negated, eight at a time. Inverting the bits of k gives -k-1; bias
// takes these ones, and the shift to unsigned bytes, off again. It holds for any bytes.
//
//go:norace
func (p *pattern) wordDot(key *code) int64 {
	const even = 0x00ff00ff00ff00ff
	a := binary.LittleEndian.Uint64(key[:8]) ^ p.flip[0]
	b := binary.LittleEndian.Uint64(key[8:]) ^ p.flip[1]
	lanes := a&even + a>>8&even + b&even + b>>8&even
	return codeMax * (int64(lanes*0x0001000100010001>>48) - p.bias)
}
