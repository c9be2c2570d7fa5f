package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/diagnose"
	"github.com/kvcanary/kvcanary/internal/oracle"
)

func leakResult() *campaign.Result {
	from := 3
	r := &campaign.Result{
		Verdict: campaign.Leak,
		Target:  campaign.Target{BaseURL: "http://127.0.0.1:8000/v1", Model: "m"},
		Protocols: []campaign.ProtocolResult{
			{Name: "straddle", Verdict: campaign.Leak, Exchanges: 8, Served: 8, PromptTokens: 24690, Seconds: 0.4},
			{Name: "tenants", Verdict: campaign.Clean, Exchanges: 18, Served: 18, Bound: &campaign.Bound{RateUpper: 1, Confidence: 0.95, N: 18}},
			{Name: "boundary", Verdict: campaign.Clean, Exchanges: 6, Served: 4, Refused: 2, Bound: &campaign.Bound{RateUpper: 0.7842, Confidence: 0.95, N: 2, Sensitivity: 0.99}},
			{Name: "smoke", Verdict: campaign.Inconclusive, Reason: "the budget of 100 tokens is used up"},
		},
		Findings: []oracle.Finding{{
			Kind: oracle.Leak, Protocol: "straddle", Exchange: 7, Tenant: "beta", FromExchange: &from, FromTenant: "alpha",
			Evidence: oracle.Evidence{Text: strings.Repeat("harbour lemon ", 12), Words: 24},
			Explain:  "an answer carries words of another exchange",
		}},
		Limits:   campaign.Limits{AcceptedMax: 10633, RejectedMin: 10634, Rejection: "HTTP 400, pool"},
		Controls: campaign.Controls{Planted: 3, NeverSent: 16},
	}
	return r
}

func TestTextSaysTheVerdictFirst(t *testing.T) {
	var b bytes.Buffer
	if err := Text(&b, leakResult()); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if !strings.HasPrefix(text, "verdict: leak\n") {
		t.Errorf("it begins with %q", strings.SplitN(text, "\n", 2)[0])
	}
	for _, want := range []string{
		"LEAK: straddle, exchange 7, tenant beta", "harbour lemon ...", "limits: served whole up to 10,633 tokens; from 10,634 on: HTTP 400, pool",
		"nothing is bounded", "fewer than 78 % of such prompts", "power 0.99", "the budget of 100 tokens is used up", "none came back",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
	for _, line := range strings.Split(text, "\n") {
		if len(line) > columns {
			t.Errorf("%d columns: %q", len(line), line)
		}
	}
}

// A prompt cut short is no matter of the pool.
func TestTextTellsTruncationFromFailingOpen(t *testing.T) {
	r := leakResult()
	r.Verdict, r.Findings[0].Kind, r.Findings[0].Evidence = campaign.Violation, oracle.Truncation, oracle.Evidence{}
	r.Limits = campaign.Limits{AcceptedMax: 2047, RejectedMin: 2060, Rejection: "answered with HTTP 200 in place of a refusal", Estimated: true}
	say := func() string {
		var b bytes.Buffer
		if err := Text(&b, r); err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(b.String()), " ")
	}
	if s := say(); !strings.Contains(s, "answered from a part of them") || strings.Contains(s, "the pool at least") || !strings.Contains(s, "about 2,060") {
		t.Errorf("the text is\n%s", s)
	}
	r.Findings[0].Kind = oracle.FailOpen
	if s := say(); strings.Contains(s, "answered from a part of them") || !strings.Contains(s, "the pool at least") {
		t.Errorf("the text is\n%s", s)
	}
}

func TestTextIsLoudAboutControls(t *testing.T) {
	r := leakResult()
	r.Controls.NeverSentHits = 1
	var b bytes.Buffer
	if err := Text(&b, r); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "THAT WERE NEVER SENT CAME BACK") {
		t.Errorf("a control came back and the text is\n%s", &b)
	}
}

// What a target says can not drive a terminal.
func TestTextIsPrintable(t *testing.T) {
	r := leakResult()
	hostile := "a\x1b[2Jb\x07c\u202ed\u200be\u009bf"
	r.Reason, r.Target.Model, r.Limits.Rejection, r.Findings[0].Evidence.Text = hostile, hostile, hostile, hostile
	r.Findings[0].Tenant, r.Findings[0].Explain, r.Protocols[3].Reason = hostile, hostile, hostile
	var b bytes.Buffer
	if err := Text(&b, r); err != nil {
		t.Fatal(err)
	}
	for _, banned := range []string{"\x1b", "\x07", "\u202e", "\u200b", "\u009b"} {
		if strings.Contains(b.String(), banned) {
			t.Errorf("%q reaches the terminal", banned)
		}
	}
}

func TestManyFindingsAreCut(t *testing.T) {
	r := leakResult()
	for range 40 {
		r.Findings = append(r.Findings, r.Findings[0])
	}
	var b bytes.Buffer
	if err := Text(&b, r); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(b.String(), "LEAK: "); got != shown {
		t.Errorf("%d findings shown, want %d", got, shown)
	}
	if !strings.Contains(b.String(), "and 31 findings more") {
		t.Errorf("it does not say how many are left out:\n%s", &b)
	}
}

func TestPlanSumsUp(t *testing.T) {
	f := &campaign.Forecast{PromptTokens: 1200, CompletionTokens: 48, Stopped: "the budget ends it",
		Sends: []campaign.PlannedSend{{Protocol: "smoke", Purpose: "plant", Tenant: "a", Tokens: 1200, MaxTokens: 48}}}
	var b bytes.Buffer
	if err := Plan(&b, f); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1 exchange, about 1,200 prompt tokens and at most 48 answer tokens", "the budget ends it", "Nothing was sent."} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, &b)
		}
	}
}

// What the findings look like stands behind them, with what to check.
func TestTextSaysWhatItLooksLike(t *testing.T) {
	r := leakResult()
	r.Diagnosis = []diagnose.Diagnosis{
		{Fault: "stale_reserve", Mode: "prefill_usage", Probability: 0.93, Means: "pages are read anyway", Check: []string{"Compare the smallest KV pool of all roles with the context."}},
		{Fault: diagnose.Other, Probability: 0.07, Means: "something else"},
	}
	var b bytes.Buffer
	if err := Text(&b, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a hint, no finding", "stale_reserve:prefill_usage, 93 %: pages are read anyway", "- Compare the smallest", "other, 7 %"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, &b)
		}
	}
	b.Reset()
	r.Diagnosis = nil
	if err := Text(&b, r); err != nil || strings.Contains(b.String(), "looks like") {
		t.Errorf("a diagnosis of nothing: %v\n%s", err, &b)
	}
}
