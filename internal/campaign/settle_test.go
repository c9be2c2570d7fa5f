package campaign

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// tester makes the same tests for every protocol, and doubts.
func tester(unsure string, p ...float64) oracle.Oracle {
	return oracle.Oracle{Name: "tester", Judge: func(_ context.Context, c oracle.Case) (j oracle.Judgement) {
		for _, v := range p {
			j.Tests = append(j.Tests, oracle.Test{P: v, Finding: oracle.Finding{
				Kind: oracle.Contamination, Protocol: c.Exchanges[0].Protocol, Tenant: "a", Explain: "it differs",
			}})
		}
		j.Unsure = unsure
		return j
	}}
}

// A test is a finding only if its p-value survives the correction for all
// tests of the run; the doubt that stood in its place goes with it.
func TestTestsAreCorrectedOverTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		oracle   oracle.Oracle
		verdict  Verdict
		findings int
	}{
		"one small":            {tester("", 1e-4), Violation, 2},
		"small and doubted":    {tester("too few", 1e-4), Violation, 2},
		"small among many":     {tester("", 1e-4, 1, 1, 1, 1, 1, 1), Clean, 0},
		"not small":            {tester("", 0.01), Clean, 0},
		"not small and doubts": {tester("too few", 0.01), Inconclusive, 0},
		"none":                 {tester(""), Clean, 0},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			cfg := config(&fakeTarget{}, one().protocol("smoke"), one().protocol("tenants"))
			cfg.Oracles = []oracle.Oracle{c.oracle}
			res := mustRun(t, cfg)
			if res.Verdict != c.verdict || len(res.Findings) != c.findings {
				t.Fatalf("%s (%s), findings %+v", res.Verdict, res.Reason, res.Findings)
			}
			for _, f := range res.Findings {
				if f.PValue == nil || *f.PValue > falseAlarms || !strings.Contains(f.Explain, "over 2 tests") {
					t.Errorf("%+v", f)
				}
			}
			for _, p := range res.Protocols {
				if p.Verdict != c.verdict || (p.Bound != nil) != (c.verdict == Clean) || (p.Reason != "") != (c.verdict == Inconclusive) {
					t.Errorf("%+v", p)
				}
			}
			if err := runSchema(t).Validate(asJSON(t, res)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnswersThatSayNothing(t *testing.T) {
	asked := func(text string) wire.Exchange {
		return wire.Exchange{Nonces: [3]string{"abcde-fghij"}, Answer: served(text)}
	}
	long := asked("abcde-fghij")
	long.Answer.Overran = true
	unasked := asked("noted")
	unasked.Asked = -1
	for name, c := range map[string]struct {
		protocol, unsure string
		all              []wire.Exchange
		says             string
	}{
		"all echo":             {"smoke", "", []wire.Exchange{asked("abcde-fghij")}, ""},
		"one echoes":           {"smoke", "", []wire.Exchange{asked("noted"), asked("ABCDE-FGHIJ"), asked("noted")}, ""},
		"none echoes":          {"tenants", "", []wire.Exchange{asked("noted"), asked("noted"), unasked}, "none of 2 answers"},
		"none is asked":        {"smoke", "", []wire.Exchange{unasked}, ""},
		"where refusals count": {"boundary", "", []wire.Exchange{asked("noted")}, ""},
		"unsure":               {"smoke", "too few", []wire.Exchange{asked("abcde-fghij")}, "too few"},
		"too much text":        {"smoke", "", []wire.Exchange{asked("abcde-fghij"), long}, "more text than is looked through"},
	} {
		if got := unread(c.protocol, c.all, c.unsure); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q, want %q", name, got, c.says)
		}
	}
}

// A limit that was only said to be one, which the target serves prompts over,
// has tested nothing.
func TestLimitThatIsNotKept(t *testing.T) {
	over := wire.Exchange{Purpose: wire.Over, Limit: 4096, SentTokens: 4097, Answer: served("abcde-fghij")}
	no := wire.Exchange{Purpose: wire.Over, Limit: 4096, SentTokens: 4097, Answer: refused(wire.RefusedContext, 400, "too long")}
	read := over
	read.Limit, read.Answer = 4000, served("abcde-fghij")
	read.Answer.Usage = &wire.Usage{Prompt: 4097}
	unread := read
	unread.Answer = served("abcde-fghij")
	busy := wire.Exchange{Purpose: wire.Over, Limit: 4096, Answer: refused(wire.RefusedRate, 429, "slow down")}
	picture := wire.Exchange{Purpose: wire.Unrelated, SentTokens: 1024, Answer: refused(wire.RefusedServer, 500, "no pictures here")}
	long := wire.Exchange{Purpose: wire.Size, SentTokens: 9000, Answer: refused(wire.RefusedServer, 500, "out of memory")}
	under := wire.Exchange{Purpose: wire.Under, Limit: 4096, SentTokens: 4000, Answer: served("abcde-fghij")}
	for name, c := range map[string]struct {
		all  []wire.Exchange
		kept bool
	}{
		"all served":          {[]wire.Exchange{under, over, busy}, false},
		"one refused":         {[]wire.Exchange{under, over, no}, true},
		"a long one broken":   {[]wire.Exchange{under, over, long}, true},
		"a picture broken":    {[]wire.Exchange{under, over, picture}, false},
		"a pool, all read":    {[]wire.Exchange{under, read}, true},
		"a pool, no count":    {[]wire.Exchange{under, unread}, false},
		"nothing was over it": {[]wire.Exchange{under}, true},
	} {
		cfg, err := config(&fakeTarget{}, one().protocol("straddle")).complete()
		if err != nil {
			t.Fatal(err)
		}
		r := newRunner(cfg)
		r.all, r.cfg.Facts.Context = c.all, 4096
		if got := r.unenforced(c.all); (got == "") != c.kept || !c.kept && !strings.Contains(got, "over the limit of 40") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// While a protocol is judged, what came before it is on disk, as a run that
// has not come to its end.
func TestResultIsKeptWhileJudging(t *testing.T) {
	cfg := config(&fakeTarget{}, one().protocol("smoke"), one().protocol("tenants"))
	cfg.OutDir = filepath.Join(t.TempDir(), "run")
	looks := 0
	cfg.Oracles = []oracle.Oracle{{Name: "looks", Judge: func(_ context.Context, c oracle.Case) (j oracle.Judgement) {
		l, err := Load(cfg.OutDir)
		if err != nil || l.Result == nil || len(l.Result.Protocols) != looks || !l.Result.Resumable || l.Result.Verdict == Clean {
			t.Errorf("look %d: %+v, %v", looks, l, err)
		}
		looks++
		return j
	}}}
	if res := mustRun(t, cfg); res.Verdict != Clean || looks != 2 {
		t.Errorf("%s after %d looks", res.Verdict, looks)
	}
	if _, err := os.Stat(filepath.Join(cfg.OutDir, resultFile)); err != nil {
		t.Error(err)
	}
}

// Judging outlives the campaign, but not for long.
func TestJudgingOutlivesTheCampaign(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	own, done := judging(ctx)
	cancel()
	if own.Err() != nil {
		t.Error("judging ends with the campaign")
	}
	done()
	<-own.Done()
}
