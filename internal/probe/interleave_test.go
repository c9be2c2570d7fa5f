package probe

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// answered drives a plan by a target that answers with the value asked for
// unless loses says that it does not, to its end. It returns what was sent, and
// which of it lacks its value.
func answered(plan Plan, loses func(Send) bool) (batches [][]Send, echoes echoes) {
	var done []wire.Exchange
	for seq := 0; ; {
		batch := plan.Next(done)
		if len(batch) == 0 {
			return batches, echoes
		}
		done = nil
		for _, s := range batch {
			said := "own-value"
			if loses(s) {
				said = "something else"
			}
			e := wire.Exchange{
				Seq: seq, Arm: s.Arm, Group: s.Group, Label: s.Label, Asked: s.Asked, SentTokens: s.Tokens,
				Nonces: [3]string{"own-value", "own-value", "own-value"},
				Answer: &wire.Answer{Status: 200, Finish: "stop", Pieces: []wire.Piece{{Channel: wire.Content, Text: said}}},
			}
			echoes.count(&e)
			done = append(done, e)
			seq++
		}
		batches = append(batches, batch)
	}
}

const (
	leastStreams = interleaveRounds*streams + alone
	mostStreams  = leastStreams + moreRounds*(streams+alone)
)

func streamsOf(batches [][]Send) int {
	n := 0
	for _, b := range batches {
		n += len(b)
	}
	return n
}

// More streams are read only where those beside others lack their value more
// often, and only until that is sure.
func TestInterleaveIsSure(t *testing.T) {
	env := Env{Tenants: 2, Seed: 1, MaxAnswer: 160}
	third := func(s Send) bool { return s.Arm == wire.ArmLoad && s.Tokens%120 == 0 }
	for name, c := range map[string]struct {
		loses       func(Send) bool
		least, most int
		sure        bool
	}{
		"none":                {func(Send) bool { return false }, leastStreams, leastStreams, false},
		"all":                 {func(Send) bool { return true }, leastStreams, leastStreams, false},
		"a third under load":  {third, leastStreams + 1, mostStreams - 1, true},
		"as many alone":       {func(s Send) bool { return s.Tokens%120 == 0 }, leastStreams, leastStreams, false},
		"all that are beside": {func(s Send) bool { return s.Arm == wire.ArmLoad }, leastStreams, leastStreams, true},
		"some that are alone": {func(s Send) bool { return s.Arm == wire.ArmNull }, leastStreams, leastStreams, false},
	} {
		batches, echoes := answered(newInterleave(env), c.loses)
		if n := streamsOf(batches); n < c.least || n > c.most {
			t.Errorf("%s lack their value: %d streams, want %d to %d", name, n, c.least, c.most)
		}
		if p := echoes.p(); p <= surely != c.sure {
			t.Errorf("%s lack their value: p = %v, sure %v", name, p, c.sure)
		}
	}
}

// Whatever is lost, the plan ends, what is read alone is alone, and nothing that
// was asked for is missing.
func TestInterleaveEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		env := Env{Tenants: rapid.IntRange(1, 3).Draw(t, "tenants"), Seed: 1, MaxAnswer: 160}
		beside, quiet := rapid.Float64Range(0, 1).Draw(t, "lost beside"), rapid.Float64Range(0, 1).Draw(t, "lost alone")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		plan := newInterleave(env)
		batches, _ := answered(plan, func(s Send) bool {
			return r.Float64() < map[string]float64{wire.ArmLoad: beside, wire.ArmNull: quiet}[s.Arm]
		})
		if n := streamsOf(batches); n < leastStreams || n > mostStreams {
			t.Fatalf("%d streams, want %d to %d", n, leastStreams, mostStreams)
		}
		for _, b := range batches {
			if b[0].Arm == wire.ArmNull && len(b) != 1 || b[0].Arm == wire.ArmLoad && len(b) != streams {
				t.Fatalf("a batch of %d on arm %s", len(b), b[0].Arm)
			}
		}
		if m := plan.Missing(); m != "" {
			t.Fatalf("missing: %s", m)
		}
	})
}

// To read more where there may be something does not make false alarms more
// frequent: where both arms lack their value equally often, a test at a
// thousandth finds something in about as many campaigns.
func TestMoreStreamsMakeNoFalseAlarms(t *testing.T) {
	const campaigns, level = 4000, 1e-3
	for _, rate := range []float64{0.02, 0.2, 0.5} {
		r := rand.New(rand.NewPCG(9, uint64(100*rate)))
		alarms, longer := 0, 0
		for range campaigns {
			var e echoes
			draw := func(a *arm, n int) {
				for range n {
					a.n++
					if r.Float64() < rate {
						a.lost++
					}
				}
			}
			draw(&e.null[0], alone)
			draw(&e.load[0], interleaveRounds*streams)
			rounds := 0
			for ; rounds < moreRounds && e.doubtful(); rounds++ {
				draw(&e.null[0], alone)
				draw(&e.load[0], streams)
			}
			if rounds > 0 {
				longer++
			}
			if e.p() <= level {
				alarms++
			}
		}
		if alarms > 9 { // of 4 expected at most: above it in less than 1 % of tables
			t.Errorf("%d of %d campaigns on a model that loses %v find something", alarms, campaigns, rate)
		}
		if longer > campaigns/2 {
			t.Errorf("%d of %d campaigns on a model that loses %v are made longer", longer, campaigns, rate)
		}
	}
}
