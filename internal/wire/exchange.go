package wire

// Purpose says what an exchange is for within its protocol.
type Purpose string

// The purposes of an exchange.
const (
	Plant     Purpose = "plant"     // puts canaries where a leak would find them
	Churn     Purpose = "churn"     // moves pages between other exchanges
	Unrelated Purpose = "unrelated" // asks for something that has nothing to do with a plant
	Size      Purpose = "size"      // finds a limit, or learns how many tokens a byte makes
	Under     Purpose = "under"     // just under a limit: the control arm of Over
	Over      Purpose = "over"      // just over a limit
)

// The arms of comparisons. Exchanges of one group that are on different arms
// differ in nothing but what the arm says.
const (
	ArmNull  = "null"  // nothing else runs and nothing was aborted: the control of the others
	ArmLoad  = "load"  // beside other requests, or after requests that were aborted
	ArmHit   = "hit"   // its prefix was sent before by another tenant, or for another adapter, and never by its own
	ArmOwn   = "own"   // its prefix was sent before by the same tenant: what a cache that is kept apart may show
	ArmMiss  = "miss"  // its prefix was never sent
	ArmFirst = "first" // a prompt at temperature 0, before an unrelated one
	ArmAgain = "again" // the same prompt after it
)

// WholeLine ends the name of a tail that asks for a value with the rest of its
// line: a model may do the one and not the other.
const WholeLine = ", whole line"

// Exchange is one request and its answer, with what was known when it was
// sent. Oracles judge it without knowing how it was sent.
type Exchange struct {
	Seq      int     `json:"seq"` // order of sending within the run, from 0
	ID       uint64  `json:"id"`  // canary id: whatever this exchange plants carries it
	Protocol string  `json:"protocol"`
	Purpose  Purpose `json:"purpose"`
	Label    string  `json:"label,omitempty"` // where in the protocol, for people: "pool+1"
	Tenant   string  `json:"tenant"`
	Tail     string  `json:"tail,omitempty"` // name of the eliciting tail

	Limit      int   `json:"limit,omitempty"` // the limit it straddles, tokens; 0 for none
	SentTokens int   `json:"sent_tokens"`     // length of the prompt as counted or estimated
	SentExact  bool  `json:"sent_exact"`      // SentTokens was counted by the target's own tokenizer
	SentBytes  int64 `json:"sent_bytes"`
	// SentSHA256 is the digest of the prompt in hexadecimal: prompts are not
	// kept, since plan and key make them again. Empty if not on record.
	SentSHA256 string `json:"sent_sha256,omitempty"`
	Messages   int    `json:"messages,omitempty"` // turns of the prompt; 0 if not on record
	MaxTokens  int    `json:"max_tokens"`
	Stream     bool   `json:"stream,omitempty"` // the answer was asked for as a stream

	// Again is the seq of an exchange whose prompt this one repeats, word for
	// word and with its canary and nonces, lengthened by Pad single characters:
	// so its length is known to the token where only usage counts. nil for a
	// prompt of its own.
	Again *int `json:"again,omitempty"`
	Pad   int  `json:"pad,omitempty"`

	// Holds are the seqs of other exchanges whose text stands in this prompt: it
	// was sent their canaries and nonces, and may answer with them.
	Holds []int `json:"holds,omitempty"`
	// Arm is the side of a comparison that this exchange is on, [ArmNull] and so
	// on; empty for none. Group numbers the comparison within the protocol, from 1.
	Arm   string `json:"arm,omitempty"`
	Group int    `json:"group,omitempty"`
	// Adapter was asked for in place of the bare model; empty for none.
	Adapter string `json:"adapter,omitempty"`
	// RequestID is what the client called the request; empty for no name.
	RequestID string `json:"request_id,omitempty"`
	// Left says that the client went away on purpose: no answer is no failure of the target.
	Left bool `json:"left,omitempty"`

	// Nonces stand in the prompt at its start, middle and end; an entry is
	// empty where the prompt has none. Asked is the index of the one that the
	// tail asks for, -1 for none.
	Nonces [3]string `json:"nonces"`
	Asked  int       `json:"asked"`
	// Token is the short canary that the prompt carries, empty for none.
	Token string `json:"token,omitempty"`

	Answer *Answer `json:"answer"`
}

// Overlaps reports whether two exchanges were under way at the same time.
func (e *Exchange) Overlaps(o *Exchange) bool {
	return e.Answer != nil && o.Answer != nil &&
		e.Answer.Start.Before(o.Answer.End) && o.Answer.Start.Before(e.Answer.End)
}
