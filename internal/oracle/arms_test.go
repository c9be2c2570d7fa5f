package oracle_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// onArm adds an exchange on an arm that asks for its first nonce.
func (w *world) onArm(tenant int, arm string, group int, echo bool) *wire.Exchange {
	e := asking(w.served(tenant, "content", "noted"), 0, echo)
	e.Arm, e.Group = arm, group
	return e
}

// expectTest checks the only test of a judgement: its kind, whether its p-value
// is below a thousandth, and what it and the doubt say.
func expectTest(t *testing.T, j oracle.Judgement, kind oracle.Kind, small bool, says, unsure string) {
	t.Helper()
	if len(j.Findings) > 0 {
		t.Errorf("findings without a test: %+v", j.Findings)
	}
	if says == "" {
		if len(j.Tests) > 0 {
			t.Errorf("tests %+v", j.Tests)
		}
	} else if len(j.Tests) != 1 || j.Tests[0].Finding.Kind != kind || j.Tests[0].P <= 1e-3 != small || !strings.Contains(j.Tests[0].Finding.Explain, says) {
		t.Errorf("tests %+v, want %q", j.Tests, says)
	}
	if unsure == "" && j.Unsure != "" || !strings.Contains(j.Unsure, unsure) {
		t.Errorf("unsure %q, want %q", j.Unsure, unsure)
	}
}

func TestContamination(t *testing.T) {
	for name, c := range map[string]struct {
		alone, aloneLost, beside, besideLost int
		small                                bool
		says, unsure                         string
	}{
		"sound":                  {18, 0, 34, 0, false, "0 of 34", ""},
		"half are lost":          {18, 0, 34, 17, true, "17 of 34", "too few"},
		"a few are lost":         {18, 0, 34, 2, false, "2 of 34", ""},
		"lost as often alone":    {18, 6, 34, 12, false, "12 of 34", ""},
		"a model that ignores":   {18, 17, 34, 34, false, "", "1 of 18"},
		"suspicious":             {18, 0, 34, 9, false, "9 of 34", "too few to be sure"},
		"no control":             {0, 0, 34, 34, false, "", ""},
		"nothing beside":         {18, 0, 0, 0, false, "", ""},
		"fewer lost than alone":  {18, 4, 34, 0, false, "0 of 34", ""},
		"everything beside lost": {6, 0, 30, 30, true, "30 of 30", "too few"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			w := newWorld(t)
			for i := range c.alone {
				w.onArm(0, wire.ArmNull, 1, i >= c.aloneLost)
			}
			for i := range c.beside {
				w.onArm(i%3, wire.ArmLoad, 1, i >= c.besideLost)
			}
			w.onArm(0, wire.ArmLoad, 1, false).Left = true
			expectTest(t, w.judge("contamination"), oracle.Contamination, c.small, c.says, c.unsure)
		})
	}
}

// TestContaminationAmongLikePrompts has a model that answers from the last turn
// alone: it has the values of short prompts and not those at the start of long
// ones, whatever else runs.
func TestContaminationAmongLikePrompts(t *testing.T) {
	for name, c := range map[string]struct {
		alone, beside []int // turns of the prompts
		lost          bool  // values are lost beside others, too, where they would not be alone
		small         bool
		says, unsure  string
	}{
		"long ones beside only":     {[]int{1, 1, 1, 1}, []int{1, 1, 1, 7, 7, 7, 7}, false, false, "0 of 3", ""},
		"long ones alone, too":      {[]int{1, 1, 1, 7, 7}, []int{1, 1, 1, 7, 7, 7, 7}, false, false, "4 of 7", ""},
		"short ones lost, too":      {[]int{1, 1, 1, 1, 1, 1, 1, 1, 7, 7}, []int{1, 1, 1, 1, 1, 1, 1, 7, 7}, true, true, "9 of 9", "too few"},
		"most are hard, alone, too": {[]int{1, 1, 1, 7, 7, 7, 7, 7, 7}, []int{1, 1, 7}, false, false, "1 of 3", ""},
		"nothing that is like them": {[]int{1, 1, 1}, []int{7, 7, 7}, false, false, "", "3 of 3"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			w := newWorld(t)
			for _, turns := range c.alone {
				w.onArm(0, wire.ArmNull, 1, turns == 1).Messages = turns
			}
			for _, turns := range c.beside {
				w.onArm(1, wire.ArmLoad, 1, turns == 1 && !c.lost).Messages = turns
			}
			expectTest(t, w.judge("contamination"), oracle.Contamination, c.small, c.says, c.unsure)
		})
	}
}

// TestContaminationAmongLikeQuestions has a model that gives values and no whole
// lines: that many more lines are asked for beside others says nothing.
func TestContaminationAmongLikeQuestions(t *testing.T) {
	w := newWorld(t)
	for i := range 60 {
		line := i%3 > 0
		e := w.onArm(1, wire.ArmLoad, 1, !line)
		if e.Messages = 1; line {
			e.Tail += wire.WholeLine
		}
		if i < 30 {
			e = w.onArm(0, wire.ArmNull, 1, i > 0)
			if e.Messages = 1; i == 0 {
				e.Tail += wire.WholeLine
			}
		}
	}
	expectTest(t, w.judge("contamination"), oracle.Contamination, false, "40 of 60", "")
}

