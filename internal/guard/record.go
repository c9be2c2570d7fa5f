package guard

import "time"

// Record is what is known of a request when it has ended: what metrics, logs,
// traces and receipts are made of. It holds no text of a prompt or an answer,
// and no key.
type Record struct {
	ID    string // of the request, the guard's own
	Start time.Time
	Total time.Duration // until the answer's last byte has gone
	// Blocked is the part of Total spent waiting for the upstream or the client;
	// the rest is the guard's own.
	Blocked   time.Duration
	FirstByte time.Duration // from Start to the answer's first byte; 0 for none

	Tenant, Upstream, Dialect string // as configured; "" where it was not come to
	Engine                    string // as the upstream is configured or turned out to be; "" for not known
	Route                     string // path of the table of routes
	Model                     string // as the client wrote it: not for labels
	Stream                    bool

	Status  int    // that the client was answered with; 0 if it had gone before
	Code    string // word of the error that the guard made, "" for an answer that was passed on
	Trouble string // one line for people on what went wrong, without words of clients or engines

	Verdict, Reason string // of admission; "" where it was not come to
	Changed         []string
	Findings        []Finding

	BodyBytes     int64 // of the client's body
	Held          int   // bytes: most of the answer that was held at once
	PromptTokens  int   // as the upstream reported; 0 unknown
	OutputTokens  int   // as the upstream reported; 0 unknown
	CountedTokens int   // of the prompt, as counted before; 0 unknown
	LimitTokens   int   // in force; 0 unknown
}

// Finding is one thing that an answer showed.
type Finding struct {
	Kind    string // of the closed list of finding kinds
	Channel string // content, reasoning, tool_calls, logprobs, header, error or raw
	From    string // exchange that the canary was planted in, "" for none
	Words   int    // canary words in a row
	Explain string // one line; never the text itself
}
