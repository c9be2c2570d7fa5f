package probe

import (
	"testing"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// repeatsOf are the steps of prefix that send short prompts twice, alone.
func repeatsOf() *prefixes {
	p := newPrefixes(Env{Tenants: 2, Seed: 1, MaxAnswer: 160, PageSize: 16})
	p.steps = nil
	p.repeats()
	return p
}

// The second time a prompt is the same, word for word, by the same tenant, right
// behind the first.
func TestRepeatsAreTheSamePrompt(t *testing.T) {
	batches, _ := answered(repeatsOf(), func(Send) bool { return false })
	if len(batches) != 2*repeatTries {
		t.Fatalf("%d batches, want %d", len(batches), 2*repeatTries)
	}
	for i, b := range batches {
		s := b[0]
		switch {
		case len(b) != 1:
			t.Errorf("a batch of %d", len(b))
		case i%2 == 0 && (s.Arm != wire.ArmNull || s.Prefix != nil || s.Tokens < repeatTokens):
			t.Errorf("first %d: arm %q, prefix %v, %d tokens", i, s.Arm, s.Prefix, s.Tokens)
		case i%2 == 1 && (s.Arm != wire.ArmLoad || s.Prefix == nil || *s.Prefix != Prefix{Seq: i - 1} || len(s.Turns) > 0):
			t.Errorf("second %d: arm %q, prefix %+v, turns %v", i, s.Arm, s.Prefix, s.Turns)
		case i%2 == 1 && (s.Tenant != batches[i-1][0].Tenant || s.Asked != batches[i-1][0].Asked):
			t.Errorf("second %d: tenant %d asks for %d, before %+v", i, s.Tenant, s.Asked, batches[i-1][0])
		}
	}
}

// The value that is asked for most often stands behind the middle of its prompt,
// and nowhere else in it.
func TestRepeatedValuesStandBehindTheMiddle(t *testing.T) {
	batches, _ := answered(repeatsOf(), func(Send) bool { return false })
	late := 0
	for i := 0; i < len(batches); i += 2 {
		s := batches[i][0]
		stated, before, parts := 0, 0, 0
		for _, turn := range s.Turns {
			for _, part := range turn.Parts {
				if part.Kind == Nonce && part.N == s.Asked {
					stated, before = stated+1, parts
				}
				parts++
			}
		}
		if stated != 1 {
			t.Errorf("prompt %d states its value %d times", i, stated)
		}
		if 2*before > parts {
			late++
		}
	}
	if late < repeatTries*3/4 {
		t.Errorf("%d of %d values stand behind the middle", late, repeatTries)
	}
}

// More are sent only where the second answers lack their value more often, and
// only until that is sure.
func TestRepeatsWhereValuesAreLost(t *testing.T) {
	for name, c := range map[string]struct {
		loses       func(Send) bool
		least, most int
		sure        bool
	}{
		"none":                       {func(Send) bool { return false }, repeatTries, repeatTries, false},
		"all":                        {func(Send) bool { return true }, repeatTries, repeatTries, false},
		"the first answers":          {func(s Send) bool { return s.Arm == wire.ArmNull }, repeatTries, repeatTries, false},
		"the second behind a middle": {func(s Send) bool { return s.Arm == wire.ArmLoad && s.Asked == 2 }, repeatTries + 1, mostRepeats - 1, true},
	} {
		p := repeatsOf()
		batches, e := answered(p, c.loses)
		if n := (len(batches) + 1) / 2; n < c.least || n > c.most {
			t.Errorf("%s lack their value: %d prompts, want %d to %d", name, n, c.least, c.most)
		}
		if sure := e.p() <= surely; sure != c.sure {
			t.Errorf("%s lack their value: p = %v, sure %v", name, e.p(), c.sure)
		}
		if p.twice.served < repeatTries {
			t.Errorf("%d were answered twice", p.twice.served)
		}
	}
}