// TestContaminationLeavesOutLongerPrompts holds no prompt against one of a
// fifth of its length: a model may forget more of it.
func TestContaminationLeavesOutLongerPrompts(t *testing.T) {
	w := newWorld(t)
	for i := range 40 {
		e := w.onArm(0, wire.ArmNull, 1, true)
		e.Messages, e.SentTokens = 7, 800+i
		e = w.onArm(1, wire.ArmLoad, 1, i%2 == 0)
		e.Messages, e.SentTokens = 7, 800+i
		if i%2 == 1 {
			e.SentTokens = 4096
		}
	}
	expectTest(t, w.judge("contamination"), oracle.Contamination, false, "0 of 20", "")
}

// answers adds a prompt and its repetition, with their answers.
func (w *world) answers(before, after string, group int, first, again string) {
	a := w.onArm(0, before, group, true)
	a.Answer.Pieces = []wire.Piece{piece("content", first)}
	seq := a.Seq
	b := w.onArm(0, after, group, true)
	b.Holds, b.Answer.Pieces = []int{seq}, []wire.Piece{piece("content", again)}
}

func TestReplay(t *testing.T) {
	for name, c := range map[string]struct {
		rounds, nullDiffers, differs int
		small                        bool
		says, unsure                 string
	}{
		"the same":              {4, 0, 0, false, "0 of 4", ""},
		"all change":            {8, 0, 8, true, "8 of 8", "too few"},
		"too few to be sure":    {4, 0, 4, false, "4 of 4", "too few to be sure"},
		"one changes":           {4, 0, 1, false, "1 of 4", "too few to be sure"},
		"answers always change": {8, 8, 8, false, "", "8 of 8"},
		"now and then":          {8, 1, 8, false, "", "1 of 8"},
		"nothing made":          {0, 0, 0, false, "", ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			w := newWorld(t)
			for i := range c.rounds {
				said := fmt.Sprintf("answer %d", i)
				other := func(changes bool) string {
					if changes {
						return said + " or so"
					}
					return said
				}
				w.answers(wire.ArmNull, wire.ArmNull, i+1, said, other(i < c.nullDiffers))
				w.answers(wire.ArmFirst, wire.ArmAgain, i+1, said, other(i < c.differs))
			}
			expectTest(t, w.judge("replay"), oracle.Contamination, c.small, c.says, c.unsure)
		})
	}
}

// sharers adds pairs of a prompt that ada has begun and a new one, with what is
// reported as cached, or -1 for no usage, and the time to the first token.
func (w *world) sharers(pairs int, hit, own, miss int, wait func(arm string) time.Duration) {
	arm := func(name string, tenant, group, cached int) *wire.Exchange {
		e := w.onArm(tenant, name, group, true)
		e.Stream = true
		e.Answer.FirstToken = e.Answer.Start.Add(wait(name))
		if cached >= 0 {
			e.Answer.Usage = &wire.Usage{Prompt: 1000, Cached: cached}
		}
		return e
	}
	for i := range pairs {
		seq := arm("", 0, i+1, 0).Seq
		arm(wire.ArmMiss, 1, i+1, miss)
		arm(wire.ArmHit, 1, i+1, hit).Holds = []int{seq}
		arm(wire.ArmOwn, 0, i+1, own).Holds = []int{seq}
	}
}

func TestSharingByCachedTokens(t *testing.T) {
	steady := func(string) time.Duration { return time.Second }
	for name, c := range map[string]struct {
		hit, own, miss int
		found          bool
	}{
		"shared":                     {896, 896, 0, true},
		"shared, a template as well": {896, 896, 64, true},
		"kept apart":                 {0, 896, 0, false},
		"a template only":            {64, 896, 64, false},
		"a page more than usual":     {128, 896, 64, false},
		"everything is cached":       {896, 896, 896, false},
		"nothing is reported":        {-1, -1, -1, false},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			w := newWorld(t)
			w.sharers(2, c.hit, c.own, c.miss, steady)
			j := w.judge("sharing")
			if c.found {
				w.expect(j, "sharing 2/bob from 0/ada in , 0 words at 0", "sharing 6/bob from 4/ada in , 0 words at 0")
			} else {
				w.expect(j)
			}
			if j.Unsure != "" {
				t.Errorf("unsure %q", j.Unsure)
			}
		})
	}
}

// What this tenant has sent before, though nothing came of it, may well be cached.
func TestSharingOfWhatWasSentAgain(t *testing.T) {
	w := newWorld(t)
	w.sharers(3, 896, 896, 0, func(string) time.Duration { return time.Second })
	for i := range w.all {
		if w.all[i].Arm == wire.ArmHit && w.all[i].Group != 2 {
			w.all[i].Answer.Resent = 1
		}
	}
	w.expect(w.judge("sharing"), "sharing 6/bob from 4/ada in , 0 words at 0")
}

