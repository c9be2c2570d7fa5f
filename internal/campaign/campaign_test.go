package campaign

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

func TestCleanRun(t *testing.T) {
	defer goleak.VerifyNone(t)
	f := &fakeTarget{counts: true, limit: 1500}
	s := &script{batches: [][]probe.Send{sends(3, 1000), {fillerSend(2000)}}}
	res := mustRun(t, config(f, s.protocol("straddle")))
	p := res.Protocols[0]
	if res.Verdict != Clean || p.Verdict != Clean || p.Exchanges != 4 || p.Served != 3 || p.Refused != 1 {
		t.Fatalf("verdict %s, protocol %+v", res.Verdict, p)
	}
	// Only the refused prompt was a test. 0 of 1 at 95 % is 0.95, divided by the sensitivity.
	if b := p.Bound; b == nil || b.N != 1 || b.Confidence != 0.95 || abs(int(1e4*b.RateUpper*b.Sensitivity)-9500) > 1 {
		t.Errorf("bound %+v", p.Bound)
	}
	want := Limits{AcceptedMax: 1000, RejectedMin: 2000, Rejection: "HTTP 400, context"}
	if res.Limits != want {
		t.Errorf("limits %+v, want %+v", res.Limits, want)
	}
	if res.Spent != (Spent{Exchanges: 4, Requests: 4, PromptTokens: 5000, CompletionTokens: 15}) {
		t.Errorf("spent %+v", res.Spent)
	}
	if res.Controls != (Controls{Planted: 4, NeverSent: controlIDs}) {
		t.Errorf("controls %+v", res.Controls)
	}
}

// A target that says nothing cannot be shown to be clean.
func TestSilenceIsNotClean(t *testing.T) {
	f := &fakeTarget{}
	f.answer = func(context.Context, int, string) *wire.Answer {
		a := served("")
		a.Pieces = []wire.Piece{{Channel: wire.Header, Text: "Server: mute"}, {Channel: wire.Content, Text: " \n"}}
		return a
	}
	res := mustRun(t, config(f, (&script{batches: [][]probe.Send{sends(3, 400)}}).protocol("smoke")))
	if res.Verdict != Inconclusive || !strings.Contains(res.Protocols[0].Reason, "no answer had any text") {
		t.Errorf("verdict %s: %s", res.Verdict, res.Protocols[0].Reason)
	}
}

// What one exchange planted comes out in the answer of the next.
func TestLeakIsFoundAndNamed(t *testing.T) {
	f := &fakeTarget{}
	f.answer = func(_ context.Context, call int, _ string) *wire.Answer {
		if call == 1 {
			return served("Of course: " + strings.Join(strings.Fields(f.texts[0])[5:25], " "))
		}
		return nil
	}
	s := &script{batches: [][]probe.Send{{fillerSend(600)}, {fillerSend(600)}}}
	cfg := config(f, s.protocol("smoke"))
	cfg.Oracles = append(cfg.Oracles, scan()) // what two oracles see counts once
	res := mustRun(t, cfg)
	if res.Verdict != Leak || res.Verdict.ExitCode() != 1 || len(res.Findings) != 1 {
		t.Fatalf("verdict %s, findings %+v", res.Verdict, res.Findings)
	}
	if got := res.Findings[0]; got.Exchange != 1 || *got.FromExchange != 0 || got.FromTenant != "a" {
		t.Errorf("finding %+v", got)
	}
	if res.Protocols[0].Bound != nil {
		t.Error("a leak carries the bound of a clean verdict")
	}
}

func TestControlsSpoilTheVerdict(t *testing.T) {
	cfg := config(&fakeTarget{}, (&script{batches: [][]probe.Send{sends(2, 400)}}).protocol("smoke"))
	cfg.Oracles = append(cfg.Oracles, oracle.Oracle{Name: "broken", Judge: func(_ context.Context, c oracle.Case) oracle.Judgement {
		if len(c.Controls) != controlIDs || c.Controls[0] == canary.ID(c.All[0].ID) {
			t.Errorf("controls %v", c.Controls)
		}
		from := 0
		return oracle.Judgement{ControlHits: 1, Findings: []oracle.Finding{{Kind: oracle.Leak, FromExchange: &from, Explain: "x"}}}
	}})
	res := mustRun(t, cfg)
	if res.Verdict != Inconclusive || !strings.Contains(res.Reason, "never sent") || res.Controls.NeverSentHits != 1 {
		t.Errorf("verdict %s, reason %q, controls %+v", res.Verdict, res.Reason, res.Controls)
	}
}

