package wire

import (
	"math"
	"math/rand/v2"
	"testing"
)

// prose is a target's way of counting: a hidden prompt, a template and words
// whose tokens vary.
type prose struct {
	hidden, perMessage, perByte, variance float64
	chance                                *rand.Rand
}

func (p *prose) of(bytes int64) observation {
	messages := int(bytes/160) + 1
	tokens := p.hidden + p.perMessage*float64(messages) + p.perByte*float64(bytes) + p.chance.NormFloat64()*math.Sqrt(p.variance*float64(bytes))
	return observation{bytes, messages, int(math.Round(tokens))}
}

// Honest counts are never taken for short ones, and a lost turn is not missed,
// whatever the tokenizer and however much the target adds of its own.
func TestLawTellsLossFromChance(t *testing.T) {
	missed, all := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		p := prose{float64(r.IntN(900)), 3 + 9*r.Float64(), 0.2 + 0.4*r.Float64(), 0.02 + 0.08*r.Float64(), r}
		l := law{hidden: true}
		for _, bytes := range []int64{80, 90, 300, 500, 700, 1000, 1600, 2000, 2900, 3300, 3500} {
			o := p.of(bytes)
			if lacks, short := l.shortBy(o); short {
				t.Fatalf("seed %d: %+v lacks %.0f", seed, o, lacks)
			}
			l.add(o)
		}
		o := p.of(3600)
		o.tokens -= 180
		all++
		if lacks, short := l.shortBy(o); !short {
			missed++
		} else if math.Abs(lacks-180) > 100 {
			t.Errorf("seed %d: lacks %.0f, want 180", seed, lacks)
		}
	}
	if missed > all/10 {
		t.Errorf("%d of %d lost turns were missed", missed, all)
	}
}

func TestLawJudgesOnlyWhatItReaches(t *testing.T) {
	p := prose{10, 9, 0.5, 0.05, rand.New(rand.NewPCG(1, 2))}
	l := law{hidden: true}
	for _, bytes := range []int64{80, 300, 500, 1000, 2000} {
		l.add(p.of(bytes))
	}
	cut := observation{1900, 12, 200}
	if _, short := l.shortBy(cut); short {
		t.Error("five prompts are enough to judge a sixth")
	}
	l.add(p.of(2100))
	if _, short := l.shortBy(cut); !short {
		t.Error("four fifths of a prompt are missing, and nothing is said")
	}
	if _, short := l.shortBy(observation{4201, 27, 500}); short {
		t.Error("judges a prompt twice as long as all before")
	}
}

// Nothing makes a law leave its bounds.
func TestLawStaysWithinBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var l law
		for range r.IntN(8) {
			l.add(observation{r.Int64N(1 << r.IntN(40)), r.IntN(100), r.IntN(1 << r.IntN(30))})
		}
		p := l.fit()
		if p[1] < leastPerByte-1e-9 || p[1] > mostPerByte+1e-9 || p[2] < -1e-9 || math.IsNaN(p[0]) {
			t.Fatalf("%+v gives %v", l, p)
		}
		if s := l.spread(observation{1000, 3, 0}); math.IsNaN(s) || s <= 0 {
			t.Fatalf("%+v: spread %v", l, s)
		}
	}
}
