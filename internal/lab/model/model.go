// Package model is a small transformer with hand-set weights that reads its
// context only through a paged KV cache, so that it answers from its prompt when
// the cache is right and from somebody else's when it is not.
//
// Tokens are bytes. Two attention layers, no MLP:
//
//   - Layer 1 has eight heads; head h copies the token h positions back. Its keys
//     are one constant vector, rotated by the position at write time (RoPE), so a
//     key is found by the position baked into it, wherever its page now sits.
//   - Layer 2 has one head. Key: the eight tokens before a slot. Query: the eight
//     tokens that end at the current one. Value: the slot's own token. It copies what
//     followed the longest earlier occurrence of the current words, and since it
//     matches by content, a stale slot matches as well as a fresh one.
//   - What the model knows without a prompt is a few documents whose layer-2 keys and
//     values are kept as weights (persistent slots of layer 2).
//
// Both layers are softmax attention with a sink: a logit of fixed size with value
// zero, as in gpt-oss, so that a query without evidence returns nothing rather than
// the average of everything in its page table.
//
// Nothing here knows who wrote a slot, or when. Every result is a function of the
// weights, the tokens and the bytes in the pages: the same on every machine and for
// every number of workers. Products are rounded explicitly (float32(a*b)+c), since Go
// may otherwise fuse them on some machines; exp, sine and cosine are computed here,
// since package math uses assembly on some; layer 2 computes in integers.
//
// Functions that only compute are marked go:norace: under the race detector they
// would take ten times as long. It watches the memory of pages all the same, where
// rows are stored and where a scan touches each of their cache lines first.
package model

// Hyper-parameters. The margins behind them: layer 1 separates the wanted position
// from every other by 41 nats with the sink in the middle, for distances to 1.1
// million tokens; layer 2 prefers one more matching byte, however far back, to any
// combination of accidental similarities of codes.
const (
	depth      = 8  // tokens that layer 2 matches, and heads of layer 1
	windowSize = 16 // slots that layer 1 looks back on, its own included
	pairs      = 16 // rotary pairs of a layer-1 key
	codeDims   = 16 // dimensions of the matching code of a token
	outDims    = 128

	sharpness1 = 60           // b1: scale of layer-1 scores, nats
	sink1      = 16 - 0.686/2 // of layer 1, before scaling: between an exact hit (16) and the best miss (15.314)

	sharpness2 = 32 // b2: scale of layer-2 scores, nats
)

// MaxPosition bounds the positions that Write takes, tokens.
const MaxPosition = 1 << 21

// Model holds the weights; it is read-only and safe for concurrent use.
type Model struct {
	codes     [256]code          // matching codes
	outputs   [256][outDims]byte // output codes: int8, units of 1/sqrt(128)
	turned    [256]byte          // which row of the output codes a token's logit comes from
	rotary    *rotary
	documents []document
	knowledge knowledge
}

// New builds the model. It takes a few milliseconds.
func New() *Model {
	return newWith(documents)
}

func newWith(docs []document) *Model {
	m := &Model{codes: matchingCodes(), outputs: outputCodes(), rotary: newRotary(), documents: docs}
	for v := range m.turned {
		m.turned[v] = byte(v)
	}
	m.knowledge = m.learn(docs)
	return m
}