func TestVerdicts(t *testing.T) {
	finding := func(k oracle.Kind) oracle.Oracle {
		return oracle.Oracle{Name: string(k), Judge: func(_ context.Context, c oracle.Case) oracle.Judgement {
			return oracle.Judgement{Findings: []oracle.Finding{{Kind: k, Protocol: c.Exchanges[0].Protocol, Explain: "x"}}}
		}}
	}
	for _, c := range []struct {
		name    string
		target  *fakeTarget
		script  *script
		oracles []oracle.Oracle
		want    Verdict
		code    int
		reason  string
	}{
		{"misroute is a leak", &fakeTarget{}, &script{batches: [][]probe.Send{sends(1, 400)}}, []oracle.Oracle{finding(oracle.Misroute)}, Leak, 1, ""},
		{"fail open is a violation", &fakeTarget{}, &script{batches: [][]probe.Send{sends(1, 400)}}, []oracle.Oracle{finding(oracle.FailOpen)}, Violation, 1, ""},
		{"the worst counts", &fakeTarget{}, &script{batches: [][]probe.Send{sends(1, 400)}}, []oracle.Oracle{finding(oracle.FailOpen), finding(oracle.Leak)}, Leak, 1, ""},
		{"coverage missing", &fakeTarget{}, &script{batches: [][]probe.Send{sends(1, 400)}, missing: "isolation between keys was not tested"}, nil, Inconclusive, 3, "isolation between keys was not tested"},
		{"a finding outweighs missing coverage", &fakeTarget{}, &script{batches: [][]probe.Send{sends(1, 400)}, missing: "the rest"}, []oracle.Oracle{finding(oracle.Truncation)}, Violation, 1, "the rest"},
		{"nothing sent", &fakeTarget{}, &script{}, nil, Inconclusive, 3, "no exchange was served"},
		{"nothing served", &fakeTarget{limit: 10}, &script{batches: [][]probe.Send{sends(2, 400)}}, nil, Inconclusive, 3, "no exchange was served"},
		{"sound", &fakeTarget{}, &script{batches: [][]probe.Send{sends(1, 400)}}, nil, Clean, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := config(c.target, c.script.protocol("p"))
			cfg.Oracles = c.oracles
			res := mustRun(t, cfg)
			if res.Verdict != c.want || res.Verdict.ExitCode() != c.code || !strings.Contains(res.Protocols[0].Reason, c.reason) {
				t.Errorf("verdict %s (exit %d), reason %q", res.Verdict, res.Verdict.ExitCode(), res.Protocols[0].Reason)
			}
		})
	}
}

func TestTheWorstProtocolDecides(t *testing.T) {
	order := []Verdict{Leak, Violation, Inconclusive, Clean}
	for i, a := range order {
		for j, b := range order {
			if got := a.worse(b); got != order[min(i, j)] {
				t.Errorf("worse of %s and %s is %s", a, b, got)
			}
		}
	}
}

func TestUnusableTargets(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer *wire.Answer
		says   string
	}{
		{"unreachable", failed(wire.FailedConnect, "nothing listens at http://127.0.0.1:1: is the server running?"), "nothing listens"},
		{"tls", failed(wire.FailedTLS, "certificate has expired"), "certificate"},
		{"html", failed(wire.FailedNotAPI, "answered HTML, not JSON"), "HTML"},
		{"key", refused(wire.RefusedAuth, 401, "bad key"), "HTTP 401"},
		{"model", refused(wire.RefusedModel, 404, "no model"), "HTTP 404"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fakeTarget{answer: func(context.Context, int, string) *wire.Answer { a := *c.answer; return &a }}
			second := &script{batches: [][]probe.Send{sends(1, 400)}}
			cfg := config(f, (&script{batches: [][]probe.Send{sends(2, 400), sends(2, 400)}}).protocol("smoke"), second.protocol("boundary"))
			res, err := Run(context.Background(), cfg)
			var target *TargetError
			if !errors.As(err, &target) || !strings.Contains(target.Reason, c.says) {
				t.Fatalf("error %v", err)
			}
			if res == nil || res.Verdict != Inconclusive || f.calls != 2 || second.next != 0 || res.Protocols[0].Reason != target.Reason {
				t.Errorf("result %+v after %d calls", res, f.calls)
			}
		})
	}
}

