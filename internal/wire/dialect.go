package wire

import (
	"net/http"
	"slices"
)

// dialect is how one family of APIs writes a prompt and an answer.
type dialect struct {
	name string
	path string // of the call that answers a prompt, below the versioned base URL
	// atRoot says that path stands below the unversioned base URL.
	atRoot bool
	auth   func(h http.Header, key string)
	// keyedTwice says that some servers want the key as a bearer token instead.
	keyedTwice bool
	body       func(r Request, q quirks) []segment
	// event takes one event of a stream.
	event func(t *transcript, name string, data []byte)
	// document takes an answer that is one JSON document. It reports false if
	// doc is not JSON.
	document func(t *transcript, doc []byte) bool

	// countPath is the dialect's own counter of tokens, below the versioned base
	// URL, empty for none; countBody is what to send there.
	countPath string
	countBody func(model string, ms []Message) []segment
	// tokenizers are those of engines that may speak the dialect.
	tokenizers []string
}

// dialects is the table of all of them. One file a dialect, one line here.
var dialects = []dialect{
	openAIChat,
	openAIResponses,
	anthropicMessages,
	ollamaChat,
}

// Dialects names what [Options.Dialect] may be.
func Dialects() []string {
	var out []string
	for _, d := range dialects {
		out = append(out, d.name)
	}
	return out
}

func findDialect(name string) (dialect, bool) {
	i := slices.IndexFunc(dialects, func(d dialect) bool { return d.name == name })
	if i < 0 {
		return dialect{}, false
	}
	return dialects[i], true
}

// quirks are the fields of a request that a target has refused.
type quirks struct {
	completionTokens bool // wants max_completion_tokens in place of max_tokens
	noStreamOptions  bool // does not know stream_options
	noTemperature    bool // takes no temperature but its own
	noRequestID      bool // takes no request id in the body
	noStore          bool // does not know store
	leastOutput      int  // shortest answer that may be asked for, tokens
	bearerKey        bool // wants the key as a bearer token, whatever the dialect says
}

// learn changes the quirks by the name of a refused field, and reports whether
// there is something to try that was not tried yet.
func (q quirks) learn(param string) (quirks, bool) {
	was := q
	switch param {
	case "max_tokens":
		q.completionTokens = true
	case "max_completion_tokens":
		q.completionTokens = false
	case "stream_options":
		q.noStreamOptions = true
	case "temperature":
		q.noTemperature = true
	case "store":
		q.noStore = true
	case "max_output_tokens":
		q.leastOutput = leastResponse
	case "request_id", "rid":
		q.noRequestID = true
	}
	return q, q != was
}

// leastResponse is the shortest answer that OpenAI's responses API makes,
// tokens: it refuses a request for less.
const leastResponse = 16
