package model

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func codeProduct(a, b code) int {
	sum := 0
	for i := range a {
		sum += int(int8(a[i])) * int(int8(b[i]))
	}
	return sum
}

func TestMatchingCodesAreFarApart(t *testing.T) {
	codes := matchingCodes()
	const unit = codeUnit * codeUnit
	for v := range codes {
		for w := range v + 1 {
			p := codeProduct(codes[v], codes[w])
			ok := p == 0 || p == unit/4 || p == -unit/4
			switch {
			case v == w:
				ok = p == unit
			case v == w^128:
				ok = p == -unit
			}
			if !ok {
				t.Fatalf("codes %d and %d: inner product %d of %d", v, w, p, unit)
			}
		}
	}
}

func TestOutputCodesAreOrthogonal(t *testing.T) {
	codes := outputCodes()
	for v := range codes {
		for w := range v + 1 {
			sum := 0
			for i := range codes[v] {
				sum += int(int8(codes[v][i])) * int(int8(codes[w][i]))
			}
			want := 0
			switch {
			case v == w:
				want = outDims
			case v == w^128:
				want = -outDims
			}
			if sum != want {
				t.Fatalf("codes %d and %d: inner product %d, want %d", v, w, sum, want)
			}
		}
	}
}

func TestTextOfAPage(t *testing.T) {
	m := New()
	c := NewCache(2, 256)
	all := make([]byte, 256)
	for i, v := range rand.New(rand.NewPCG(1, 1)).Perm(256) {
		all[i] = byte(v)
	}
	m.Write(c, Table{1}, 0, all)
	if got := c.Text(1); !bytes.Equal(got, all) {
		t.Errorf("read back %q, wrote %q", got, all)
	}
	if got := c.Text(0); !bytes.Equal(got, make([]byte, 256)) {
		t.Errorf("an empty page reads %q", got)
	}
}
