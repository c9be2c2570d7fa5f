package handoff

import "fmt"

// Reason is why a request is not served.
type Reason uint8

// The reasons. The words of the first three are SGLang's, so that a client
// that knows them from there reads them here.
const (
	Served       Reason = iota
	OverContext         // Have, Limit: the prompt does not fit the context
	OverTotal           // Have, Extra, Limit: prompt and answer together do not fit it
	OverInput           // Have, Limit: the prompt does not fit a node's pool
	Incomplete          // Have, Limit: fewer tokens were sent than reserved
	Disagreement        // Have, Limit: prefill and decode know different lengths
	PrefillGone
	DecodeGone
	Closing
	Empty       // Have, Extra: no prompt, or no answer asked for
	Expired     // it has taken too long
	Overwritten // prefill's pages have changed hands while they were sent
	Unverified  // what has been written for it is not what was sent for it
	NotOwned    // a page of its table is not its own any more
	Unreadable  // a picture of the prompt is broken
)

// Refusal is why a request is not served, with the numbers that belong to it, in tokens.
type Refusal struct {
	Reason             Reason
	Have, Extra, Limit int
}

// Valid reports whether the reason is one of the known ones.
func (r Refusal) Valid() bool { return r.Reason <= Unreadable }

// Status is the HTTP status that the client gets: 400 if the request was at
// fault, 500 if the engine was, 503 if it is about to end, 504 if it took too long.
func (r Refusal) Status() int {
	switch r.Reason {
	case Served:
		return 200
	case OverContext, OverTotal, OverInput, Empty, Unreadable:
		return 400
	case Closing:
		return 503
	case Expired:
		return 504
	}
	return 500
}

// Type is the kind of error in SGLang's words.
func (r Refusal) Type() string {
	switch r.Status() {
	case 400:
		return "BadRequestError"
	case 503:
		return "ServiceUnavailableError"
	case 504:
		return "TimeoutError"
	}
	return "InternalServerError"
}

// Text is what the client is told.
func (r Refusal) Text() string {
	switch r.Reason {
	case OverContext:
		return fmt.Sprintf("The input (%d tokens) is longer than the model's context length (%d tokens).", r.Have, r.Limit)
	case OverTotal:
		return fmt.Sprintf("Requested token count exceeds the model's maximum context length of %d tokens. "+
			"You requested a total of %d tokens: %d tokens from the input messages and %d tokens for the completion. "+
			"Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
			r.Limit, r.Have+r.Extra, r.Have, r.Extra)
	case OverInput:
		return fmt.Sprintf("Input length (%d tokens) exceeds the maximum allowed length (%d tokens). "+
			"Use a shorter input or enable --allow-auto-truncate.", r.Have, r.Limit)
	case Incomplete:
		return fmt.Sprintf("KV transfer incomplete: %d of %d tokens were sent.", r.Have, r.Limit)
	case Disagreement:
		return fmt.Sprintf("KV transfer refused: prefill has a prompt of %d tokens and decode one of %d.", r.Have, r.Limit)
	case PrefillGone:
		return "prefill node is gone"
	case DecodeGone:
		return "decode node is gone"
	case Closing:
		return "engine is shutting down"
	case Empty:
		return fmt.Sprintf("A prompt of %d tokens for an answer of %d: both must be at least 1.", r.Have, r.Extra)
	case Expired:
		return "The request took too long."
	case Overwritten:
		return "KV transfer refused: pages were overwritten while they were sent."
	case Unverified:
		return "KV transfer refused: a page is not this request's."
	case NotOwned:
		return "A KV page is not this request's any more."
	case Unreadable:
		return "A picture of the prompt is broken and cannot be read."
	}
	return ""
}
