package probe

import (
	"fmt"

	"github.com/kvcanary/kvcanary/internal/wire"
)

const (
	// turnTries conversations go on from an answer of the target's own, and as
	// many are sent whole; up to mostTurns where some of the former have lost their
	// value and none of the latter: too few to be sure of it yet.
	turnTries  = 8
	mostTurns  = 24
	turnTokens = 192 // of their first turn, at least
)

// turns go on with conversations, right behind an answer whose first token
// fills a page: a cache that takes the page for done has not computed that
// token, or not all of what stands before it. What is asked for is the answer,
// where another value has come up since with the same name: without the page's
// last token, nothing says which of them it was. The control are conversations
// of the same shape that were never sent before.
func (p *prefixes) turns() {
	for i := range mostTurns {
		sender := who{tenant: i % p.env.Tenants}
		enough := false
		p.add(func() []Send {
			if i == 0 {
				p.group++
				p.turned = p.group
			}
			if enough = i >= turnTries && !p.doubtful(); enough {
				return nil
			}
			s := p.first(i)
			s.Turns = append(s.Turns, Turn{"assistant", []Part{{Kind: Nonce, N: 0}}}, goesOn())
			s.Tokens += turnTokens
			return []Send{sender.says(s, wire.Unrelated, fmt.Sprintf("conversation %d, whole", i+1)).arm(wire.ArmNull, p.turned)}
		})
		var first Send
		p.add(func() []Send {
			if enough {
				return nil
			}
			first = sender.says(p.first(i), wire.Unrelated, fmt.Sprintf("conversation %d", i+1))
			return []Send{first}
		})
		p.add(func() []Send {
			seq, ok := p.served()
			if enough || !ok || !p.last[0].Echoes(0) { // the answer says nothing that could be asked for
				return nil
			}
			s := first
			s.Prefix, s.Turns, s.Tokens = &Prefix{Seq: seq, Answer: true}, []Turn{goesOn()}, 0
			return []Send{sender.says(s, wire.Unrelated, fmt.Sprintf("conversation %d goes on", i+1)).arm(wire.ArmLoad, p.turned)}
		})
	}
}

// doubtful reports whether more conversations may make sure of something.
func (p *prefixes) doubtful() bool { return p.forgot[wire.ArmLoad] > 0 && p.forgot[wire.ArmNull] == 0 }

// first is the first turn of a conversation: with the first token of its answer
// it fills whole pages.
func (p *prefixes) first(i int) Send {
	q := codeAt(0)
	tokens := p.env.page()*((turnTokens-1)/p.env.page()+1+i%3) - 1
	return Send{
		Turns: compact(q), Tokens: capped(p.env, tokens), Tail: "conversation", Asked: 0, MaxTokens: nonceAnswer, Stream: true,
	}
}

// goesOn is the turn that asks for the answer before it.
func goesOn() Turn {
	q := codeAt(0)
	return Turn{"user", []Part{
		text("There are two new ones, " + q.key(0) + " "), {Kind: Nonce, N: 1}, text(" and " + q.key(0) + " "), {Kind: Nonce, N: 2},
		text(", but I want the old one. Say once more the value that you have answered with, nothing else. " + q.key(0)),
	}}
}
