package admit

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/guard/shape"
	"pgregory.net/rapid"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestDecide(t *testing.T) {
	known := Limit{Tokens: 10_633, Source: "pool 10,640 less reserve 7, from GET /server_info max_total_num_tokens", Total: 12_000, TotalSource: "decode pool 12,000", At: now}
	old := known
	old.At = now.Add(-time.Hour)
	ahead := known
	ahead.At = now.Add(time.Hour)
	open, output, off := Default(), Default(), Default()
	open.Open, output.CountOutput, off.Off = true, true, true
	for name, c := range map[string]struct {
		l       Limit
		p       Policy
		s       Size
		verdict Verdict
		reason  Reason
		status  int
		says    string // in the message
	}{
		"bytes prove it":            {known, Default(), Size{AtMost: 10_633}, Pass, ByBound, 0, ""},
		"one more may not fit":      {known, Default(), Size{AtMost: 10_634}, Count, Undecided, 0, ""},
		"nothing bounds it":         {known, Default(), Size{AtMost: Unbounded}, Count, Undecided, 0, ""},
		"counted":                   {known, Default(), Size{AtLeast: 10_633, AtMost: 10_633, Tried: true}, Pass, ByCount, 0, ""},
		"counted, one too many":     {known, Default(), Size{AtLeast: 10_634, AtMost: 10_634, Tried: true}, Refuse, TooLong, 400, "prompt is too long: 10,634 tokens > 10,633 maximum (exactly 10,634, limit 10,633: pool 10,640 less reserve 7, from GET /server_info max_total_num_tokens)"},
		"the counter gave up":       {known, Default(), Size{AtLeast: 10_634, AtMost: Unbounded, Tried: true}, Refuse, TooLong, 400, "(at least 10,634, "},
		"too long, policy open":     {known, open, Size{AtLeast: 10_634, AtMost: Unbounded, Tried: true}, Refuse, TooLong, 400, ""},
		"no count":                  {known, Default(), Size{AtMost: 20_000, Tried: true, Why: "the engine did not answer in time"}, Refuse, NotCounted, 503, "at most 20,000 tokens, the limit 10,633 (pool 10,640 less reserve 7, from GET /server_info max_total_num_tokens), and it could not be counted exactly: the engine did not answer in time"},
		"no count, ever":            {known, Default(), Size{AtMost: 20_000, Tried: true, Final: true}, Refuse, NotCounted, 400, "send less"},
		"no count, open":            {known, open, Size{AtMost: 20_000, Tried: true}, Pass, NotCounted, 0, ""},
		"no count, but it fits":     {known, Default(), Size{AtMost: 9000, Tried: true}, Pass, ByCount, 0, ""},
		"no limit":                  {Limit{}, Default(), Size{AtMost: 1}, Refuse, NoLimit, 503, "not known, so none is sent: nothing was measured yet"},
		"no limit, and why":         {Limit{Source: "no worker could be asked"}, Default(), Size{AtMost: 1}, Refuse, NoLimit, 503, "no worker could be asked"},
		"no limit, open":            {Limit{}, open, Size{AtMost: 1}, Pass, NoLimit, 0, ""},
		"old limit":                 {old, Default(), Size{AtMost: 1}, Refuse, OldLimit, 503, "measured 1h0m0s ago and may be 10m0s old at most"},
		"old limit, open":           {old, open, Size{AtMost: 1}, Pass, OldLimit, 0, ""},
		"over an old limit, open":   {old, open, Size{AtLeast: 10_634, AtMost: 10_634}, Refuse, TooLong, 400, ""},
		"a clock that went back":    {ahead, Default(), Size{AtMost: 1}, Refuse, OldLimit, 503, ""},
		"output is the engine's":    {known, Default(), Size{AtMost: 10_000, Output: math.MaxInt}, Pass, ByBound, 0, ""},
		"output counts":             {known, output, Size{AtMost: 10_000, Output: 2000}, Pass, ByBound, 0, ""},
		"output may not fit":        {known, output, Size{AtMost: 10_000, Output: 2001}, Count, Undecided, 0, ""},
		"output does not fit":       {known, output, Size{AtLeast: 10_000, AtMost: 10_000, Output: 2001, Tried: true}, Refuse, TooMuch, 400, "a prompt of at least 10,000 and an answer of up to 2,001, together at most 12,000: decode pool 12,000"},
		"more output than any":      {known, output, Size{AtMost: 5, Output: math.MaxInt}, Refuse, TooMuch, 400, ""},
		"an answer has one token":   {Limit{Tokens: 12_000, Total: 12_000}, output, Size{AtLeast: 12_000, AtMost: 12_000, Tried: true}, Refuse, TooMuch, 400, ""},
		"admission off":             {Limit{}, off, Size{AtLeast: 1 << 40, AtMost: Unbounded}, Pass, NotAsked, 0, ""},
		"a limit that does not age": {Limit{Tokens: 5}, Default(), Size{AtMost: 5}, Pass, ByBound, 0, ""},
	} {
		d := Decide(c.l, now, c.p, c.s)
		if d.Verdict != c.verdict || d.Reason != c.reason || d.Error.Status != c.status || !strings.Contains(d.Error.Message, c.says) {
			t.Errorf("%s: %+v", name, d)
		}
		if (d.Verdict == Refuse) != (d.Error != shape.Error{}) {
			t.Errorf("%s: an error goes with a refusal, and only with one: %+v", name, d)
		}
		if want := c.verdict == Pass && (c.p.Open) && c.reason != ByBound; d.Marked() != want {
			t.Errorf("%s: marked %v", name, d.Marked())
		}
	}
}

