package lab

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/lab/model"
)

// brokenPicture is a request of some length with a picture that cannot be read.
func brokenPicture(own string) Request {
	tokens := chat(own)
	at := len(tokens) / 2
	for i := range model.ImageTokens {
		tokens[at+i] = model.Image
	}
	var p model.Picture
	p.Sees, p.Broken = tokens[at:at+model.ImageTokens], true
	return Request{Tokens: tokens, MaxTokens: 48, Images: []Image{{At: at, Picture: p}}}
}

// A short prompt that is refused for its picture lives on with the fault, while
// one that is too long is refused; what cures the one cures the other.
func TestOtherAbort(t *testing.T) {
	for _, c := range []struct {
		faults, defences []string
		leaks            bool
	}{
		{nil, nil, false},
		{[]string{"stale_reserve:other_abort"}, nil, true},
		{[]string{"stale_reserve:other_abort"}, []string{"generations"}, true},
		{[]string{"stale_reserve:other_abort"}, []string{"retire"}, false},
		{[]string{"stale_reserve:other_abort"}, []string{"coverage"}, false},
		{[]string{"stale_reserve:other_abort"}, []string{"tags"}, false},
	} {
		cfg := tiny()
		cfg.Faults, cfg.Defences = c.faults, c.defences
		e := startPipe(t, cfg)
		rng := rand.New(rand.NewPCG(3, 10))
		var others []string
		for range 11 {
			text := words(rng, cfg.DecodePool/10)
			others = append(others, text)
			if got := serve(t, e, Request{Tokens: chat(text), MaxTokens: 4}); got.err != nil {
				t.Fatal(got.err)
			}
		}
		own := words(rng, 700)
		got := serve(t, e, brokenPicture(own))
		if !c.leaks {
			if got.err == nil || got.text != "" {
				t.Errorf("%v: served with %q", c, got.text)
			}
		} else if piece := longestPiece(got.text, others); got.err != nil || len(piece) < 24 || strings.Contains(own, piece) || got.done.PromptTokens != 1 {
			t.Errorf("%v: %q of the answer %q is somebody else's, error %v", c, piece, got.text, got.err)
		}
		long := serve(t, e, Request{Tokens: chat(words(rng, overlong(cfg)-2)), MaxTokens: 4})
		if long.err == nil || long.err.Status != 400 {
			t.Errorf("%v: a prompt that is too long: %+v", c, long)
		}
		idle(t, e)
	}
}
