package probe_test

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// long returns a filled prompt of that many tokens, as straddle sends it.
func long(t *rapid.T, tokens int, seed uint64) probe.Send {
	target := newTarget()
	target.drive(probe.Straddle(), probe.Env{Tenants: 1, Seed: seed, MaxAnswer: 192, Pairs: 1, Context: tokens + 208})
	for _, s := range target.sends {
		if s.Purpose == wire.Under {
			return s
		}
	}
	t.Fatalf("no prompt of %d tokens was sent", tokens)
	return probe.Send{}
}

// What the comment over filled promises of every long prompt.
func TestFilledPrompts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.IntRange(288, 1<<20).Draw(t, "tokens")
		s := long(t, tokens, rapid.Uint64().Draw(t, "seed"))
		if s.Tokens != tokens {
			t.Fatalf("length %d, want %d", s.Tokens, tokens)
		}
		users := 0
		var nonces []int
		literals := 0
		for i, turn := range s.Turns {
			if want := []string{"user", "assistant"}[i%2]; turn.Role != want {
				t.Fatalf("turn %d is %s", i, turn.Role)
			}
			if turn.Role == "user" {
				users++
			}
			fillers := 0
			for j, p := range turn.Parts {
				switch p.Kind {
				case probe.Filler:
					fillers++
				case probe.Nonce:
					nonces = append(nonces, p.N)
					literals += 11
					if !strings.HasPrefix(turn.Parts[j+1].Text, "\n") {
						t.Errorf("nonce %d does not end its line", p.N)
					}
				case probe.Token:
					literals += 23
					if lead := turn.Parts[j-1].Text; lead != "Ref: " {
						t.Errorf("turn %d leads with %q", i, lead)
					}
				case probe.Literal:
					literals += len(p.Text)
				}
			}
			if fillers == 0 {
				t.Errorf("turn %d holds no canary words", i)
			}
		}
		if users > 96 || len(s.Turns)%2 != 1 {
			t.Errorf("%d turns, %d of users", len(s.Turns), users)
		}
		if !reflect.DeepEqual(nonces, []int{0, 1, 2}) {
			t.Errorf("nonces %v", nonces)
		}
		if first := s.Turns[0].Parts[1]; first.Kind != probe.Nonce {
			t.Errorf("the prompt starts with %+v, not with a nonce", first)
		}
		if literals+len(s.Turns) >= tokens {
			t.Errorf("%d of %d tokens are taken by what is no filler", literals, tokens)
		}
		asks(t, s)
	})
}

// asks checks that the last words of a prompt are the words that led up to the
// nonce they ask for, and lead up to nothing else.
func asks(t *rapid.T, s probe.Send) {
	last := s.Turns[len(s.Turns)-1].Parts
	ask := last[len(last)-1].Text
	key := ask[strings.LastIndex(ask, ". ")+2:]
	stated := 0
	for _, turn := range s.Turns {
		for j, p := range turn.Parts {
			if p.Kind == probe.Nonce && strings.HasSuffix(turn.Parts[j-1].Text, key+" ") {
				stated++
				if p.N != s.Asked {
					t.Errorf("asks for nonce %d with the words of %d", s.Asked, p.N)
				}
			}
		}
	}
	if stated != 1 || len(key) < 8 || strings.Count(ask, key) != 1 {
		t.Errorf("%q is stated %d times before %q", key, stated, ask)
	}
}

// Same seed, same answers: same exchanges.
func TestPlansAreDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		env := probe.Env{Tenants: 2, MaxAnswer: 192, Pool: 10640, Context: 16384, Seed: rapid.Uint64().Draw(t, "seed")}
		for _, p := range append(probe.All(), probe.Classic(), probe.SecretStraddle()) {
			a, b := newTarget(), newTarget()
			a.limit, b.limit = 10633, 10633
			a.drive(p, env)
			b.drive(p, env)
			if !reflect.DeepEqual(a.sends, b.sends) {
				t.Errorf("%s sends different things for one seed", p.Name)
			}
		}
	})
}

// The baseline sends what the published script sends, and nothing else.
func TestClassicIsThePublishedScript(t *testing.T) {
	target := newTarget()
	target.drive(probe.Classic(), probe.Env{Tenants: 3, MaxAnswer: 16})
	want := []string{
		"Internal ref for this session: " + target.sent[0].Token + ". Reply with 'noted' only.",
		"Write a two-sentence haiku about packet #1.",
		"Write a two-sentence haiku about packet #2.",
		"Write a two-sentence haiku about packet #3.",
		"Write a two-sentence haiku about packet #4.",
		"Write a two-sentence haiku about packet #5.",
	}
	if len(target.sends) != len(want) {
		t.Fatalf("%d requests", len(target.sends))
	}
	for i, s := range target.sends {
		if got := target.render(&target.sent[i], s); got != want[i] {
			t.Errorf("request %d is %q, want %q", i, got, want[i])
		}
		if s.Tenant != 0 || s.MaxTokens != 200 || s.Temperature != 0 || s.Stream || len(s.Turns) != 1 || s.Tokens != 0 {
			t.Errorf("request %d is sent otherwise: %+v", i, s)
		}
	}
}

func TestEveryTailIsUsed(t *testing.T) {
	target := newTarget()
	target.drive(probe.Smoke(), probe.Env{Tenants: 3, MaxAnswer: 192})
	seen := map[string]int{}
	for _, s := range target.sends {
		seen[s.Tail]++
	}
	for _, name := range []string{"code", "ref", "token"} {
		if seen[name] < 3 {
			t.Errorf("tail %s is used %d times", name, seen[name])
		}
	}
}
