package model

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestExp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := -rapid.Float64Range(0, 699).Draw(t, "x")
		if got, want := exp(x), math.Exp(x); math.Abs(got-want) > 1e-12*want {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
	})
	if exp(0) != 1 || exp(-1e9) != 0 || exp(math.Inf(-1)) != 0 || exp(math.NaN()) != 0 {
		t.Error("exp is wrong at the ends")
	}
}

func TestRotationsAreExact(t *testing.T) {
	at := newRotary().positions()
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.IntRange(-depth, MaxPosition-1).Draw(t, "position")
		var v vector
		at.vector(p, &v)
		for i := range pairs {
			sin, cos := math.Sincos(float64(p) * math.Pow(1e4, -float64(i)/pairs))
			if math.Abs(float64(v[2*i])-cos) > 1e-7 || math.Abs(float64(v[2*i+1])-sin) > 1e-7 {
				t.Fatalf("pair %d: (%v, %v), want (%v, %v)", i, v[2*i], v[2*i+1], cos, sin)
			}
		}
	})
}

// TestPositionsAreApart enumerates the distances that the sink of layer 1 relies on.
func TestPositionsAreApart(t *testing.T) {
	const farthest = 1_100_000
	at := newRotary().positions()
	var zero, v vector
	at.vector(0, &zero)
	if s := similarity(&zero, &zero); s != 16 {
		t.Errorf("S(0) = %v", s)
	}
	at.vector(1, &v)
	if s := similarity(&zero, &v); math.Abs(float64(s)-15.314) > 1e-3 || s > floor1 {
		t.Errorf("S(1) = %v", s)
	}
	for d := 2; d < farthest; d++ {
		at.vector(d, &v)
		if s := similarity(&zero, &v); s > 13.731 {
			t.Fatalf("S(%d) = %v", d, s)
		}
	}
}

// TestWordDot compares eight bytes at a time with one, on any bytes.
func TestWordDot(t *testing.T) {
	codes := matchingCodes()
	rapid.Check(t, func(t *rapid.T) {
		word := codes[rapid.Byte().Draw(t, "token")]
		key := code(rapid.SliceOfN(rapid.Byte(), codeDims, codeDims).Draw(t, "key"))
		p := newPattern(&word)
		if !p.word || p.blank {
			t.Fatal("a code word is not recognized")
		}
		if got, want := p.wordDot(&key), int64(codeProduct(word, key)); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	})
}
