package campaign

import (
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/wire"
)

func TestRejectionInWords(t *testing.T) {
	exchange := func(tokens int, a *wire.Answer) *wire.Exchange { return &wire.Exchange{SentTokens: tokens, Answer: a} }
	clean := refused(wire.RefusedContext, 400, "too long")
	clean.Refusal.Limit = 4096
	inside := refused(wire.RefusedPool, 400, "too long")
	inside.Status, inside.Refusal.InAnswer = 200, true
	for _, c := range []struct {
		shortest *wire.Exchange
		limit    int
		unread   *wire.Exchange
		want     string
	}{
		{nil, 0, nil, ""},
		{exchange(5000, clean), 5000, nil, "HTTP 400, context, names a limit of 4096 tokens"},
		{exchange(5000, inside), 5000, nil, "HTTP 200 with an error inside, pool"},
		{nil, 4097, exchange(4097, served("x")), "answered with HTTP 200 in place of a refusal"},
		{exchange(9000, clean), 4097, exchange(4097, served("x")), "answered with HTTP 200 in place of a refusal; from 9000 tokens on HTTP 400, context, names a limit of 4096 tokens"},
		{exchange(4097, clean), 4097, exchange(4100, served("x")), "HTTP 400, context, names a limit of 4096 tokens"},
		{exchange(4097, clean), 4097, exchange(300, served("x")), "HTTP 400, context, names a limit of 4096 tokens"},
	} {
		if got := rejection(c.shortest, c.limit, c.unread); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestBoundsOfProtocols(t *testing.T) {
	over := func(n int) []wire.Exchange {
		all := make([]wire.Exchange, n)
		for i := range all {
			all[i] = wire.Exchange{Purpose: wire.Over, Nonces: [3]string{"abcde-fghij"}, Answer: served("abcde-fghij")}
		}
		return all
	}
	if got := bound("straddle", over(1000)).RateUpper; got < 0.003020 || got > 0.003024 {
		t.Errorf("0 of 1000 bounds %v, want 0.00299 over 0.99", got)
	}
	// What was not over the limit is no test, nor is an answer without its own
	// nonce; what was refused is.
	mixed := append(over(2),
		wire.Exchange{Purpose: wire.Over, Nonces: [3]string{"abcde-fghij"}, Answer: served("something else")},
		wire.Exchange{Purpose: wire.Over, Asked: -1, Answer: served("x")},
		wire.Exchange{Purpose: wire.Plant, Answer: served("x")},
		wire.Exchange{Purpose: wire.Size, Limit: 100, SentTokens: 99, Nonces: [3]string{"abcde-fghij"}, Answer: served("abcde-fghij")},
		wire.Exchange{Purpose: wire.Size, Limit: 100, SentTokens: 100, Nonces: [3]string{"abcde-fghij"}, Answer: served("abcde-fghij")},
		wire.Exchange{Purpose: wire.Size, Answer: refused(wire.RefusedContext, 400, "too long")},
		wire.Exchange{Purpose: wire.Over, Answer: refused(wire.RefusedRate, 429, "slow down")})
	if got := bound("straddle", mixed).N; got != 4 {
		t.Errorf("%d tests, want 4", got)
	}
	// A protocol that the lab has not measured bounds nothing.
	for _, name := range []string{"smoke", "another"} {
		if b := bound(name, over(50)); b.N != 50 || b.RateUpper != 1 || b.Sensitivity != 0 {
			t.Errorf("%s: %+v", name, b)
		}
	}
	if b := bound("straddle", nil); b.N != 0 || b.RateUpper != 1 {
		t.Errorf("no test: %+v", b)
	}
}

// A target that stops answering altogether, as one did after clients had gone
// away, is told from one that is slow, and from answers that were being given.
func TestRequestsThatWaitedInVain(t *testing.T) {
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	took := func(d time.Duration, a *wire.Answer) wire.Exchange {
		a.Start, a.End = start, start.Add(d)
		return wire.Exchange{Answer: a}
	}
	stopped := func(d time.Duration) wire.Exchange { return took(d, failed(wire.FailedCanceled, "stopped")) }
	left, begun := stopped(90*time.Second), stopped(90*time.Second)
	left.Left = true
	begun.Answer.Raw.Size = 12
	quick := took(600*time.Millisecond, served("noted"))
	for name, c := range map[string]struct {
		all  []wire.Exchange
		want string
	}{
		"two in vain":        {[]wire.Exchange{quick, stopped(90 * time.Second), stopped(89 * time.Second)}, "2 of its requests had no answer after 1m30s, others had theirs after 600ms at most"},
		"one of slow ones":   {[]wire.Exchange{took(40*time.Second, served("noted")), stopped(90 * time.Second)}, ""},
		"stopped soon":       {[]wire.Exchange{took(time.Millisecond, served("noted")), stopped(900 * time.Millisecond)}, ""},
		"nothing was served": {[]wire.Exchange{stopped(90 * time.Second)}, ""},
		"it went away":       {[]wire.Exchange{quick, left}, ""},
		"it had begun":       {[]wire.Exchange{quick, begun}, ""},
	} {
		want := "time limit"
		if c.want != "" {
			want += "; " + c.want + ": see whether the target still answers anybody"
		}
		if got := because("time limit", c.all); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
