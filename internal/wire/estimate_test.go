package wire

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// tokenizer is a stand-in for BPE: a word with its space costs 1 token or,
// more often the longer it is, 2; a message costs a fixed number more. Prompts
// are drawn in blocks of 100 words, so that long ones cost little to make.
type tokenizer struct {
	overhead int
	rng      *rand.Rand
	blocks   []observation
}

// newTokenizer makes one whose words of 5.5 letters cost two tokens with a
// chance of wide.
func newTokenizer(wide float64, overhead int, seed uint64) *tokenizer {
	k := &tokenizer{overhead: overhead, rng: rand.New(rand.NewPCG(seed, 1))}
	for range 2000 {
		var o observation
		for range 100 {
			n := 4 + k.rng.IntN(5)
			o.bytes += int64(n + 1)
			o.tokens++
			if k.rng.Float64() < wide*float64(n)/6 {
				o.tokens++
			}
		}
		k.blocks = append(k.blocks, o)
	}
	return k
}

// prompt makes a prompt of so many words.
func (k *tokenizer) prompt(words, messages int) (bytes int64, tokens int) {
	tokens = messages * k.overhead
	for range words / 100 {
		o := k.blocks[k.rng.IntN(len(k.blocks))]
		bytes, tokens = bytes+o.bytes, tokens+o.tokens
	}
	return bytes, tokens
}

// TestEstimateAfterThree: within 0.1 % after three exchanges of the size of the
// incident. It is a standard deviation that is held to this: the lengths of
// random words vary by themselves.
func TestEstimateAfterThree(t *testing.T) {
	for i, wide := range []float64{0, 0.1, 0.3, 0.5, 0.7} {
		k := newTokenizer(wide, 5*i, uint64(i))
		var squares, worst, n float64
		for range 40 {
			var e Estimator
			for _, words := range []int{300_000, 450_000, 600_000} {
				b, tokens := k.prompt(words, 3)
				e.Observe(b, 3, tokens)
			}
			for _, words := range []int{500_000, 650_000} {
				b, tokens := k.prompt(words, 3)
				off := math.Abs(e.Estimate(b, 3)-float64(tokens)) / float64(tokens)
				squares, worst, n = squares+off*off, max(worst, off), n+1
			}
		}
		if sigma := math.Sqrt(squares / n); sigma > 0.001 || worst > 0.003 {
			t.Errorf("two tokens for %.0f %% of words: off by %.4f %% (root mean square), %.4f %% at worst", 100*wide, 100*sigma, 100*worst)
		} else {
			t.Logf("two tokens for %.0f %% of words: off by %.4f %% (root mean square), %.4f %% at worst", 100*wide, 100*sigma, 100*worst)
		}
	}
}

// A small prompt's overhead is learned too, once messages vary.
func TestEstimateMessages(t *testing.T) {
	var e Estimator
	for _, o := range []observation{{10_000, 1, 2511}, {10_000, 5, 2555}, {20_000, 9, 5099}} {
		e.Observe(o.bytes, o.messages, o.tokens)
	}
	if got := e.Estimate(400, 2); math.Abs(got-122) > 5 {
		t.Errorf("estimate %.1f, want 122", got)
	}
}

func TestEstimateBeforeAll(t *testing.T) {
	var e Estimator
	if got := e.Estimate(4000, 2); math.Abs(got-1012) > 1 {
		t.Errorf("estimate %.1f", got)
	}
	if e.Observations() != 0 {
		t.Error("observations out of nothing")
	}
}

