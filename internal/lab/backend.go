// Package lab is an inference engine that serves for real and can leak for real.
//
// A prefill node and a decode node each own a pool of KV pages that are never
// cleared; a router takes requests and hands them to both. What a node may do
// with a page is decided by the pure state machine in handoff; a fault removes
// a check or an ordering there and never copies text.
package lab

import (
	"context"

	"github.com/kvcanary/kvcanary/internal/lab/model"
)

// Backend is the engine as its HTTP API sees it.
type Backend interface {
	// Submit starts a request. Events end with exactly one Done or Error, then
	// the channel is closed. Cancelling ctx frees everything that the request holds.
	Submit(ctx context.Context, r Request) <-chan Event
	// State describes the engine: limits, pools, how full they are.
	State() State
}

// Request is a tokenized prompt with its sampling parameters.
type Request struct {
	ID          string // what the API calls it
	Name        string // what its client calls it, empty if nothing
	Trace       string // id of the trace that its client says it belongs to, likewise
	Tenant      string
	Salt        string // what its client chooses for the prefix cache to keep it apart by, empty if nothing
	Adapter     string // of [model.Adapters], empty for the bare model
	Tokens      []byte // one byte a token, chat template applied
	Images      []Image
	MaxTokens   int // longest answer, tokens, at least 1
	Temperature float64
	Seed        uint64
	Drawn       bool // the seed is the API's: the client has named none
	Stop        []string
}

// Image is a picture behind a run of placeholder tokens.
type Image struct {
	At int // the first of them, in Tokens
	model.Picture
}

// Event is one step of an answer.
type Event struct {
	Token  byte   // a generated token, if Done and Error are nil
	Cached int    // with it: tokens of the prompt that were not computed
	Done   *Done  // the last event of a served request
	Error  *Error // the last event of a refused or failed one
}

// Done ends a served request.
type Done struct {
	Finish           string // "stop" or "length"
	PromptTokens     int
	CompletionTokens int
	CachedTokens     int // of the prompt: not computed, but taken from the prefix cache
}

// Error ends a request that was refused or failed, with the status and words
// that the API gives to the client.
type Error struct {
	Status  int
	Type    string
	Message string
}

// State is what the engine says about itself.
type State struct {
	Model           string
	Version         string
	Context         int // tokens
	MaxInput        int // longest prompt that admission lets through, plus one: n >= MaxInput is refused
	PageSize        int // tokens
	PrefillPool     int // tokens
	DecodePool      int // tokens
	PrefillUsed     int // tokens in pages that are owned
	DecodeUsed      int
	DecodeDraining  int  // of DecodeUsed: tokens in pages that nobody owns and a late write may still reach
	Running         int  // requests being decoded
	Waiting         int  // requests in any queue
	AutoTruncate    bool // a prompt that is too long is cut, silently
	Faults          []string
	Defences        []string
	FailedTransfers int64 // handoffs that did not end in a commit
	PrefixCache     int   // tokens that prefill keeps for prompts that begin alike; 0 for none
	Tier            int   // tokens that its second tier keeps
	Adapters        []string
	// Broken says why the engine can serve nothing, for people; empty while it can.
	Broken string
}
