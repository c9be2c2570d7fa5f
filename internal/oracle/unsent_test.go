package oracle_test

import (
	"testing"

	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// Prompts that nobody has sent are not cached. That is said only where the
// target's report means something and no earlier run can have sent them.
func TestCachedAlthoughNeverSent(t *testing.T) {
	for name, c := range map[string]struct {
		cached []int // tokens of prompts of 1,000
		change func(*wire.Exchange)
		found  bool
	}{
		"parts of some":               {[]int{0, 16, 400, 300}, nil, true},
		"one only":                    {[]int{0, 16, 400, 0}, nil, false},
		"of every prompt":             {[]int{500, 500, 500, 500}, nil, false},
		"by chance":                   {[]int{700, 30, 400, 300, 120, 650}, nil, false},
		"half, with a length often":   {[]int{260, 260, 260, 400, 500}, nil, false},
		"few":                         {[]int{0, 200, 200, 64}, nil, false},
		"whole: another run's":        {[]int{0, 400, 300, 992}, nil, false},
		"the same words before all":   {[]int{0, 16, 288, 288, 272, 288}, nil, false},
		"the first: another run's":    {[]int{160, 16, 400, 300, 0}, nil, false},
		"sent before":                 {[]int{0, 400, 300, 300}, func(e *wire.Exchange) { e.Holds = []int{0} }, false},
		"sent twice":                  {[]int{0, 400, 300, 300}, func(e *wire.Exchange) { e.Answer.Resent = 1 }, false},
		"of what the target adds":     {[]int{0, 400, 300, 300}, func(e *wire.Exchange) { e.Answer.Usage.Prompt = 1400 }, false},
		"of lengths that are guesses": {[]int{0, 400, 300, 300}, func(e *wire.Exchange) { e.SentExact = false }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, n := range c.cached {
				e := w.served(0, "content", "noted")
				e.Answer.Usage = &wire.Usage{Prompt: 1000, Cached: n}
			}
			for i := range w.all {
				if c.change != nil {
					c.change(&w.all[i])
				}
			}
			j := w.judge("sharing")
			if got := len(j.Findings) > 0; got != c.found || got && (j.Findings[0].Kind != oracle.Sharing || j.Findings[0].Exchange != 2) {
				t.Errorf("found %+v", j.Findings)
			}
		})
	}
}