// Reports of a target that cut or replaced the prompt must not spoil what was
// learned, before, between and after good ones.
func TestEstimateIgnoresCollapse(t *testing.T) {
	k := newTokenizer(0.4, 7, 3)
	rapid.Check(t, func(t *rapid.T) {
		k.rng = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		bad := func(e *Estimator) {
			b, n := k.prompt(rapid.IntRange(10_000, 60_000).Draw(t, "words"), 2)
			switch rapid.IntRange(0, 3).Draw(t, "how") {
			case 0:
				n = 1 // the placeholder of the incident
			case 1:
				n = 0
			case 2:
				n = 512 // cut to a small window
			case 3:
				n = -n
			}
			e.Observe(b, 2, n)
		}
		good := func(e *Estimator, words int) { b, n := k.prompt(words, 2); e.Observe(b, 2, n) }
		var e Estimator
		for range 4 {
			bad(&e)
		}
		good(&e, 20_000)
		bad(&e)
		good(&e, 30_000)
		bad(&e)
		good(&e, 50_000)
		for range 6 {
			bad(&e)
		}
		b, n := k.prompt(40_000, 2)
		if off := math.Abs(e.Estimate(b, 2)-float64(n)) / float64(n); off > 0.01 {
			t.Fatalf("off by %.2f %%", 100*off)
		}
	})
}

// A window that cuts every long prompt to the same length stays ignored, though
// its reports agree with one another.
func TestEstimateIgnoresWindow(t *testing.T) {
	k := newTokenizer(0.4, 7, 4)
	var e Estimator
	for _, words := range []int{2000, 2500, 3000} {
		b, n := k.prompt(words, 2)
		e.Observe(b, 2, n)
	}
	for i := range 20 {
		b, _ := k.prompt(4000+i*100, 2)
		e.Observe(b, 2, 2048)
	}
	b, n := k.prompt(8000, 2)
	if off := math.Abs(e.Estimate(b, 2)-float64(n)) / float64(n); off > 0.03 {
		t.Errorf("off by %.2f %%", 100*off)
	}
}

// Nor do prompts of many messages count that are cut to about the same length,
// although a message may have many tokens.
func TestEstimateIgnoresDroppedMessages(t *testing.T) {
	var e Estimator
	whole := func(bytes int64) observation {
		messages := int(bytes / 400)
		return observation{bytes, messages, int(bytes)*23/100 + 5*messages}
	}
	for _, bytes := range []int64{800, 1400, 2000, 2700, 4300, 6400, 8600} {
		o := whole(bytes)
		e.Observe(o.bytes, o.messages, o.tokens)
	}
	for i, bytes := range []int64{34400, 21500, 15000, 11800, 10200, 9400} {
		e.Observe(bytes, int(bytes/400), 1958+i*13)
	}
	want := whole(9000)
	if got := e.Estimate(9000, want.messages); math.Abs(got-float64(want.tokens)) > 30 {
		t.Errorf("estimate %.0f, want %d", got, want.tokens)
	}
}

// A wrong start is overcome: text of another kind, or a first report that was
// cut in half.
func TestEstimateStartsAnew(t *testing.T) {
	for _, first := range []observation{{100_000, 1, 10_000}, {100_000, 1, 60_000}} {
		var e Estimator
		e.Observe(first.bytes, first.messages, first.tokens)
		for _, b := range []int64{80_000, 120_000, 100_000, 110_000} {
			e.Observe(b, 1, int(b/4)+7)
		}
		if got := e.Estimate(200_000, 1); math.Abs(got-50_007) > 500 {
			t.Errorf("after %+v: %.0f", first, got)
		}
	}
}

// Whatever is reported, the estimate stays a number that grows with the text.
func TestEstimateIsSane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e Estimator
		for range rapid.IntRange(0, 20).Draw(t, "n") {
			e.Observe(rapid.Int64().Draw(t, "bytes"), rapid.IntRange(0, 100).Draw(t, "messages"), rapid.Int().Draw(t, "tokens"))
		}
		small, big := e.Estimate(1000, 1), e.Estimate(1_000_000, 1)
		if math.IsNaN(small) || math.IsInf(big, 0) || small < 0 || big <= small {
			t.Fatalf("estimates %v, %v", small, big)
		}
	})
}
