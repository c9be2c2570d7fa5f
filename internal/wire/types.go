// Package wire speaks to an inference endpoint and keeps what it said.
//
// Nothing in this package knows why a request is made or what an answer
// proves: a [Request] goes in, an [Answer] with its raw bytes, usage, timings
// and refusal comes out. Protocols and oracles use only the types of this
// file and of exchange.go.
package wire

import (
	"io"
	"net/http"
	"time"
)

// Text is a piece of prompt that is produced on demand, so that a prompt of a
// million tokens never sits in memory.
type Text interface {
	// Open returns a fresh reader of the text; every reader yields the same bytes.
	Open() io.Reader
	// Size is the length of the text in bytes.
	Size() int64
}

// Message is one turn of a chat prompt.
type Message struct {
	Role   string // "system", "user" or "assistant"
	Text   Text
	Images [][]byte // PNG files that stand before the text; few dialects carry them
}

// Request is one prompt for a target, independent of the dialect it is sent in.
type Request struct {
	Model       string
	Key         string // bearer token of the tenant; empty sends none
	Messages    []Message
	MaxTokens   int // longest answer in tokens; 0 leaves it to the target
	Temperature float64
	Stream      bool
	// RequestID and TraceID are what the client calls the request, where the
	// dialect lets it; empty sends none.
	RequestID string
	TraceID   string
	// Hangup says when the client goes away by itself; the zero value stays to the end.
	Hangup Hangup
	// Resend is asked before the request goes out once more by itself, because
	// the target refused one of its fields; nil lets it.
	Resend func() bool
	// Pace is the pause before each read of the answer: a slow reader. 0 reads as fast as it comes.
	Pace time.Duration
}

// Hangup is the moment at which a client goes away. What has come until then
// is kept, and the answer fails with [FailedCanceled].
type Hangup struct {
	Sent  bool          // once all of the prompt is sent, and After more has passed
	After time.Duration // with Sent
	Text  int           // once that many bytes of text have come; 0 for never
}

// Channel says where in an answer a text was found.
type Channel string

// The channels of an answer. Every one of them is scanned.
const (
	Content   Channel = "content"
	Reasoning Channel = "reasoning"
	ToolCalls Channel = "tool_calls"
	Logprobs  Channel = "logprobs"
	Header    Channel = "header"
	ErrorBody Channel = "error"
	Raw       Channel = "raw"
)

// Piece is the whole text that one channel of an answer carried.
type Piece struct {
	Channel Channel `json:"channel"`
	Text    string  `json:"text"`
}

// Usage is what the target says it has counted, in tokens.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Cached     int `json:"cached_tokens,omitempty"`
	Reasoning  int `json:"reasoning_tokens,omitempty"` // part of Completion
}

// RefusalKind classifies how a target said no.
type RefusalKind string

// The kinds of refusal. Context, Pool and TooLong all mean that the prompt is
// over a limit; they differ in which limit the target named.
const (
	RefusedContext   RefusalKind = "context"    // longer than the context window
	RefusedPool      RefusalKind = "pool"       // longer than what the engine can hold
	RefusedTooLong   RefusalKind = "too_long"   // over a limit that was not named
	RefusedOutput    RefusalKind = "output"     // prompt plus wanted answer over the context window
	RefusedBodySize  RefusalKind = "body_size"  // too many bytes (413)
	RefusedRate      RefusalKind = "rate_limit" // 429 and what stands for it
	RefusedAuth      RefusalKind = "auth"       // 401, 403
	RefusedModel     RefusalKind = "model"      // no such model, no such path
	RefusedParameter RefusalKind = "parameter"  // a field of the request is not supported
	RefusedServer    RefusalKind = "server"     // 5xx: a dirty failure
	RefusedOther     RefusalKind = "other"      // any other 4xx
	RefusedQuota     RefusalKind = "quota"      // balance or quota used up
)

