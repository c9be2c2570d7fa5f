package campaign

import (
	"net/url"
	"time"

	"github.com/kvcanary/kvcanary/internal/diagnose"
	"github.com/kvcanary/kvcanary/internal/oracle"
)

// Schema names the JSON of a Result; docs/schema/run.v1.schema.json describes it.
const Schema = "kvcanary.run/v1"

// Verdict is what a protocol or a whole run comes to. It is never a boolean:
// not having looked is neither good nor bad.
type Verdict string

// The verdicts, worst first.
const (
	Leak         Verdict = "leak"         // text of one exchange surfaced in another
	Violation    Verdict = "violation"    // any other finding
	Inconclusive Verdict = "inconclusive" // coverage not reached, or a control failed
	Clean        Verdict = "clean"        // nothing found, coverage reached, bound stated
)

// ExitCode is the exit code that a verdict stands for: 1 for a leak or
// violation, 3 for inconclusive, 0 for clean.
func (v Verdict) ExitCode() int {
	switch v {
	case Leak, Violation:
		return 1
	case Clean:
		return 0
	}
	return 3
}

// worse returns the worse of two verdicts.
func (v Verdict) worse(o Verdict) Verdict {
	for _, w := range []Verdict{Leak, Violation, Inconclusive} {
		if v == w || o == w {
			return w
		}
	}
	return v
}

// Result is a run as it is shown, stored and sealed. JSON names are a
// contract: fields are added, never renamed.
type Result struct {
	Schema    string           `json:"schema"`
	Verdict   Verdict          `json:"verdict"`
	Reason    string           `json:"reason,omitempty"` // why the verdict is inconclusive, for the run as a whole
	Target    Target           `json:"target"`
	Protocols []ProtocolResult `json:"protocols"`
	Choices   []Choice         `json:"choices,omitempty"` // why these protocols ran and others did not, if nobody has named any
	Findings  []oracle.Finding `json:"findings"`
	// Diagnosis is which class of fault the findings look like, the likeliest
	// first. It is a hint where to look and changes no verdict.
	Diagnosis []diagnose.Diagnosis `json:"diagnosis,omitempty"`
	Spent     Spent                `json:"spent"`
	Limits    Limits               `json:"limits"`
	Controls  Controls             `json:"controls"`
	Seed      uint64               `json:"seed"`
	Run       int                  `json:"run"` // run part of the canary ids
	KeyID     string               `json:"key_id"`
	Started   time.Time            `json:"started"`
	Ended     time.Time            `json:"ended"`
	Version   string               `json:"version"`
	// Resumable says that the run was stopped before its end, by a signal, its
	// time limit or a disk that took no more: it can go on in its directory.
	Resumable bool `json:"resumable,omitempty"`
	// Resumed is how many exchanges were taken over from before an interruption.
	Resumed int `json:"resumed,omitempty"`
}

// Target is what was probed.
type Target struct {
	BaseURL string `json:"base_url"` // without user, password, query and fragment
	Model   string `json:"model"`
	Dialect string `json:"dialect"`
	Engine  string `json:"engine,omitempty"` // what serves it, if known
}

// ProtocolResult is what one protocol came to.
type ProtocolResult struct {
	Name             string  `json:"name"`
	Verdict          Verdict `json:"verdict"`
	Exchanges        int     `json:"exchanges"`
	Served           int     `json:"served"`  // answered, whatever the answer said
	Refused          int     `json:"refused"` // declined because of their length
	PromptTokens     int     `json:"prompt_tokens"`
	CompletionTokens int     `json:"completion_tokens"`
	Seconds          float64 `json:"seconds"`
	Bound            *Bound  `json:"bound,omitempty"`  // what a clean verdict bounds
	Reason           string  `json:"reason,omitempty"` // why it is inconclusive
}

// Bound says how often leaks may still happen although none was seen: with
// the stated confidence, at most RateUpper of exchanges like the N judged ones.
type Bound struct {
	RateUpper   float64 `json:"rate_upper"` // Clopper-Pearson bound of 0 in N, divided by Sensitivity, at most 1
	Confidence  float64 `json:"confidence"`
	N           int     `json:"n"`           // exchanges that were tests of what the protocol is made for
	Sensitivity float64 `json:"sensitivity"` // chance that such a test shows the fault when it is there; 0 if the lab has not measured it
}

// Spent is what a run has cost, erring on the high side: a prompt counts with
// the larger of what was sent and what the target reported.
type Spent struct {
	Exchanges        int `json:"exchanges"`
	Requests         int `json:"requests"` // with retries
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
}

// Limits is what was measured of the longest prompt, tokens; 0 for not found.
type Limits struct {
	AcceptedMax int    `json:"accepted_max"`
	RejectedMin int    `json:"rejected_min"`
	Rejection   string `json:"rejection"` // how a prompt over the limit is refused, "" if none was
	// Estimated says that RejectedMin is no count: the target has no tokenizer
	// that can be asked and does not say how long the refused prompt was.
	Estimated bool `json:"estimated,omitempty"`
}

// Controls says whether the instrument was sound.
type Controls struct {
	Planted       int `json:"planted"`         // exchanges whose prompt carried canary text
	NeverSent     int `json:"never_sent"`      // canaries minted and never sent
	NeverSentHits int `json:"never_sent_hits"` // how many of those came back: must be 0
}

// bareURL takes out of a URL whatever may be a secret.
func bareURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