// A target that has worked once is usable: what happens later is a matter of coverage.
func TestTargetThatGoesAway(t *testing.T) {
	for name, answer := range map[string]*wire.Answer{
		"gone":       failed(wire.FailedConnect, "nothing listens"),
		"key pulled": refused(wire.RefusedAuth, 401, "bad key"),
		"no balance": refused(wire.RefusedQuota, 402, "no balance"),
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeTarget{answer: func(_ context.Context, call int, _ string) *wire.Answer {
				if call == 0 {
					return nil
				}
				a := *answer
				return &a
			}}
			res := mustRun(t, config(f, (&script{batches: [][]probe.Send{sends(1, 400), sends(1, 400), sends(1, 400)}}).protocol("smoke")))
			if res.Verdict != Inconclusive || res.Protocols[0].Reason == "" || f.calls != 2 {
				t.Errorf("verdict %s, reason %q after %d calls", res.Verdict, res.Protocols[0].Reason, f.calls)
			}
		})
	}
}

func TestResultsComeBackInTheOrderOfTheSends(t *testing.T) {
	f := &fakeTarget{answer: func(_ context.Context, call int, prompt string) *wire.Answer {
		time.Sleep(time.Duration(10-call) * time.Millisecond / 4) // later ones are faster
		return nil
	}}
	s := &script{batches: [][]probe.Send{sends(10, 400), sends(3, 400)}}
	cfg := config(f, s.protocol("smoke"))
	cfg.Concurrency = 8
	var last Progress
	cfg.Progress = func(p Progress) {
		if p.Sent != last.Sent+1 || p.Protocol != "smoke" {
			t.Errorf("progress %+v after %+v", p, last)
		}
		last = p
	}
	res := mustRun(t, cfg)
	seq := 0
	for _, batch := range s.seen {
		for _, e := range batch {
			if e.Seq != seq || canary.ID(e.ID).Seq() != seq || canary.ID(e.ID).Run() != res.Run {
				t.Errorf("exchange %d (id %x) in place of %d", e.Seq, e.ID, seq)
			}
			seq++
		}
	}
	if seq != 13 || last.Sent != 13 || last.Requests != 13 || last.PromptTokens != res.Spent.PromptTokens {
		t.Errorf("%d exchanges, progress %+v, spent %+v", seq, last, res.Spent)
	}
}

// Same seed and answers, same prompts and result, whatever the timing.
func TestSameSeedSameRun(t *testing.T) {
	run := func(seed uint64, concurrency int) (*Result, map[string]bool) {
		f := &fakeTarget{tokenize: wordTokens, answer: func(_ context.Context, call int, _ string) *wire.Answer {
			time.Sleep(time.Duration(call%3) * time.Millisecond)
			return nil
		}}
		s := &script{batches: [][]probe.Send{sends(5, 500), sends(5, 900)}}
		cfg := config(f, s.protocol("a"), (&script{batches: [][]probe.Send{sends(2, 500)}}).protocol("b"))
		cfg.Seed, cfg.Concurrency = seed, concurrency
		cfg.Now = func() time.Time { return time.Unix(0, 0) }
		texts := map[string]bool{}
		res := mustRun(t, cfg)
		for _, x := range f.texts {
			texts[x] = true
		}
		return res, texts
	}
	r1, t1 := run(1, 1)
	r2, t2 := run(1, 5)
	if !reflect.DeepEqual(r1, r2) || !reflect.DeepEqual(t1, t2) {
		t.Errorf("the same seed made two different runs:\n%+v\n%+v", r1, r2)
	}
	if r3, t3 := run(2, 1); r3.Run == r1.Run || reflect.DeepEqual(t1, t3) {
		t.Error("another seed made the same run")
	}
}

