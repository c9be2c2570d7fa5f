package probe

import "github.com/kvcanary/kvcanary/internal/wire"

// Sessions.
//
// A session is a prompt in two parts: a stem of canary whose turns state the
// session's nonces, one in each third of it, and a last turn that does nothing
// but ask for one of them. The stem is what caches keep, tiers take away and
// aborts leave half made; the last turn is what an engine runs itself. So
// whatever stands where a third of the stem should, the answer shows: the
// session's own nonce, another session's, whose turns read the same up to it,
// or none.

// nonceAnswer is long enough for a nonce and, if one leaks, a short canary, tokens.
const nonceAnswer = 48

// thirds is the least number of turns of a stem: one for each nonce.
const thirds = 3

// stem begins a conversation of about that many tokens. It ends with a turn of
// the assistant's.
func stem(tokens int) []Turn {
	pairs := min(max(tokens/turnPair, thirds), maxPairs)
	var turns []Turn
	for i := range pairs {
		user := append(stated(i*thirds/pairs, codeAt(0)), text(lead), Part{Kind: Token}, text(" "), Part{Kind: Filler, N: 4})
		turns = append(turns, Turn{"user", user}, Turn{"assistant", []Part{{Kind: Filler, N: 1}}})
	}
	return turns
}

// codeAt asks for the nonce at a place.
func codeAt(place int) question { return question{tails[0], place % thirds} }

// asks is a session's last turn.
func asks(place int) Turn { return Turn{"user", []Part{text(codeAt(place).words())}} }

// session is a whole one, of a tenant, that asks for the nonce at a place.
func session(purpose wire.Purpose, label string, tenant, tokens, place int) Send {
	return Send{
		Purpose: purpose, Label: label, Tenant: tenant, Tokens: tokens,
		Turns: append(stem(tokens), asks(place)),
		Tail:  tails[0].name, Asked: place % thirds, MaxTokens: nonceAnswer,
	}
}

// repeated is the whole prompt of an earlier exchange once more, word for word.
func repeated(s Send, seq int) Send {
	s.Prefix, s.Turns, s.Tokens = &Prefix{Seq: seq}, nil, 0
	return s
}

// after is the stem of an earlier exchange with a last turn that asks for the
// nonce at another place.
func (s Send) after(seq, place int) Send {
	s.Prefix, s.Tokens = &Prefix{Seq: seq, Turns: len(s.Turns) - 1}, 0
	s.Turns, s.Asked = []Turn{asks(place)}, place%thirds
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

// spare marks a batch as one that may be left out.
func spare(batch []Send) []Send {
	for i := range batch {
		batch[i].Spare = true
	}
	return batch
}

func (s *steps) add(step func() []Send) { *s = append(*s, step) }
