package campaign

import (
	"testing"

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
	for name, s := range sensitivity {
		if s <= 0 || s > 1 {
			t.Errorf("%s has sensitivity %v", name, s)
		}
	}
	for _, n := range []int{1, 10, 1000} {
		known, unknown := bound("straddle", n), bound("another", n)
		if known.RateUpper <= 0 || known.RateUpper > 1 || unknown.RateUpper < known.RateUpper || unknown.Sensitivity != unmeasured {
			t.Errorf("n %d: %+v, %+v", n, known, unknown)
		}
	}
	if got := bound("straddle", 1000).RateUpper; got < 0.003148 || got > 0.003150 {
		t.Errorf("0 of 1000 bounds %v, want 0.00299 over 0.95", got)
	}
}