// A prompt of any length that the size allows never passes over the limit, and
// one that is known to fit is never refused.
func TestDecideFailsClosedAndOnlyThen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.OneOf(rapid.IntRange(0, 50), rapid.IntRange(0, math.MaxInt))
		truth := tokens.Draw(t, "truth")
		s := Size{
			AtLeast: rapid.IntRange(0, truth).Draw(t, "at least"), AtMost: rapid.IntRange(truth, Unbounded).Draw(t, "at most"),
			Output: tokens.Draw(t, "output"), Tried: rapid.Bool().Draw(t, "tried"),
		}
		l := Limit{Tokens: rapid.IntRange(0, 50).Draw(t, "limit"), Total: rapid.IntRange(0, 100).Draw(t, "total")}
		if rapid.Bool().Draw(t, "measured") {
			l.At = now.Add(time.Duration(rapid.IntRange(-100, 100).Draw(t, "age")) * time.Second)
		}
		p := Policy{CountOutput: rapid.Bool().Draw(t, "count output"), MaxAge: time.Minute}
		d := Decide(l, now, p, s)

		total := !p.CountOutput || l.Total == 0 || add(truth, max(1, s.Output)) <= l.Total
		stale := !l.At.IsZero() && now.Sub(l.At).Abs() > p.MaxAge
		if d.Verdict == Pass && (l.Tokens == 0 || truth > l.Tokens || !total || stale) {
			t.Fatalf("passed: %+v", d)
		}
		surely := !p.CountOutput || l.Total == 0 || add(s.AtMost, max(1, s.Output)) <= l.Total
		if l.Tokens > 0 && s.AtMost <= l.Tokens && surely && !stale && d.Verdict != Pass {
			t.Fatalf("did not pass: %+v", d)
		}
		if d.Verdict == Count && s.Tried {
			t.Fatal("counted twice")
		}
		// An open policy passes more, never what is known to be too long.
		p.Open = true
		if o := Decide(l, now, p, s); d.Verdict == Pass && o.Verdict != Pass || o.Verdict == Pass && l.Tokens > 0 && s.AtLeast > l.Tokens {
			t.Fatalf("open: %+v, closed: %+v", o, d)
		}
	})
}