// A count of cached tokens that is as large of prompts that nobody has sent
// proves nothing, whichever of them happens to be the largest.
func TestSharingByCountsThatAreChance(t *testing.T) {
	w := newWorld(t)
	w.sharers(3, 0, 0, 0, func(string) time.Duration { return time.Second })
	for i := range w.all {
		w.all[i].Answer.Usage.Cached = []int{640, 420, 880, 700, 120, 300, 610, 260}[i%8] + i
		w.all[i].SentTokens, w.all[i].SentExact = 1000, true
	}
	if j := w.judge("sharing"); len(j.Findings) > 0 {
		t.Errorf("found %+v", j.Findings)
	}
}

func TestSharingByTime(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	slow := func() time.Duration { return time.Duration(200+100*r.ExpFloat64()) * time.Millisecond }
	for name, c := range map[string]struct {
		pairs       int
		cached, own int
		faster      time.Duration
		small       bool
		says, doubt string
	}{
		"shared":                            {25, -1, -1, 150 * time.Millisecond, true, "in 25 of 25 pairs", "too few"},
		"the same":                          {25, -1, -1, 0, false, "pairs", ""},
		"shared, few pairs":                 {8, -1, -1, 190 * time.Millisecond, false, "in 8 of 8 pairs", "too few to be sure"},
		"usage that never says cached":      {25, 0, 0, 150 * time.Millisecond, true, "in 25 of 25 pairs", "too few"},
		"reported for its own and not here": {25, 0, 900, 150 * time.Millisecond, false, "", ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			w := newWorld(t)
			w.sharers(c.pairs, c.cached, c.own, c.cached, func(arm string) time.Duration {
				if arm == wire.ArmHit && c.faster > 0 {
					return 200*time.Millisecond - c.faster
				}
				return slow()
			})
			expectTest(t, w.judge("sharing"), oracle.Sharing, c.small, c.says, c.doubt)
		})
	}
}

// TestContaminationOfEachGroup has one comparison whose control fails and one
// that shows something: neither hides the other, nor adds to it.
func TestContaminationOfEachGroup(t *testing.T) {
	w := newWorld(t)
	for i := range 16 {
		w.onArm(0, wire.ArmNull, 1, i%4 == 0) // prompts that are lost even alone
		w.onArm(0, wire.ArmLoad, 1, true)
		w.onArm(1, wire.ArmNull, 2, true)
		w.onArm(1, wire.ArmLoad, 2, i%4 == 0)
		w.onArm(1, wire.ArmNull, 3, true)
		w.onArm(1, wire.ArmLoad, 3, true)
	}
	j := w.judge("contamination")
	if len(j.Tests) != 2 {
		t.Fatalf("tests %+v, want one of each group whose model obeys when it is alone", j.Tests)
	}
	for i, want := range []string{"12 of 16", "0 of 16"} {
		test := j.Tests[i]
		if !strings.HasPrefix(test.Finding.Explain, want) || test.P <= 1e-3 != (i == 0) {
			t.Errorf("p = %v: %s, want %s", test.P, test.Finding.Explain, want)
		}
	}
	if !strings.HasPrefix(j.Unsure, "12 of 16") {
		t.Errorf("unsure %q", j.Unsure)
	}
}

// TestContaminationOfManyGroups has many comparisons on a sound target, of which
// one looks odd by chance: no reason for doubt.
func TestContaminationOfManyGroups(t *testing.T) {
	w := newWorld(t)
	for g := range 6 {
		for i := range 8 {
			w.onArm(0, wire.ArmNull, g+1, true)
			w.onArm(1, wire.ArmLoad, g+1, g > 0 || i > 3)
		}
	}
	if j := w.judge("contamination"); len(j.Tests) != 6 || j.Unsure != "" {
		t.Errorf("%d tests, unsure %q", len(j.Tests), j.Unsure)
	}
}

// TestContaminationOfWhatIsKept tells prompts that begin as earlier ones did from
// those that had others beside them.
func TestContaminationOfWhatIsKept(t *testing.T) {
	for _, repeats := range []bool{false, true} {
		w := newWorld(t)
		for range 10 {
			seq := w.onArm(0, wire.ArmNull, 1, true).Seq
			if e := w.onArm(0, wire.ArmLoad, 1, false); repeats {
				e.Holds = []int{seq}
			}
		}
		says, not := "what else runs", "what is kept"
		if repeats {
			says, not = not, says
		}
		expectTest(t, w.judge("contamination"), oracle.Contamination, true, says, "too few")
		if j := w.judge("contamination"); len(j.Tests) == 1 && strings.Contains(j.Tests[0].Finding.Explain, not) {
			t.Errorf("repeats %v: %s", repeats, j.Tests[0].Finding.Explain)
		}
	}
}
