// Package oracle judges exchanges and yields findings.
//
// Oracles are pure functions over the exchanges of one protocol. One file an
// oracle, one line in [All]. A leak is proof and is never merged with weaker
// evidence.
package oracle

import (
	"context"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// Kind is what a finding means. The list is closed.
type Kind string

// The kinds of finding.
const (
	Leak          Kind = "leak"
	FailOpen      Kind = "fail_open"
	Truncation    Kind = "truncation"
	Contamination Kind = "contamination"
	Sharing       Kind = "sharing"
	Misroute      Kind = "misroute"
	UnsoundSetup  Kind = "unsound_setup"
)

// Finding is one thing found wrong. JSON names are a contract.
type Finding struct {
	Kind         Kind         `json:"kind"`
	Protocol     string       `json:"protocol"`
	Exchange     int          `json:"exchange"` // seq of the exchange whose answer it is
	Tenant       string       `json:"tenant"`
	FromExchange *int         `json:"from_exchange,omitempty"` // seq of the exchange whose text came out
	FromTenant   string       `json:"from_tenant,omitempty"`
	Channel      wire.Channel `json:"channel,omitempty"`
	Evidence     Evidence     `json:"evidence"`
	PValue       *float64     `json:"p_value,omitempty"`
	Explain      string       `json:"explain"` // one sentence for a person
}

// Evidence is what was seen.
type Evidence struct {
	Text   string `json:"text,omitempty"`   // the leaked words, normalised: always text of our own canaries
	Words  int    `json:"words,omitempty"`  // how many canary words in a row
	Offset int    `json:"offset,omitempty"` // word offset in the canary that they were planted at
	// PageHint is about which page of its prompt the run was in, counted from 0;
	// empty if not known.
	PageHint string `json:"page_hint,omitempty"`
	// FromRun is the run that planted the canary, if it is not this one.
	FromRun *int `json:"from_run,omitempty"`
}

// Case is what an oracle judges: the exchanges of one protocol and all that is
// needed to read them.
type Case struct {
	Coder     *canary.Coder
	Run       int             // run part of the canary ids of this run
	Exchanges []wire.Exchange // of the protocol under judgement
	All       []wire.Exchange // of the run so far, Exchanges among them, to name where a canary came from
	Limit     int             // smallest limit known or found, tokens; 0 if none
	PageSize  int             // tokens a page; 0 if not known
	// Controls are ids that were minted and never sent.
	Controls []canary.ID
	// RawBytes gives the raw bytes of an answer, bounded; nil if not kept.
	RawBytes func(*wire.Exchange) []byte
}

// run is every exchange known: All, or Exchanges where All was left out.
func (c Case) run() []wire.Exchange {
	if len(c.All) == 0 {
		return c.Exchanges
	}
	return c.All
}

// Judgement is what one oracle found. ControlHits counts controls that came
// back: the scanner or the run is broken and no verdict may rest on it.
type Judgement struct {
	Findings    []Finding
	ControlHits int
	// Tests are statistical tests that were made, whatever came of them: all of
	// a campaign are corrected together before one of them is a finding.
	Tests []Test
	// Unsure is why the silence of this oracle means nothing, in one sentence;
	// empty if it means what it should.
	Unsure string
}

// Test is a statistical test that was made: its p-value, and what it would have
// found if that is small enough.
type Test struct {
	P       float64
	Finding Finding
}

// Oracle is one row of [All].
type Oracle struct {
	Name string
	Does string
	// Judge looks at a case until ctx ends; what it has found by then counts.
	Judge func(ctx context.Context, c Case) Judgement
}
