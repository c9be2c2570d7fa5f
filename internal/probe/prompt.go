package probe

import "github.com/kvcanary/kvcanary/internal/wire"

// Filled prompts.
//
// Everything in a long prompt that is not asked for is canary, so whichever
// page of it surfaces says whose it is. The prompt is written as a
// conversation of many short turns and not as one long one, because of what a
// model does with stale pages on the incident's path: the engine never ran the
// prompt, its first token is the marker of a user turn, and what follows is
// what followed such markers in the pages that are read. One long turn has one
// marker in all its pages; short turns have one on nearly every page that can
// leak. Every user turn starts with the same words, so that the votes of all
// markers go to one continuation, and with the short canary, which no other
// text competes with: plain words occur many times in a million tokens, and a
// model that continues the last few letters jumps between their occurrences.
const (
	// turnPair is how many tokens a user turn and its answer take together.
	turnPair = 192
	// maxPairs bounds the messages of a prompt; longer prompts get longer turns.
	maxPairs = 96
	// compactBelow is the length under which a prompt has room for one nonce only, tokens.
	compactBelow = 288
	// smallest is the shortest prompt that has room for what filled writes, tokens.
	smallest = 128
)

const lead = "Ref: "

// filled returns the turns of a prompt of that many tokens whose last words
// ask the question.
func filled(tokens int, q question) []Turn {
	if tokens < compactBelow {
		return compact(q)
	}
	pairs := min(max(tokens/turnPair, 1), maxPairs)
	var turns []Turn
	for i := range pairs {
		turns = append(turns, Turn{"user", userTurn(i, pairs, q)})
		if i < pairs-1 {
			turns = append(turns, Turn{"assistant", []Part{{Kind: Filler, N: 1}}})
		}
	}
	return turns
}

// userTurn writes user turn i of n. The first starts with the first nonce, the
// one in the middle states the second, the last ends with the third and the
// question. Nonces stand on lines of their own.
func userTurn(i, n int, q question) []Part {
	var parts []Part
	if i == 0 {
		parts = append(parts, stated(0, q)...)
	}
	parts = append(parts, Part{Kind: Literal, Text: lead}, Part{Kind: Token}, text(" "), Part{Kind: Filler, N: 4})
	if i == n/2 {
		parts = append(append(parts, text("\n")), stated(1, q)...)
		parts = append(parts, Part{Kind: Filler, N: 1})
	}
	if i == n-1 {
		parts = append(append(parts, text("\n")), stated(2, q)...)
		parts = append(parts, text(q.words()))
	}
	return parts
}

// compact is the shape of a prompt that is too short for three nonces.
func compact(q question) []Turn {
	parts := stated(q.place, q)
	return []Turn{{"user", append(parts, text(lead), Part{Kind: Filler, N: 1}, text("\n"+q.words()))}}
}

// stated is the line that says the nonce of a place.
func stated(place int, q question) []Part {
	return []Part{text(q.keyOf(place) + " "), {Kind: Nonce, N: place}, text("\n")}
}

func text(s string) Part { return Part{Kind: Literal, Text: s} }

// send is a filled prompt ready to be sent; callers set what else they want.
func send(purpose wire.Purpose, label string, tenant, tokens, maxTokens int, q question) Send {
	return Send{
		Purpose:   purpose,
		Label:     label,
		Tenant:    tenant,
		Turns:     filled(tokens, q),
		Tokens:    tokens,
		Tail:      q.name,
		Asked:     q.place,
		MaxTokens: maxTokens,
	}
}