// Refusal is an answer by which the target declined to serve the prompt.
type Refusal struct {
	Kind       RefusalKind   `json:"kind"`
	Status     int           `json:"status"`
	Limit      int           `json:"limit,omitempty"`       // the limit that the target named, tokens; 0 if none
	Sent       int           `json:"sent,omitempty"`        // the prompt length that the target named, tokens; 0 if none
	AtLeast    bool          `json:"at_least,omitempty"`    // Sent is a lower bound, not a count
	InAnswer   bool          `json:"in_answer,omitempty"`   // the error stood inside a 200
	RetryAfter time.Duration `json:"retry_after,omitempty"` // 0 if the target named none
	Rule       string        `json:"rule,omitempty"`        // which row of the refusal table matched
	Message    string        `json:"message"`               // the target's words, bounded in length
}

// TooLong reports whether the target refused the prompt because of its length.
func (r *Refusal) TooLong() bool {
	return r != nil && (r.Kind == RefusedContext || r.Kind == RefusedPool || r.Kind == RefusedTooLong || r.Kind == RefusedOutput)
}

// FailureKind classifies an exchange that ended in neither an answer nor a refusal.
type FailureKind string

// The kinds of failure.
const (
	FailedConnect  FailureKind = "unreachable" // no connection: refused, no route, no such host
	FailedTLS      FailureKind = "tls"         // certificate or handshake
	FailedTimeout  FailureKind = "timeout"     // no byte for longer than the idle limit
	FailedCut      FailureKind = "cut"         // the answer broke off before its end
	FailedTooBig   FailureKind = "too_big"     // the answer went over the byte limit; we stopped reading
	FailedNotAPI   FailureKind = "not_an_api"  // HTML or something else that is no answer of this dialect
	FailedCanceled FailureKind = "canceled"    // we stopped it
	FailedRequest  FailureKind = "request"     // the prompt could not be read or the request not be made
)

// Failure says why an exchange ended in neither an answer nor a refusal.
type Failure struct {
	Kind    FailureKind `json:"kind"`
	Message string      `json:"message"` // one line: what happened and what to do; never a secret
}

// Blob is where the raw bytes of an answer are kept.
type Blob struct {
	Path      string `json:"path,omitempty"` // file below the run directory; empty if kept in memory
	Bytes     []byte `json:"-"`              // the bytes, if kept in memory
	Size      int64  `json:"size"`           // bytes received, also those beyond what was kept
	Truncated bool   `json:"truncated,omitempty"`
	SHA256    string `json:"sha256"` // hex digest of the bytes kept
}

// Answer is everything that came back for one request. A target that refuses
// sets Refusal, an exchange that broke sets Failure; both nil means that the
// prompt was answered.
type Answer struct {
	Status int         `json:"status"` // HTTP status; 0 if none arrived
	Header http.Header `json:"-"`
	Pieces []Piece     `json:"-"` // what each channel carried, raw excepted
	// Joined are all texts of the answer by where they stood in it, those of
	// Pieces among them: for scanning. Overran says that there was more text
	// than is kept for that: only the raw bytes hold the rest.
	Joined  []Strand `json:"-"`
	Overran bool     `json:"overran,omitempty"`
	Usage   *Usage   `json:"usage,omitempty"`  // nil if the target reported none
	Finish  string   `json:"finish,omitempty"` // finish reason as the target spells it
	ID      string   `json:"id,omitempty"`     // request id as the target names it
	Model   string   `json:"model,omitempty"`
	Refusal *Refusal `json:"refusal,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
	Raw     Blob     `json:"raw"`
	// Resent counts how often the request was sent again: because the target
	// refused one of its fields (max_tokens, stream_options, temperature), asked
	// for patience, or hung up before it answered.
	Resent int `json:"resent,omitempty"`

	Start      time.Time `json:"start"`       // first byte of the request
	FirstToken time.Time `json:"first_token"` // first piece of text; zero if none
	End        time.Time `json:"end"`
}

// Served reports whether the target answered the prompt, whatever the answer says.
func (a *Answer) Served() bool { return a != nil && a.Refusal == nil && a.Failure == nil }

// Text returns what one channel carried, or "".
func (a *Answer) Text(c Channel) string {
	for _, p := range a.Pieces {
		if p.Channel == c {
			return p.Text
		}
	}
	return ""
}
