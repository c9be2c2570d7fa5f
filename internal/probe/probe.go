// Package probe holds the protocols: each decides which exchanges to make.
//
// A protocol is pure. It is given what came back so far and says what to send
// next, or that it is done; it never waits, counts bytes or opens a
// connection. One file a protocol, one line in [All].
package probe

import (
	"time"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// PartKind says what a part of a prompt is made of.
type PartKind int

// The kinds of part.
const (
	Literal PartKind = iota // Text as it stands
	Filler                  // canary words of the exchange, as many as the target length leaves
	Nonce                   // the exchange's nonce number N
	Token                   // the exchange's short canary, CANARY- and 16 characters
)

// Part is a piece of one turn. Filler parts of a prompt share what its target
// length leaves in proportion to N, and each continues the canary where the
// one before it stopped.
type Part struct {
	Kind PartKind
	Text string // for Literal
	N    int    // for Filler: weight, at least 1; for Nonce: 0 start, 1 middle, 2 end
}

// Turn is one message of a prompt.
type Turn struct {
	Role  string
	Parts []Part
}

// Send is an exchange that a protocol wants made.
type Send struct {
	Purpose wire.Purpose
	Label   string
	Tenant  int // index into the tenants of the campaign
	Turns   []Turn
	// Tokens is the length that the whole prompt shall have; 0 leaves it as
	// the turns stand, with Filler parts taken as N words each.
	Tokens int
	// Again is the seq of an exchange whose prompt is sent again, with Pad
	// single characters more and nothing else changed; Turns are those of then.
	// nil for a prompt of its own.
	Again       *int
	Pad         int    // characters that are most likely a token each
	Limit       int    // the limit that this exchange straddles, tokens; 0 for none
	Tail        string // name of the eliciting tail
	Asked       int    // index of the nonce that the tail asks for, -1 for none
	MaxTokens   int
	Temperature float64
	Stream      bool

	// Prefix puts the turns of an earlier exchange, of any tenant, before Turns.
	Prefix *Prefix
	// Arm and Group say what the exchange is compared with, as in [wire.Exchange].
	Arm   string
	Group int
	// Adapter is asked for in place of the bare model, as "model:adapter"; empty for none.
	Adapter string
	// Image is a number that a picture is made from and put before the last
	// turn's text; 0 for none. It shows the exchange's nonce number 1. All
	// pictures have one shape, and no two are the same.
	Image uint64
	// Broken has the picture's file break off behind its head.
	Broken bool
	// RequestID, TraceID, Hangup and Pace are as in [wire.Request].
	RequestID, TraceID string
	Hangup             wire.Hangup
	Pace               time.Duration
	// Behind has it wait until all before it in its batch are over, and follow at
	// once: its prompt is ready by then.
	Behind bool
	// Spare has its batch left out where the campaign's budget has no more than
	// what the protocols to come need. The plan is then told of no exchanges.
	Spare bool
}

// Extra reports whether a send asks for what a target need not have, an
// adapter or pictures: that it is refused says nothing about other sends.
func (s Send) Extra() bool { return s.Adapter != "" || s.Image != 0 }

// Prefix is the beginning of a prompt that another exchange has sent: word for
// word, with its canary and nonces.
type Prefix struct {
	Seq    int  // of the exchange
	Turns  int  // how many of its turns; 0 for all
	Answer bool // its answer follows as the assistant's turn: a session goes on
}

// Limit is a prompt length, in tokens, at which a target may change its behaviour.
type Limit struct {
	Name   string // "context", "pool", "accepted"
	Tokens int
}

// Env is what a protocol may know: facts and choices, never a clock or a connection.
type Env struct {
	Context  int // context window in tokens, 0 if not known
	Pool     int // tokens of the smallest KV pool, 0 if not known
	PageSize int // tokens a page, 0 if not known
	Found    Found
	Tenants  int    // how many identities there are, at least 1
	Seed     uint64 // all choices of a protocol come from it
	// MaxPrompt is the longest prompt that the budget allows, tokens.
	MaxPrompt int
	// MaxAnswer is the longest answer asked for, tokens.
	MaxAnswer int
	// Adapters are names of adapters that the target serves beside the bare model.
	Adapters []string
	// Pairs is how many pairs straddle makes; 0 takes its default of 3.
	Pairs int
}

// Found is what earlier protocols of the same campaign have measured.
type Found struct {
	AcceptedMax int // longest prompt that was served, tokens
	RejectedMin int // shortest prompt that was refused for its length, tokens
	// Estimated says that RejectedMin is not a count.
	Estimated bool
}

// Plan is a protocol under way.
type Plan interface {
	// Next is given the exchanges of the batch before (nil at first) and
	// returns the next batch, whose exchanges may be made at the same time.
	// An empty batch ends the protocol.
	Next(done []wire.Exchange) []Send
	// Missing says what of the protocol's coverage was not reached by the
	// exchanges made so far, "" when all of it was.
	Missing() string
}

// Limiter is a Plan that measures limits.
type Limiter interface{ Found() Found }

// Protocol is one row of [All].
type Protocol struct {
	Name  string
	Does  string // one sentence for --help
	More  string // what may follow on a forecast, and when: "up to N exchanges more, where ..."; empty if nothing
	Start func(Env) Plan
}