func TestProtocolsLearnFromThoseBefore(t *testing.T) {
	first := &script{batches: [][]probe.Send{sends(1, 400)}, found: probe.Found{AcceptedMax: 900, RejectedMin: 901}}
	second := &script{batches: [][]probe.Send{sends(1, 400)}}
	cfg := config(&fakeTarget{}, first.protocol("boundary"), second.protocol("straddle"))
	cfg.Facts = Facts{Context: 5000, Pool: 1000, PageSize: 16}
	cfg.Budget.Tokens = 100_000
	limits := []int{}
	cfg.Oracles = []oracle.Oracle{{Name: "limit", Judge: func(_ context.Context, c oracle.Case) oracle.Judgement {
		limits = append(limits, c.Limit)
		return oracle.Judgement{}
	}}}
	res := mustRun(t, cfg)
	if e := second.env; e.Found != first.found || e.Context != 5000 || e.Pool != 1000 || e.PageSize != 16 || e.Tenants != 1 || e.MaxAnswer != defaultMaxAnswer {
		t.Errorf("second protocol starts with %+v", e)
	}
	if first.env.MaxPrompt != 97835 || second.env.MaxPrompt >= first.env.MaxPrompt {
		t.Errorf("longest prompts %d, then %d", first.env.MaxPrompt, second.env.MaxPrompt)
	}
	if first.env.Seed == second.env.Seed {
		t.Error("two protocols make the same choices")
	}
	if !reflect.DeepEqual(limits, []int{901, 901}) {
		t.Errorf("oracles were given limits %v", limits)
	}
	_ = res
}

func TestInterruption(t *testing.T) {
	defer goleak.VerifyNone(t)
	for name, c := range map[string]struct {
		oracles []oracle.Oracle
		want    Verdict
	}{"with a leak found": {[]oracle.Oracle{scan()}, Leak}, "with nothing found": {nil, Inconclusive}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			f := &fakeTarget{}
			f.answer = func(ctx context.Context, call int, _ string) *wire.Answer {
				switch call {
				case 1:
					return served(strings.Join(strings.Fields(f.texts[0])[5:25], " "))
				case 2:
					cancel()
					<-ctx.Done()
					return failed(wire.FailedCanceled, "stopped")
				}
				return nil
			}
			one := [][]probe.Send{sends(1, 400), sends(1, 400), sends(1, 400), sends(1, 400)}
			after := &script{batches: one}
			cfg := config(f, (&script{batches: one}).protocol("smoke"), after.protocol("boundary"))
			cfg.Oracles, cfg.OutDir = c.oracles, t.TempDir()
			res, err := Run(ctx, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if res.Verdict != c.want || res.Reason != "interrupted" || res.Protocols[0].Exchanges != 3 || after.next != 0 {
				t.Errorf("verdict %s, reason %q, protocols %+v", res.Verdict, res.Reason, res.Protocols)
			}
			l, err := Load(cfg.OutDir)
			if err != nil || l.Result == nil || l.Result.Verdict != c.want {
				t.Errorf("kept %+v, %v", l, err)
			}
		})
	}
}

func TestConfigurationsThatMakeNoSense(t *testing.T) {
	ok := config(&fakeTarget{}, (&script{}).protocol("p"))
	for name, spoil := range map[string]func(*Config){
		"no protocol":       func(c *Config) { c.Protocols = nil },
		"no tenant":         func(c *Config) { c.Tenants = nil },
		"tenant twice":      func(c *Config) { c.Tenants = []Tenant{{Name: "a"}, {Name: "a"}} },
		"tenant no name":    func(c *Config) { c.Tenants = []Tenant{{}} },
		"negative budget":   func(c *Config) { c.Budget.Tokens = -1 },
		"negative pool":     func(c *Config) { c.Facts.Pool = -1 },
		"negative parallel": func(c *Config) { c.Concurrency = -1 },
		"too many tenants": func(c *Config) {
			for i := range 20 {
				c.Tenants = append(c.Tenants, Tenant{Name: fmt.Sprint(i)})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := ok
			spoil(&c)
			if _, err := Run(context.Background(), c); !errors.Is(err, ErrConfig) {
				t.Errorf("error %v", err)
			}
			if _, err := DryRun(c); !errors.Is(err, ErrConfig) {
				t.Errorf("dry run: error %v", err)
			}
		})
	}
}
