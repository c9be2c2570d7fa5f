package probe

import "github.com/kvcanary/kvcanary/internal/wire"

// Sessions.
//
// A session is a prompt in two parts: a stem of canary whose every turn states
// the session's nonce, and a last turn that does nothing but ask for it. The
// stem is what caches keep, tiers take away and aborts leave half made; the
// last turn is what an engine runs itself. So whatever stands where the stem
// should, the answer shows: the session's own nonce, another session's, whose
// turns read the same up to it, or none.

// refs are what the turns of a stem state and its last turn asks for, in turn.
var refs = [3]question{{tails[1], 0}, {tails[2], 0}, {tails[0], 0}}

func refNo(i int) question { return refs[i%len(refs)] }

// nonceAnswer is long enough for a nonce and, if one leaks, a short canary, tokens.
const nonceAnswer = 48

// stem begins a conversation of about that many tokens. It ends with a turn of
// the assistant's.
func stem(tokens int, q question) []Turn {
	pairs := min(max(tokens/turnPair, 1), maxPairs)
	var turns []Turn
	for range pairs {
		user := append(stated(0, q), text(lead), Part{Kind: Token}, text(" "), Part{Kind: Filler, N: 4})
		turns = append(turns, Turn{"user", user}, Turn{"assistant", []Part{{Kind: Filler, N: 1}}})
	}
	return turns
}

// asks is a session's last turn.
func asks(q question) Turn { return Turn{"user", []Part{text(q.words())}} }

// session is a whole one, of a tenant.
func session(purpose wire.Purpose, label string, tenant, tokens int, q question) Send {
	return Send{
		Purpose: purpose, Label: label, Tenant: tenant, Tokens: tokens,
		Turns: append(stem(tokens, q), asks(q)),
		Tail:  q.name, Asked: 0, MaxTokens: nonceAnswer,
	}
}

// repeated is the whole prompt of an earlier exchange once more, word for word.
func repeated(s Send, seq, tenant int) Send {
	s.Prefix, s.Turns, s.Tokens, s.Tenant = &Prefix{Seq: seq}, nil, 0, tenant
	return s
}

// arm puts a send on a side of a comparison.
func (s Send) arm(name string, group int) Send {
	s.Arm, s.Group = name, group
	return s
}

// steps are batches one after the other. Each is made when its turn comes, from
// what came back by then; one that turns out empty is left out.
type steps []func() []Send

func (s *steps) next() []Send {
	for len(*s) > 0 {
		step := (*s)[0]
		*s = (*s)[1:]
		if batch := step(); len(batch) > 0 {
			return batch
		}
	}
	return nil
}

func (s *steps) add(step func() []Send) { *s = append(*s, step) }
